"""Compiled functions under a profiler: they run compiled, as one block."""

from __future__ import annotations

import warnings
from typing import Any

import torchlab
from torchlab.profiler import ProfilerActivity, profile
from torchlab.utils._python_dispatch import TorchDispatchMode

CPU = [ProfilerActivity.CPU]


def names(p: Any) -> list[str]:
    return [e.name for e in p.events()]


def test_a_region_is_one_call() -> None:
    @torchlab.compile
    def f(x: Any) -> Any:
        return (x.sin() * 2).exp()

    x = torchlab.rand(8, requires_grad=True)
    for _ in range(2):  # compiled while it is looked at, then found
        with profile(activities=CPU) as p:
            f(x).sum().backward()
        (region,) = [n for n in names(p) if n.startswith("Torch-Compiled Region")]
        assert region.endswith(".f") and "aten::sin" not in names(p)
        assert "CompiledFunctionBackward" in names(p)
    assert len(f.graphs) == 1
    x.grad = None
    f(x).sum().backward()
    assert torchlab.allclose(x.grad, 2 * x.cos() * (2 * x.sin()).exp())


def test_what_breaks_the_graph_is_seen() -> None:
    @torchlab.compile
    def f(x: Any) -> Any:
        return x.sin() if x.sum().item() > 0 else x.cos()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            with profile(activities=CPU) as p:
                f(torchlab.ones(3))
                torchlab.ones(1).tan()
            assert {"aten::sin", "aten::tan"} <= set(names(p))


def test_other_modes_still_want_every_operator() -> None:
    seen: list[str] = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func._schema.name)
            return func(*args, **(kwargs or {}))

    @torchlab.compile
    def f(x: Any) -> Any:
        return x.sin() + 1

    with profile(activities=CPU) as p, Mode():
        f(torchlab.ones(3))
    assert "aten::sin" in seen and "aten::sin" in names(p)
