"""An operator's schema from the type hints of a Python function.

Source: https://docs.pytorch.org/docs/2.13/library.html#torch.library.infer_schema
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from torchlab._core.device import device
from torchlab._core.dtype import dtype
from torchlab._core.tensor import Tensor

_PLAIN: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", dtype: "ScalarType",
    device: "Device",
}  # fmt: skip
_RETURNED = ("Tensor", "SymInt", "float", "bool", "Scalar")
_SEQUENCES = (list, collections.abc.Sequence)


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str],
                 op_name: str | None = None) -> str:  # fmt: skip
    """The schema in PyTorch's notation, with `op_name` before it if given.

    `mutates_args` names the tensors the function writes to; "unknown" means all of them. Raises
    ValueError for parameters without hints and for types that a schema cannot express.
    """
    signature = inspect.signature(prototype_function)

    def refuse(why: str) -> NoReturn:
        raise ValueError(f"infer_schema(func): {why} Got func with signature {signature})")

    try:
        hints = typing.get_type_hints(prototype_function)
    except NameError as error:
        refuse(
            f"Unsupported type annotation: {error}. Types must be importable where the function "
            "is defined."
        )
    everything = mutates_args == "unknown"
    mutated = (
        set()
        if everything
        else {mutates_args}
        if isinstance(mutates_args, str)
        else set(mutates_args)
    )
    unseen = set(mutated)
    parts: list[str] = []
    starred = False
    for i, (name, p) in enumerate(signature.parameters.items()):
        if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            refuse("We do not support positional-only args, varargs, or varkwargs.")
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        if name not in hints:
            refuse(f"Parameter {name} must have a type annotation.")
        text = _type(hints[name])
        if text is None:
            if typing.get_origin(hints[name]) is tuple:
                refuse(
                    f"Parameter {name} has unsupported type {hints[name]}. Tuple inputs are not "
                    "supported: use list."
                )
            refuse(f"Parameter {name} has unsupported type {hints[name]}.")
        if name in mutated or (everything and text.startswith("Tensor")):
            if not text.startswith("Tensor"):
                refuse(
                    f"Parameter {name} is in mutable_args but only Tensors or collections of "
                    "Tensors can be mutated"
                )
            text = f"Tensor(a{i}!){text[len('Tensor') :]}"
            unseen.discard(name)
        parts.append(
            f"{text} {name}"
            if p.default is p.empty
            else f"{text} {name}={_default(name, p.default, refuse)}"
        )
    if unseen:
        refuse(
            f"{unseen} in mutates_args were not found in the custom op's signature. mutates_args "
            "should contain the names "
            "of all args that the custom op mutates, or just the string 'unknown' if you don't "
            "know."
        )
    if "return" not in hints:
        refuse("No return type annotation was provided. Please add one.")
    returned = _return(hints["return"])
    if returned is None:
        refuse(f"Return has unsupported type {hints['return']}. The valid types are: "
               "Tensor, list[Tensor], int, float, bool, "
               "numbers, and tuples of them.")  # fmt: skip
    return f"{op_name or ''}({', '.join(parts)}) -> {returned}"


def _members(hint: Any) -> set[Any] | None:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return set(typing.get_args(hint))
    return None


def _type(hint: Any) -> str | None:
    """A parameter's type in the schema's notation; None if it has none."""
    if isinstance(hint, type) and hint in _PLAIN:
        return _PLAIN[hint]
    members = _members(hint)
    if members is not None:
        optional = type(None) in members
        members.discard(type(None))
        inner = (
            "Scalar"
            if members == {int, float, bool}
            else _type(members.pop())
            if len(members) == 1
            else None
        )
        return None if inner is None else inner + "?" if optional else inner
    if typing.get_origin(hint) in _SEQUENCES:
        (element,) = typing.get_args(hint)
        inner = _type(element)
        return (
            None
            if inner is None or "[" in inner or inner.endswith("?") and inner != "Tensor?"
            else inner + "[]"
        )
    return None


def _default(name: str, value: Any, refuse: Callable[[str], NoReturn]) -> str:
    if value is None or isinstance(value, (int, float, bool)):
        return str(value)
    if isinstance(value, (str, device)):
        return f'"{value}"'
    if isinstance(value, dtype):
        return str(value).partition(".")[2]
    refuse(f"Parameter {name} has an unsupported default value type {type(value)}.")


def _return(hint: Any) -> str | None:
    if hint is None or hint is type(None):
        return "()"
    if typing.get_origin(hint) is tuple:
        inner = [_return(x) for x in typing.get_args(hint)]
        return None if None in inner or "()" in inner else f"({', '.join(inner)})"  # type: ignore[arg-type]
    text = _type(hint)
    return (
        text
        if text in _RETURNED or text == "Tensor[]" and typing.get_origin(hint) is list
        else None
    )
