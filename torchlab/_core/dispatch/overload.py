"""Operator overloads as users meet them: `torchlab.ops.aten.add.Tensor`, and what
`__torch_dispatch__` is given as `func`.

The declaration (`torchlab._core.dispatch.op.Op`) is one object with three forms; PyTorch lists the
forms as operators of their own (`add.Tensor`, `add_.Tensor`, `add.out`). An `OpOverload` is one of
those. It equals, and hashes as, the declaration whose functional form it is, so that the targets of
compiled graphs (declarations) can be compared with `torchlab.ops.aten.add.Tensor`.

Source: https://docs.pytorch.org/docs/2.13/library.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch import modes, schema
from torchlab._core.dispatch.op import Op
from torchlab._core.dispatch.tags import tags_of
from torchlab._core.formats import strided
from torchlab._core.tape import TLS
from torchlab._core.tensor import Tensor


class AliasInfo:
    """What a schema says of memory: `Tensor(a!)` is in the set "a" and is written to."""

    def __init__(self, fact: Any) -> None:
        self.is_write: bool = fact.write
        self.before_set = {fact.alias}
        self.after_set = {fact.alias_after or fact.alias}


class SchemaArgument:
    """An argument or a result of a FunctionSchema."""

    def __init__(self, fact: Any, name: str) -> None:
        self.name = name
        self.type: schema.Type = fact.type
        self.real_type = fact.type
        self.default_value = getattr(fact, "default", None)
        self.kwarg_only: bool = getattr(fact, "kwarg_only", False)
        self.is_out = self.kwarg_only and fact.write
        self.alias_info = AliasInfo(fact) if fact.alias else None
        self.N = fact.type.size
        self._has_default = getattr(fact, "has_default", False)

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self._has_default

    def __repr__(self) -> str:
        return f"{self.type} {self.name}"


class FunctionSchema:
    """`OpOverload._schema`: names, types and aliases of what an operator takes and gives."""

    def __init__(self, parsed: schema.Schema) -> None:
        self.parsed = parsed
        self.name = f"{parsed.namespace}::{parsed.name}"
        self.overload_name = parsed.overload
        self.arguments = [SchemaArgument(a, a.name) for a in parsed.arguments]
        self.returns = [SchemaArgument(r, r.name or "") for r in parsed.returns]
        self.is_mutable = parsed.is_mutable
        self.is_vararg = parsed.is_vararg
        self.is_varret = False

    def __str__(self) -> str:
        return str(self.parsed)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and self.parsed == other.parsed

    def __hash__(self) -> int:
        return hash(self.parsed)


class OpOverload:
    """One operator with one signature.

    op: the declaration behind it (None where PyTorch's operator is several of torchlab's);
    form: "functional", "inplace" or "out". `run(args, kwargs)` computes it; its maker sets it.
    """

    def __init__(
        self,
        text: str,
        *,
        namespace: str = "aten",
        op: Op | None = None,
        form: str = "functional",
        tags: Any = (),
    ) -> None:
        head = text[: text.index("(")]
        self._opname, _, overload = head.partition(".")
        self._overloadname = overload if overload not in ("", "default") else "default"
        self.namespace = namespace
        self._text = text
        self.run: Any = None
        self.op = op
        self.form = form
        self.tags = tags_of(tags, form)
        self._parsed: schema.Schema | None = None
        self._schema_view: FunctionSchema | None = None
        self.__name__ = f"{self._opname}.{self._overloadname}"
        self.__qualname__ = self.__name__
        self.__module__ = f"torchlab._ops.{namespace}"

    @property
    def parsed(self) -> schema.Schema:
        """The schema as torchlab reads it."""
        if self._parsed is None:
            text = self._text.replace(".default(", "(", 1)
            self._parsed = schema.parse(f"{self.namespace}::{text}")
        return self._parsed

    @property
    def schema(self) -> schema.Schema:
        """The declaration's schema; of a form that has none, its own."""
        return self.op.schema if self.op is not None else self.parsed

    @property
    def overloadpacket(self) -> Any:
        """All overloads of this name: `torchlab.ops.aten.add`."""
        return finder[0](self.namespace, self._opname)

    @property
    def _schema(self) -> FunctionSchema:
        if self._schema_view is None:
            self._schema_view = FunctionSchema(self.parsed)
        return self._schema_view

    def name(self) -> str:
        """PyTorch's full name: "aten::add.Tensor"; a default overload's has no point."""
        tail = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self._opname}{tail}"

    @property
    def is_view(self) -> bool:
        """Whether a result shares memory with an argument that is not written."""
        facts = self.parsed.returns
        return bool(facts) and not self.parsed.is_mutable and any(r.alias for r in facts)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return ask(self, args, kwargs)

    def bound(self, args: Any, kwargs: Any) -> tuple[Any, ...]:
        """All arguments by position, as the declaration takes them: it may have more of them than
        PyTorch's overload."""
        full = bind(self.parsed, args, kwargs)
        return (*full, *(a.default for a in self.schema.arguments[len(full) :]))

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """The result by other operators; NotImplemented if it is none of them."""
        if self.op is None or self.op.family != "composite" or self.form != "functional":
            return NotImplemented
        return self.op.decompose(*bind(self.parsed, args, kwargs))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Op) and other is self.op and self.form == "functional"
        )

    def __hash__(self) -> int:
        return hash(self.op) if self.op is not None and self.form == "functional" else id(self)

    def __str__(self) -> str:
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def __repr__(self) -> str:
        return (
            f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"
        )

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return find, (self.namespace, self._opname, self._overloadname)


finder: list[Callable[[str, str], Any]] = []  # torchlab._ops puts its look-up of packets here


def find(namespace: str, name: str, overload: str) -> OpOverload:
    """The overload of these names (what a pickle of one asks for)."""
    return getattr(finder[0](namespace, name), overload)


# What a declaration leaves out of PyTorch's arguments, with the values that ask for nothing.
_LEFT_OUT: dict[str, dict[str, tuple[Any, ...]]] = {
    "_to_copy": {
        "layout": (None, strided),
        "pin_memory": (None, False),
        "non_blocking": (None, False, True),
    },
}


def bind(parsed: schema.Schema, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """All arguments by position, defaults filled in. TypeError as PyTorch's where one is missing,
    unknown or given twice."""
    named = dict(kwargs)
    for name, neutral in _LEFT_OUT.get(parsed.name, {}).items() if named else ():
        if named.get(name) in neutral:
            named.pop(name, None)
    where = f"{parsed.namespace}::{parsed.name}()"
    full: list[Any] = []
    rest = iter(args)
    given = 0
    for a in parsed.arguments:
        if not a.kwarg_only and given < len(args):
            if a.name in named:
                raise TypeError(f"{where} got multiple values for argument '{a.name}'")
            full.append(next(rest))
            given += 1
        elif a.name in named:
            full.append(named.pop(a.name))
        elif a.has_default:
            full.append(list(a.default) if type(a.default) is tuple else a.default)
        elif a.kwarg_only and a.write:
            full.append(None)
        else:
            raise RuntimeError(
                f"{where} is missing value for argument '{a.name}'. Declaration: {parsed}"
            )
    if given < len(args):
        raise RuntimeError(
            f"{where} expected at most {given} argument(s) but received {len(args)} argument(s)."
            f" Declaration: {parsed}"
        )
    if named:
        raise RuntimeError(
            f"{where}: Unknown keyword argument '{next(iter(named))}' for operator"
            f" '{parsed.namespace}::{parsed.name}'. Schema: {parsed}"
        )
    if parsed.namespace != "aten":
        _check_types(parsed, full, where)
    return tuple(full)


def _check_types(parsed: schema.Schema, full: list[Any], where: str) -> None:
    """RuntimeError where a tensor is missing, or is where a number belongs; torchlab's own
    operators check by themselves."""
    for i, (a, v) in enumerate(zip(parsed.arguments, full, strict=True)):
        if v is None and a.type.optional:
            continue
        if a.type.base != "Tensor":
            fits = not isinstance(v, Tensor)
        else:
            fits = isinstance(v, (list, tuple)) if a.type.list else isinstance(v, Tensor)
        if not fits:
            raise RuntimeError(
                f"{where} Expected a value of type '{a.type}' for argument '{a.name}' but instead"
                f" found type '{type(v).__name__}'. Position: {i}. Declaration: {parsed}"
            )


def trimmed(parsed: schema.Schema, full: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The call as a dispatch handler is told it: trailing defaults drop out, keyword-only arguments
    that are not at their defaults come by name."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for a, v in zip(parsed.arguments, full, strict=True):
        if not a.kwarg_only:
            positional.append(_listed(a, v))
        elif not _is_default(a, v):
            named[a.name] = _listed(a, v)
    n = len(positional)
    while n and _is_default(parsed.arguments[n - 1], positional[n - 1]):
        n -= 1
    return tuple(positional[:n]), named


def _listed(a: schema.Argument, v: Any) -> Any:
    """A list argument as PyTorch hands it on: a list, a lone number repeated."""
    if not a.type.list or v is None:
        return v
    if isinstance(v, (tuple, list)):
        return list(v)
    return [v] * (a.type.size or 1) if isinstance(v, (int, float)) else v


def _is_default(a: schema.Argument, v: Any) -> bool:
    if not a.has_default:
        return False
    d = a.default
    if d is None or v is None:
        return d is v
    if isinstance(d, tuple):
        return isinstance(v, (tuple, list)) and tuple(v) == d
    if type(v) not in (int, float, bool, str, complex):
        return False
    return v == d and isinstance(v, bool) == isinstance(d, bool)


def ask(overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an overload: whoever listens is asked, else it runs."""
    if TLS.function_modes or modes.overriding((*args, *kwargs.values())):
        return modes.ask_functions(overload, (*args, *kwargs.values()), args, kwargs)
    return overload.run(args, kwargs)


__all__ = [
    "AliasInfo", "FunctionSchema", "OpOverload", "SchemaArgument", "ask", "bind", "find",
    "finder", "trimmed",
]  # fmt: skip
