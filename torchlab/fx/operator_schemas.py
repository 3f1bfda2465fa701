"""What is known of the arguments of functions and modules: their signatures, and calls brought into
their order.

Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Node.normalized_arguments
"""

from __future__ import annotations

import inspect
import numbers
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from torchlab._core.device import device
from torchlab._core.dispatch import registry
from torchlab._core.dtype import dtype
from torchlab._core.formats import layout, memory_format
from torchlab._core.tensor import Tensor
from torchlab.fx._naming import callable_name, space_of

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "get_signature_for_torch_op",
    "create_type_hint",
    "type_matches",
    "normalize_function",
    "normalize_module",
]

_TYPES: dict[str, Any] = {
    "Tensor": Tensor,
    "Scalar": numbers.Number,
    "int": int,
    "SymInt": int,
    "float": float,
    "bool": bool,
    "str": str,
    "Device": device,
    "ScalarType": dtype,
    "Layout": layout,
    "MemoryFormat": memory_format,
}


class ArgsKwargsPair(NamedTuple):
    """Positional and keyword arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _python_type(fact: Any) -> Any:
    base: Any = _TYPES.get(fact.base, Any)
    if fact.list:
        spelled: Any = typing.List  # noqa: UP006 — PyTorch's spelling
        base = spelled[base]
    return typing.Optional[base] if fact.optional else base  # noqa: UP045


def _signature(parsed: Any) -> inspect.Signature:
    """The signature of a schema; `self` is called `input`."""
    parameters, star = [], False
    for a in parsed.arguments:
        name = "input" if a.name == "self" else a.name
        star = star or a.kwarg_only
        default = a.default if a.has_default else inspect.Parameter.empty
        if isinstance(default, tuple):
            default = list(default)
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY if star else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=default,
                annotation=_python_type(a.type),
            )
        )
    returns = tuple(_python_type(r.type) for r in parsed.returns)
    return inspect.Signature(
        parameters, return_annotation=returns[0] if len(returns) == 1 else returns
    )


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """The signatures of an operator of torchlab's, one for each overload; None for other functions.
    `return_schemas`: (signatures, schemas)."""
    parsed = getattr(op, "parsed", None)
    if parsed is not None:
        schemas = [parsed]
    else:
        where = space_of(op)
        name = callable_name(op)
        if where is None or name not in registry.OPS:
            return (None, None) if return_schemas else None
        schemas = [declared.schema for declared in registry.OPS[name].values()]
    signatures = [_signature(s) for s in schemas]
    return (signatures, schemas) if return_schemas else signatures


def check_for_mutable_operation(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """RuntimeError if a call of `target` with these arguments writes into one of them."""
    signatures, schemas = get_signature_for_torch_op(target, return_schemas=True)
    for signature, parsed in zip(signatures or (), schemas or (), strict=True):
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            continue
        if any(a.write for a in parsed.arguments):
            raise RuntimeError(
                f"Tried to trace mutable operation {parsed}. FX only supports functional code, so "
                "operations that mutate operands in-place (e.g. via `out` arguments) are not "
                "supported"
            )


def create_type_hint(x: object) -> object:
    """A type for a list or tuple of types: `[int, int]` → `List[int]`; others as they are."""
    if not isinstance(x, (list, tuple)):
        return x

    def build(inner: Any) -> Any:
        return typing.List[inner] if isinstance(x, list) else tuple[inner, ...]  # noqa: UP006

    if not x:
        return build(Any)
    base = x[0]
    if not all(isinstance(t, type) for t in x):
        return x
    for t in x:
        if issubclass(base, t):
            continue
        if issubclass(t, base):
            base = t
        else:
            return build(Any)
    return build(base)


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of `argument_type` fits a parameter of `signature_type`."""
    origin = typing.get_origin(signature_type)
    if signature_type is argument_type or signature_type is Any:
        return True
    if origin is typing.Union:
        return any(type_matches(t, argument_type) for t in typing.get_args(signature_type))
    if origin is list and typing.get_args(signature_type) == (int,) and argument_type is int:
        return True  # a lone number stands for a list of it
    if origin is list:
        inner = typing.get_args(signature_type)[0]
        if typing.get_origin(argument_type) in (list, tuple):
            return all(
                t is Ellipsis or type_matches(inner, t) for t in typing.get_args(argument_type)
            )
        return False
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    if isinstance(signature_type, type) and isinstance(argument_type, type):
        return issubclass(argument_type, signature_type)
    return False


def _in_order(
    signature: inspect.Signature, args: Any, kwargs: Any, only_kwargs: bool
) -> ArgsKwargsPair | None:
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(p.kind not in plain for p in signature.parameters.values()):
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    new_args: list[Any] = []
    new_kwargs: dict[str, Any] = {}
    for i, (name, value) in enumerate(bound.arguments.items()):
        if not only_kwargs and i < len(args):
            new_args.append(value)
        else:
            new_kwargs[name] = value
    return ArgsKwargsPair(tuple(new_args), new_kwargs)


def _fitting(
    signatures: list[inspect.Signature], args: Any, kwargs: Any
) -> list[inspect.Signature]:
    found = []
    for s in signatures:
        try:
            s.bind(*args, **kwargs)
        except TypeError:
            continue
        found.append(s)
    return found


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """A call of a function with its defaults filled in; None where its signature is not known.

    Raises:
        RuntimeError: several overloads fit, and no types are given that tell which is meant.
    """
    kwargs = kwargs or {}
    signatures = get_signature_for_torch_op(target)
    if signatures is None:
        if not inspect.isfunction(target):
            return None
        module = target.__module__ or ""
        if module.partition(".")[0] != __name__.partition(".")[0]:
            return None
        try:
            shown = inspect.signature(inspect.unwrap(target))
        except ValueError:
            return None
        kept = [p for p in shown.parameters.values() if p.name != "out"]
        signatures = [shown.replace(parameters=kept)]
    fitting = _fitting(signatures, args, kwargs)
    if not fitting:
        return None
    if len(fitting) > 1:
        if arg_types is None and kwarg_types is None:
            shown_all = "\n".join(map(str, signatures))
            raise RuntimeError(
                f"Tried to normalize arguments to {callable_name(target)} but the schema match was "
                "ambiguous! Please provide argument types to the normalize_arguments() call. "
                f"Available schemas:\n{shown_all}"
            )
        fitting = [s for s in fitting if _types_match(s, arg_types or (), kwarg_types or {})]
        if not fitting:
            return None
    return _in_order(fitting[0], args, kwargs, normalize_to_only_use_kwargs)


def _types_match(signature: inspect.Signature, arg_types: Any, kwarg_types: Any) -> bool:
    try:
        bound = signature.bind(*arg_types, **kwarg_types)
    except TypeError:
        return False
    return all(
        type_matches(signature.parameters[name].annotation, t)
        for name, t in bound.arguments.items()
    )


def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """A call of a submodule with its defaults filled in. RuntimeError if there is no such module;
    None for modules that are not torchlab's own."""
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from error
    if type(module).__module__.partition(".")[0] != __name__.partition(".")[0]:
        return None
    signature = inspect.signature(type(module).forward)
    parameters = list(signature.parameters.values())[1:]
    return _in_order(
        signature.replace(parameters=parameters), args, kwargs or {}, normalize_to_only_use_kwargs
    )
