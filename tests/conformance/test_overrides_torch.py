"""Who is asked, by every function of PyTorch's `get_testing_overrides()` that is here, too: a class
of arguments, a mode, the class of `out=`; and what the handler gets. Compared with PyTorch."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch")
annotated = pytest.importorskip("torch.testing._internal.generated.annotated_fn_args")

import torchlab  # noqa: E402

# What PyTorch asks about, or hands on, that is otherwise here, and why.
_OVERLOADS = "the overload with out_dtype, of CUDA's, is not here"
_PARTS = "PyTorch's function asks about what it is made of, torchlab's about itself"
_ONE_OBJECT = "one function under two names, PyTorch has two"
_PARAMETERS = "the parameters have other names or other defaults"
_ANSWER = "called by name it gives the handler's answer, not None"
OTHERWISE = {
    **dict.fromkeys(("torch.addmm", "torch.baddbmm", "torch.bmm"), _OVERLOADS),
    **dict.fromkeys(
        (
            "torch.functional.einsum", "torch.histogramdd", "torch.lobpcg", "torch.tensor_split",
            "torch.functional.pca_lowrank", "torch.functional.svd_lowrank", "torch.functional.lu",
            "torch.functional.norm", "torch.narrow", "torch.Tensor.__reduce_ex__",
            "torch.Tensor.narrow", "torch.Tensor.tensor_split",
        ),
        _PARTS,
    ),
    **dict.fromkeys(
        (
            "torch.Tensor.__rand__", "torch.Tensor.__ror__", "torch.Tensor.__rxor__",
            "torch.Tensor.__itruediv__",
        ),
        _ONE_OBJECT,
    ),
    **dict.fromkeys(
        (
            "torch.functional.chain_matmul", "torch.functional.unravel_index",
            "torch.Tensor.__array__", "torch.Tensor.__array_wrap__", "torch.nn.functional.l1_loss",
        ),
        _PARAMETERS,
    ),
    "torch.Tensor.__setitem__": _ANSWER,
}  # fmt: skip

_VALUES: dict[str, Callable[[Any, Any], Any]] = {  # (a tensor's maker, the root module) → argument
    "TensorList": lambda make, root: [make(), make()],
    "ITensorListRef": lambda make, root: [make(), make()],
    "Scalar": lambda make, root: 3.5,
    "bool": lambda make, root: False,
    "Dimname": lambda make, root: "",
    "DimnameList": lambda make, root: [""],
    "SymInt": lambda make, root: 0,
    "double": lambda make, root: 1.0,
    "Generator": lambda make, root: None,
    "MemoryFormat": lambda make, root: None,
    "TensorOptions": lambda make, root: None,
    "ScalarType": lambda make, root: root.float32,
    "Device": lambda make, root: root.device("cpu"),
    "ArrayRef<Scalar>": lambda make, root: [3.5],
}


def _value(fact: dict[str, Any], make: Any, root: Any) -> Any:
    kind = fact["simple_type"]
    if kind in _VALUES:
        return _VALUES[kind](make, root)
    if kind.startswith("Tensor"):
        return make()
    if kind.startswith("c10::List"):
        return [make(), make()]
    if kind in ("IntArrayRef", "SymIntArrayRef"):
        return (1,) * fact.get("size", 2)
    if kind.startswith("int"):
        return 0
    if kind.startswith("float"):
        return 1.0
    if "string_view" in kind:
        return ""
    raise NotImplementedError(kind)


def _arguments(function: Any, dummy: Any, make: Any, root: Any) -> tuple[list[Any], dict[str, Any]]:
    """The smallest call: all required arguments, of the types that PyTorch's declarations say."""
    facts = annotated.annotated_args.get(function)
    if facts is not None:
        plain = [_value(f, make, root) for f in facts if f["is_kwarg_only"] != "True"]
        named = {f["name"]: _value(f, make, root) for f in facts if f["is_kwarg_only"] == "True"}
        return plain, named
    spec = inspect.getfullargspec(dummy)
    plain = [make() for _ in range(len(spec.args) - len(spec.defaults or ()))]
    plain += [make(), make()] if spec.varargs else []
    return plain, {k: make() for k in spec.kwonlyargs if k not in (spec.kwonlydefaults or {})}


def _found(root: Any, name: str) -> Any:
    parts = name.split(".")[1:]
    if parts[-1] == "__get__":
        return inspect.getattr_static(root.Tensor, parts[1]).__get__
    for part in parts:
        root = getattr(root, part)
    return root


@cache
def _tables() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """(PyTorch's functions by name, their dummies, torchlab's functions)."""
    theirs, dummies, ours = {}, {}, {}
    for function, dummy in torch.overrides.get_testing_overrides().items():
        name = torch.overrides.resolve_name(function)
        if name is None:
            continue
        try:
            ours[name] = _found(torchlab, name)
        except AttributeError:
            continue
        theirs[name], dummies[name] = function, dummy
    return theirs, dummies, ours


def _heard(root: Any, overrides: Any, functions: dict[str, Any], kind: str) -> dict[str, Any]:
    """name → (names of the function that was told, how many arguments by position, the names of the
    others, whether the handler's answer is the result); nothing for those that asked nobody."""
    log: list[Any] = []

    class Duck:
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            log.append((func, len(args), sorted(kwargs or {})))
            return -1

    class Sub(root.Tensor):  # type: ignore[misc]
        __torch_function__ = Duck.__torch_function__

    class Mode(overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return Duck.__torch_function__(func, types, args, kwargs)

    def tensor() -> Any:
        return root.ones(2, 2)

    def subclass() -> Any:
        with root._C.DisableTorchFunctionSubclass():
            return tensor().as_subclass(Sub)

    theirs, dummies, _ = _tables()
    make = {"duck": Duck, "subclass": subclass}.get(kind, tensor)
    found = {}
    for name, function in functions.items():
        try:
            args, kwargs = _arguments(theirs[name], dummies[name], make, root)
        except NotImplementedError:
            continue
        if kind.startswith("out"):
            kwargs["out"] = subclass() if kind == "out of a subclass" else tensor()
        log.clear()
        result = None
        try:
            if kind.endswith("mode"):
                with Mode():
                    result = function(*args, **kwargs)
            else:
                result = function(*args, **kwargs)
        except Exception:
            result = None  # what Python's protocols make of -1 is not the question
        if log:
            func, n, names = log[0]
            told = {k for k, f in functions.items() if f is func or f == func}
            found[name] = (told, n, names, result == -1 if type(result) is int else None)
    return found


@pytest.mark.parametrize("kind", ["duck", "subclass", "mode", "out of a subclass", "out, a mode"])
def test_every_function_asks_as_pytorch_does(kind: str) -> None:
    theirs, _, ours = _tables()
    assert len(ours) > 1300
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = _heard(torch, torch.overrides, theirs, kind)
        got = _heard(torchlab, torchlab.overrides, ours, kind)
    wrong = {}
    for name, (told, n, names, answered) in expected.items():
        here = got.get(name)
        if told and (
            here is None or not told & here[0] or (n, names, answered) != here[1:]
        ):
            wrong[name] = (expected[name], here)
    unknown = {k: v for k, v in wrong.items() if k not in OTHERWISE}
    assert not unknown, unknown
    assert len(expected) > {"duck": 700, "subclass": 1290, "mode": 1290}.get(kind, 320)
