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
from torchlab._core.dispatch.tags import Tag
from torchlab._core.dtype import dtype
from torchlab._core.tensor import Tensor

_PLAIN: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", dtype: "ScalarType",
    device: "Device",
}  # fmt: skip
_RETURNED = ("Tensor", "SymInt", "float", "bool", "Scalar")
_SEQUENCES = (list, collections.abc.Sequence)


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Tag | Iterable[Tag] | None = (),
) -> str:
    """The schema in PyTorch's notation, with `op_name` before it if given.

    `mutates_args` names the tensors the function writes to; "unknown" means all of them. `tags`:
    Tag.inplace says that the function returns its first argument, which it writes to, Tag.out that
    it returns the keyword-only tensors it writes to. Raises ValueError for parameters without
    hints, for types that a schema cannot express, and for functions that are not as the tag says.
    """
    form = _form(tags)
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
    written: dict[str, str] = {}  # name → its type with the alias mark
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
            text = written[name] = f"Tensor(a{i}!){text[len('Tensor') :]}"
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
    if form is not None:
        named = "unknown" if everything else tuple(mutated)
        of_tensor = [n for n in signature.parameters if _type(hints[n]) == "Tensor"]
        returned = _written_and_returned(
            form, signature, of_tensor, named, written, returned, refuse
        )
    return f"{op_name or ''}({', '.join(parts)}) -> {returned}"


def _form(tags: Tag | Iterable[Tag] | None) -> Tag | None:
    """Tag.inplace or Tag.out, if it is among the tags."""
    given = () if tags is None else (tags,) if isinstance(tags, Tag) else tuple(tags)
    found = [t for t in (Tag.inplace, Tag.out) if t in given]
    assert len(found) < 2, "torch.Tag.inplace and torch.Tag.out are mutually exclusive"
    return found[0] if found else None


def _written_and_returned(
    form: Tag,
    signature: inspect.Signature,
    of_tensor: list[str],
    named: Any,
    written: dict[str, str],
    returned: str,
    refuse: Callable[[str], NoReturn],
) -> str:
    """The type of the result of an in-place or out= form, with the alias marks of what it is."""
    keyword = {n for n, p in signature.parameters.items() if p.kind is p.KEYWORD_ONLY}
    if form is Tag.inplace:
        first = next(iter(signature.parameters), "")
        if first not in of_tensor or first in keyword:
            refuse("torch.Tag.inplace requires the first positional argument to be a Tensor.")
        if named != (first,):
            refuse(
                "torch.Tag.inplace requires mutates_args to contain exactly the first positional"
                f" argument, got {named}."
            )
        if returned != "Tensor":
            refuse("torch.Tag.inplace requires the return annotation to be torch.Tensor.")
        return written[first]
    if set(written) - keyword:
        refuse("torch.Tag.out requires mutable arguments to be keyword-only.")
    if not written:
        refuse("torch.Tag.out requires at least one mutable keyword-only Tensor argument.")
    plain = ["Tensor"] * len(written)
    if returned != (plain[0] if len(plain) == 1 else f"({', '.join(plain)})"):
        refuse(
            "torch.Tag.out requires the return annotation to match the mutable keyword-only Tensor"
            f" arguments {tuple(written)}."
        )
    marked = list(written.values())
    return marked[0] if len(marked) == 1 else f"({', '.join(marked)})"


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
