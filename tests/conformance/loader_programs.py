"""Loaders whose batches depend on seeds, for torchlab and for PyTorch.

    python tests/conformance/loader_programs.py torch

prints what PyTorch gives; test_loaders_torch.py compares.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
from typing import Any

import numpy as np

torch: Any = None
"""torchlab or PyTorch; forked workers have the same."""


class Draws:
    """Each sample is what the three random streams give."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> list[Any]:
        return [i, *draw()]


def draw() -> list[Any]:
    return [
        torch.rand(()).item(),
        torch.randint(1000, ()).item(),
        torch.randn(()).item(),
        random.random(),
        float(np.random.rand()),
        int(np.random.randint(1000)),
    ]


def stream_of(n: int) -> Any:
    """A stream that every worker draws from in its own way."""

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            info = torch.utils.data.get_worker_info()
            first, step = (0, 1) if info is None else (info.id, info.num_workers)
            return ([i, *draw()] for i in range(first, n, step))

    return Stream()


def start(number: int) -> None:
    """A worker_init_fn that draws, and seeds NumPy as many programs do."""
    np.random.seed(torch.initial_seed() % 2**32)
    torch.rand(number + 1)


def plain(batch: Any) -> Any:
    return batch


def cases() -> dict[str, Any]:
    """What every kind of loader gives in two passes, with 0 and with 2 workers, and what the
    program's own stream gives afterwards."""
    D = torch.utils.data
    kinds = {
        "order": lambda **k: D.DataLoader(Draws(7), 2, **k),
        "shuffle": lambda **k: D.DataLoader(Draws(7), 2, shuffle=True, **k),
        "generator": lambda **k: D.DataLoader(
            Draws(7), 2, shuffle=True, generator=torch.Generator().manual_seed(11), **k
        ),
        "drop_last": lambda **k: D.DataLoader(Draws(7), 3, shuffle=True, drop_last=True, **k),
        "single": lambda **k: D.DataLoader(Draws(4), None, shuffle=True, **k),
        "replacement": lambda **k: D.DataLoader(
            Draws(5), 2, sampler=D.RandomSampler(range(5), True, 6), **k
        ),
        "weighted": lambda **k: D.DataLoader(
            Draws(5), 3, sampler=D.WeightedRandomSampler([0.1, 0.9, 0.4, 3.0, 0.5], 6), **k
        ),
        "subset": lambda **k: D.DataLoader(
            Draws(6), 2, sampler=D.SubsetRandomSampler([5, 1, 3]), **k
        ),
        "batches": lambda **k: D.DataLoader(
            Draws(6),
            batch_sampler=D.BatchSampler(D.RandomSampler(range(6)), 4, False),
            **k,
        ),
        "split": lambda **k: D.DataLoader(
            D.random_split(Draws(8), [0.75, 0.25])[0], 2, shuffle=True, **k
        ),
        "stream": lambda **k: D.DataLoader(stream_of(7), 2, **k),
        "stream_single": lambda **k: D.DataLoader(stream_of(3), None, **k),
    }
    for replica in range(2):
        kinds[f"distributed{replica}"] = lambda replica=replica, **k: D.DataLoader(
            Draws(7), 2, sampler=D.DistributedSampler(range(7), 2, replica, seed=3), **k
        )
    found = {}
    for kind, make in kinds.items():
        for workers in (0, 2):
            variants: dict[str, dict[str, Any]] = {"": {}}
            if workers:
                variants |= {
                    "_persistent": {"persistent_workers": True},
                    "_init": {"worker_init_fn": start},
                }
            for name, more in variants.items():
                torch.manual_seed(5)
                random.seed(5)
                np.random.seed(5)
                if workers:
                    more = more | {"multiprocessing_context": "fork"}
                loader = make(num_workers=workers, collate_fn=plain, **more)
                passes = []
                for epoch in range(2):
                    if hasattr(loader.sampler, "set_epoch"):
                        loader.sampler.set_epoch(epoch)
                    passes.append(list(loader))
                found[f"{kind}_{workers}{name}"] = [passes, draw()]
    return found


def main() -> None:
    global torch
    torch = importlib.import_module(sys.argv[1])
    importlib.import_module(sys.argv[1] + ".utils.data")
    lines = [f"{json.dumps(name)}: {json.dumps(case)}" for name, case in cases().items()]
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
