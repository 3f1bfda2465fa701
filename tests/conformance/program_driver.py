"""What the makers of random programs share: a difference, how a program is shrunk to the steps that
show it, and the command line that plays any number of programs."""

from __future__ import annotations

import argparse
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np


class Difference(NamedTuple):
    """What differs, in torchlab and in PyTorch."""

    what: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"{self.what}\n    torchlab {self.ours}\n    torch    {self.theirs}"


def kind(difference: Difference) -> str:
    """What differs, whichever tensor it is."""
    return re.sub(r"t\d+", "t", difference.what)


def told(error: Exception | None) -> str:
    """An exception for the eye."""
    return "none" if error is None else f"{type(error).__name__}: {str(error)[:300]}"


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings of either library."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def shrink(
    steps: list[Any],
    found: Difference,
    replay: Callable[[list[Any]], Difference | None],
    rounds: int = 1,
) -> tuple[list[Any], Difference]:
    """The program without the steps that the difference does not need."""
    kept, wanted = list(steps), kind(found)
    for _ in range(rounds):
        for i in reversed(range(len(kept))):
            fewer = kept[:i] + kept[i + 1 :]
            difference = replay(fewer)
            if difference is None or kind(difference) != wanted:
                continue
            if "NameError" not in f"{difference.ours}{difference.theirs}":
                kept, found = fewer, difference
    return kept, found


def run(
    title: str | None,
    play: Callable[..., tuple[list[Any], Difference | None]],
    shrunk: Callable[..., tuple[list[Any], Difference]],
    code: Callable[[Any], str],
) -> None:
    """Play programs by seeds and print every difference."""
    import torch

    import torchlab

    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    kinds: Counter[str] = Counter()
    steps_run = 0
    for seed in range(options.seed, options.seed + options.count):
        steps, difference = play(torchlab, torch, random.Random(seed).randint)
        steps_run += len(steps)
        if difference is None:
            continue
        steps, difference = shrunk(torchlab, torch, steps, difference)
        kinds[kind(difference)] += 1
        if kinds.total() <= options.show:
            print(f"# seed {seed}: {difference}")
            print("".join(f"    >>> {code(s)}\n" for s in steps), flush=True)
    print(f"{options.count} programs, {steps_run} steps, {kinds.total()} differences")
    for what, n in kinds.most_common():
        print(f"{n:6} {what}")
