"""`torch.jit.trace` against PyTorch's: results for other sizes, warnings, errors."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torchlab

torch = pytest.importorskip("torch")
_at = Path(__file__).parents[1] / "jit" / "trace_programs.py"
_spec = importlib.util.spec_from_file_location("trace_programs", _at)
assert _spec is not None and _spec.loader is not None
trace_programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(trace_programs)
PROGRAMS = trace_programs.PROGRAMS

# PyTorch's own Python asks sizes and warns; here modules of torch.nn are noted whole.
_IN_MODULES = ("group_norm", "lstm", "gru", "attention_module", "encoder_layer")


def _flat(x: Any) -> list[Any]:
    if isinstance(x, (tuple, list)):
        return [z for y in x for z in _flat(y)]
    return [x.detach().numpy()]


def _run(lib: Any, name: str) -> tuple[Any, Any, set[str]]:
    make, example, other = PROGRAMS[name]
    lib.manual_seed(0)
    fn = make(lib)
    rng = np.random.RandomState(0)
    first, second = (
        tuple(lib.tensor(rng.randn(*s).astype("float32")) for s in shapes)
        for shapes in (example, other)
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traced = lib.jit.trace(fn, first)
        result = _flat(traced(*second))
    found = {
        str(w.message).split("\n")[0] for w in caught if w.category.__name__ == "TracerWarning"
    }
    return traced, result, found


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_same_as_torch(name: str) -> None:
    _, theirs, warned = _run(torch, name)
    _, ours, told = _run(torchlab, name)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    if name not in _IN_MODULES:
        assert told == warned


def _error(lib: Any, run: Any) -> tuple[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as e:
            run(lib)
    return type(e.value).__name__, str(e.value).split("\n")[0]


def _grad_constant(lib: Any) -> None:
    w = lib.ones(3, requires_grad=True)
    lib.jit.trace(lambda x: x * w, lib.ones(3))


def _changing(lib: Any) -> None:
    calls: list[int] = []

    def fn(x: Any) -> Any:
        calls.append(1)
        return x * 2 if len(calls) == 1 else x + 1

    lib.jit.trace(fn, lib.ones(3))


def _other_method(lib: Any) -> None:
    m = lib.nn.Linear(2, 2)
    lib.jit.trace(m.extra_repr, lib.ones(3))


def _submodule(lib: Any) -> None:
    m = lib.nn.Sequential(lib.nn.Linear(2, 2))
    lib.jit.trace(m, lib.ones(3, 2))[0](lib.ones(3, 2))


def _call(*args: Any) -> Any:
    def run(lib: Any) -> None:
        given = [lib.ones(2) if a is None else a for a in args]
        lib.jit.trace(lambda x: x * 2, lib.ones(3))(*given)

    return run


ERRORS = {
    "dict": lambda t: t.jit.trace(lambda x: {"a": x}, t.ones(3)),
    "none": lambda t: t.jit.trace(lambda x: None, t.ones(3)),
    "number result": lambda t: t.jit.trace(lambda x: 3, t.ones(3)),
    "number": lambda t: t.jit.trace(lambda x, n: x * n, (t.ones(3), 3)),
    "text": lambda t: t.jit.trace(lambda x, n: x, (t.ones(3), "s")),
    "nothing": lambda t: t.jit.trace(lambda x, n: x, (t.ones(3), None)),
    "no function": lambda t: t.jit.trace(3, t.ones(3)),
    "no inputs": lambda t: t.jit.trace(lambda x: x),
    "grad constant": _grad_constant,
    "changing": _changing,
    "other method": _other_method,
    "submodule": _submodule,
    "too many": _call(None, None),
    "too few": _call(),
    "no tensor": _call(3),
}


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_errors_are_torchs(name: str) -> None:
    ours, theirs = _error(torchlab, ERRORS[name]), _error(torch, ERRORS[name])
    assert ours == theirs
