"""Every function and method called as PyTorch's signatures say: by position, by name, and with
NumPy's names.

The arguments are the samples that PyTorch tests its own operators with; the signatures are the
schemas of its operators, or `inspect.signature` where the function is Python. A way of calling that
PyTorch itself takes must work here, too, and give the same as the sample's own way.
"""

from __future__ import annotations

import inspect
import itertools
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import torchlab
import torchlab.fft
import torchlab.linalg
import torchlab.nn.functional
import torchlab.special

torch = pytest.importorskip("torch")
invocations = pytest.importorskip("torch.testing._internal.common_methods_invocations")

SPACES = {"": "", "nn.functional": "", "linalg": "linalg_", "fft": "fft_", "special": "special_"}
SAMPLES = 2
NUMPY = {"input": "x", "other": "x2", "dim": "axis", "keepdim": "keepdims"}
OPS = {(op.name, op.variant_test_name): op for op in invocations.op_db}


class Parameter(NamedTuple):
    name: str
    by_position: bool
    required: bool


class Case(NamedTuple):
    """A function (or method, if `space` is None) and the operators whose samples call it."""

    space: str | None
    name: str
    ops: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"Tensor.{self.name}" if self.space is None else f"{self.space}.{self.name}"


def space_of(root: Any, space: str) -> Any:
    for part in space.split(".") if space else []:
        root = getattr(root, part)
    return root


def cases() -> list[Case]:
    """The functions and methods that there are samples for, and that torchlab has."""
    found: dict[tuple[str | None, str], list[tuple[str, str]]] = {}
    for key, op in OPS.items():
        short = key[0].rpartition(".")[2]
        for space in SPACES:
            public = getattr(space_of(torch, space), short, None)
            if public is not None and public is op.op:
                found.setdefault((space, short), []).append(key)
        method = op.method_variant
        if method is not None and method is getattr(torch.Tensor, short, None):
            found.setdefault((None, short), []).append(key)
    return [
        Case(space, name, tuple(keys))
        for (space, name), keys in sorted(found.items(), key=str)
        if name[0] != "_"
        and hasattr(torchlab.Tensor if space is None else space_of(torchlab, space), name)
    ]


CASES = cases()


def overloads(case: Case) -> list[list[Parameter]]:
    """PyTorch's signatures of the function, `self` of a method left out."""
    owner = torch.Tensor if case.space is None else space_of(torch, case.space)
    fn = getattr(owner, case.name)
    if inspect.isfunction(fn):
        parameters = list(inspect.signature(fn).parameters.values())
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
            return []
        full = [
            Parameter(p.name, p.kind is not p.KEYWORD_ONLY, p.default is p.empty)
            for p in parameters
        ]
        return [full[1:] if case.space is None else full]
    prefix = SPACES[case.space or ""]
    result = []
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{prefix}{case.name}"):
        arguments = [a for a in schema.arguments if not a.is_out]
        if len(arguments) < len(schema.arguments) or not arguments:
            continue
        full = [
            Parameter(
                "input" if a.name == "self" else a.name,
                not a.kwarg_only,
                not a.has_default_value(),
            )
            for a in arguments
        ]
        if case.space is not None:
            result.append(full)
        elif full[0].name == "input":
            result.append(full[1:])
    return result


def bound(
    signature: list[Parameter], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any] | None:
    """The arguments by name, or None if they do not fit."""
    positional = [p.name for p in signature if p.by_position]
    if len(args) > len(positional):
        return None
    values = dict(zip(positional, args, strict=False))
    if values.keys() & kwargs.keys() or kwargs.keys() - {p.name for p in signature}:
        return None
    values |= kwargs
    return None if any(p.required and p.name not in values for p in signature) else values


def ways(
    signature: list[Parameter], values: dict[str, Any], method: bool
) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The same call by position, by name, and by NumPy's names."""
    args: list[Any] = []
    rest = dict(values)
    for p in signature:
        if not p.by_position or p.name not in rest:
            break
        args.append(rest.pop(p.name))
    other = {n: n if method and n == "other" else NUMPY.get(n, n) for n in values}
    calls = [(tuple(args), rest), ((), values)]
    if any(n != m for n, m in other.items()):
        calls.append(((), {other[n]: v for n, v in values.items()}))
    return calls


def converted(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        x = x.detach().resolve_conj().resolve_neg()
        whole = torch.tensor([], dtype=x.dtype).set_(x.untyped_storage())
        y = torchlab.from_numpy(whole.clone().numpy())
        return y.as_strided(tuple(x.shape), x.stride(), x.storage_offset())
    if isinstance(x, torch.dtype | torch.layout | torch.memory_format):
        return getattr(torchlab, str(x).removeprefix("torch."))
    if isinstance(x, torch.device):
        return str(x)
    if isinstance(x, torch.Size):
        return tuple(x)
    if isinstance(x, dict):
        return {k: converted(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return type(x)(converted(v) for v in x)
    return x


def called(root: Any, case: Case, first: Any, args: Any, kwargs: Any) -> Any:
    root.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.space is None:
            return getattr(first, case.name)(*args, **kwargs)
        return getattr(space_of(root, case.space), case.name)(*args, **kwargs)


def flat(result: Any) -> list[np.ndarray]:
    parts = result if isinstance(result, list | tuple) else [result]
    parts = [p.to_dense() if hasattr(p, "to_dense") else p for p in parts]
    return [np.array(p.tolist() if hasattr(p, "tolist") else p) for p in parts]


def samples(case: Case) -> Any:
    for key in case.ops:
        op = OPS[key]
        dtypes = op.supported_dtypes("cpu")
        known = [d for d in (torch.float32, torch.int64, torch.complex64) if d in dtypes]
        torch.manual_seed(0)
        for dtype in known[:1]:
            for sample in itertools.islice(op.sample_inputs("cpu", dtype), SAMPLES):
                if not any(map(callable, sample.kwargs.values())):  # PyTorch's modules
                    yield sample


def accepted(case: Case, sample: Any) -> Any:
    """(first, args, kwargs) of each way that PyTorch takes for the sample."""
    method = case.space is None
    args = sample.args if method else (sample.input, *sample.args)
    for signature in overloads(case):
        values = bound(signature, args, sample.kwargs)
        for a, k in ways(signature, values, method) if values is not None else []:
            try:
                called(torch, case, sample.input, a, k)
            except (TypeError, RuntimeError, ValueError, NotImplementedError):
                continue
            yield sample.input, a, k


COUNTED: dict[str, int] = {}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_ways_of_calling(case: Case) -> None:
    COUNTED[str(case)] = 0
    for sample in samples(case):
        args = sample.args if case.space is None else (sample.input, *sample.args)
        first = converted(sample.input)
        expected = None
        for x, a, k in accepted(case, sample):
            if expected is None:
                own = called(torchlab, case, first, converted(args), converted(sample.kwargs))
                expected = flat(own)
            result = called(torchlab, case, converted(x), converted(a), converted(k))
            for r, e in zip(flat(result), expected, strict=True):
                if "empty" in case.name:
                    r, e = np.zeros_like(r), np.zeros_like(e)
                np.testing.assert_array_equal(r, e, f"called with {len(a)} by position, {list(k)}")
            COUNTED[str(case)] += 1


WRONG: tuple[Any, ...] = ("a", object())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_wrong_types_are_type_errors(case: Case) -> None:
    """One argument of the first sample at a time becomes something that no parameter of its kind
    takes: where PyTorch raises TypeError, torchlab does."""
    sample = next(samples(case), None)
    if sample is None:
        return
    args = sample.args if case.space is None else (sample.input, *sample.args)
    spots = [("", i) for i in range(len(args))] + [(n, -1) for n in sample.kwargs]
    for (name, i), wrong in itertools.product(spots, WRONG):
        a, k = list(args), dict(sample.kwargs)
        if name:
            k[name] = wrong
        else:
            a[i] = wrong
        try:
            called(torch, case, sample.input, a, k)
        except TypeError:
            with pytest.raises(TypeError):
                called(torchlab, case, converted(sample.input), converted(a), converted(k))
        except Exception:  # what PyTorch finds later is for other tests
            continue


@pytest.mark.parametrize("case", CASES, ids=str)
def test_names_that_nobody_has(case: Case) -> None:
    sample = next(samples(case), None)
    if sample is None:
        return
    args = sample.args if case.space is None else (sample.input, *sample.args)
    with pytest.raises(TypeError):
        called(torchlab, case, converted(sample.input), converted(args), {"no_such_name": 1})
    try:
        called(torch, case, sample.input, (), {})
    except TypeError:
        with pytest.raises(TypeError):
            called(torchlab, case, converted(sample.input), (), {})
    except Exception:  # no error of the call's form
        return


def test_most_are_checked() -> None:
    """Something was called in more than one way for nearly all."""
    if len(COUNTED) == len(CASES):
        assert sum(n > 1 for n in COUNTED.values()) > 0.9 * len(CASES)
