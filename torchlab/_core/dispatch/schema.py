"""Operator schemas in PyTorch's notation, parsed once when an operator is declared.

    add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
    ^name ^overload   ^ alias set `a`, written to      ^ keyword-only from here

`parse` gives a `Schema` of `Argument` and `Return` records, and `str(schema)` writes the canonical
text back, byte for byte what PyTorch prints for the same operator (floats with 17 digits, as it
does). The alias marks are kept, since views, in-place checks and the generated calls read them:
`Tensor(a)` is a view of argument set `a`, `Tensor(a!)` writes to it, and in `Tensor(a -> *)` the
value belongs to any set afterwards (it may end up in a list of views, as in `split`).

Source of the notation: PyTorch, aten/src/ATen/native/README.md. One parse takes about 15 µs.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_STRING = r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
_NAME = r"[A-Za-z_]\w*"
_PARAMETRIC = r"(?:Dict|Future|RRef|Await|Tuple|Union)\([^()]*\)"
_TYPE = rf"""\s*
    ({_PARAMETRIC} | [A-Za-z_][\w.]* | \([^()]*\))      # 1 base
    (\([^()]*\))?                                       # 2 alias of the base, or of the elements
    (\?)?                                               # 3 optional base or element
    (\[\d*\])?                                          # 4 list
    (\([^()]*\))?                                       # 5 alias of the list itself
    (\?)?                                               # 6 optional list
"""
_HEAD_RE = re.compile(rf"\s*(?:({_NAME})::)?({_NAME})(?:\.({_NAME}))?\s*\(")
_TYPE_RE = re.compile(_TYPE, re.VERBOSE)
_ARGUMENT_RE = re.compile(
    rf"""{_TYPE}
    \s+({_NAME})                                                            # 7 name
    (?:\s*=\s*({_STRING} | \[[^\[\]]*\] | [^\s,()\[\]"'=]+))?               # 8 default
    \s*([,)])                                                               # 9 what follows
    """,
    re.VERBOSE,
)
_RETURN_RE = re.compile(rf"{_TYPE} (?:\s+({_NAME}))? \s*([,)]|$)", re.VERBOSE)
_MARKER_RE = re.compile(r"\s*(\*|\.\.\.)\s*([,)])")
_EMPTY_RE = re.compile(r"\s*\)")
_ARROW_RE = re.compile(r"\s*->\s*")
_END_RE = re.compile(r"\s*$")
_SET = r"(?:[a-z]\d*|\*)"  # an alias set: a, a0, or * for all
_ALIAS_RE = re.compile(
    rf"\(\s*({_SET}(?:\s*\|\s*{_SET})*)\s*(!)?\s*(?:->\s*([a-z0-9*|\s]+?))?\s*\)"
)
_ESCAPES = str.maketrans(
    {
        "\\": "\\\\",
        '"': '\\"',
        "'": "\\'",
        "\n": "\\n",
        "\t": "\\t",
        "\r": "\\r",
        "\f": "\\f",
        "\v": "\\v",
        "\a": "\\a",
        "\b": "\\b",
    }
)
_CONSTANTS: dict[str, Any] = {"None": None, "True": True, "False": False}
# Names that native_functions.yaml uses for an integer default.
_REDUCTIONS = {"Mean": 1, "Sum": 2}
_NAMED_DEFAULTS = frozenset({"ScalarType", "Layout", "MemoryFormat", "Device", "QScheme"})


class SchemaError(RuntimeError):
    """A schema that cannot be read; `column` counts from 0 and the message shows it with a caret.

    PyTorch raises RuntimeError here too.
    """

    def __init__(self, message: str, text: str, column: int) -> None:
        super().__init__(f"schema: {message} (column {column})\n  {text}\n  {' ' * column}^")
        self.text = text
        self.column = column


@dataclass(frozen=True, slots=True)
class Type:
    """The type of an argument or a result: `int[2]?` is Type("int", True, 2, True).

    `optional` says that the whole value may be None, `elem_optional` that an element of the list
    may be: `Tensor?[]` is Type("Tensor", list=True, elem_optional=True). `size` is the declared
    length of a list: an int given by the user is repeated that often. It is None where only a list
    is welcome, and 1 bounds nothing, it only lets the user give an int (`int[1] dim=[-2, -1]`).
    """

    base: str
    list: bool = False
    size: int | None = None
    optional: bool = False
    elem_optional: bool = False

    def __str__(self) -> str:
        return _type_text(self, "", "")


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter. `default` means something only where `has_default` is true.

    Lists are tuples in `default`, so that a schema can be hashed; `int[2] stride=1` has the default
    (1, 1). `alias` is the alias set (`a`, `*`, or `a|b`), `write` its
    `!`, `alias_after` what follows `->`. `alias_outside` is true where the mark stands behind the
    brackets (`t[](a!)`: the list itself is written, not its elements).
    """

    name: str
    type: Type
    default: Any = None
    has_default: bool = False
    kwarg_only: bool = False
    alias: str | None = None
    write: bool = False
    alias_after: str | None = None
    alias_outside: bool = False

    def __str__(self) -> str:
        text = f"{_annotated(self)} {self.name}"
        return f"{text}={_value_text(self.default, self.type)}" if self.has_default else text


@dataclass(frozen=True, slots=True)
class Return:
    """One result; `name` is None where the schema gives none. The rest as in `Argument`."""

    name: str | None
    type: Type
    alias: str | None = None
    write: bool = False
    alias_after: str | None = None
    alias_outside: bool = False

    def __str__(self) -> str:
        return f"{_annotated(self)} {self.name}" if self.name else _annotated(self)


@dataclass(frozen=True, slots=True)
class Schema:
    """An operator's signature. `overload` is "" for the default one, `namespace` may be ""."""

    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]
    namespace: str = ""
    is_vararg: bool = False

    @property
    def qualname(self) -> str:
        """`name.overload`, or `name` alone for the default overload."""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def is_mutable(self) -> bool:
        """Whether the operator writes to one of its arguments."""
        return any(a.write for a in self.arguments)

    @property
    def out_arguments(self) -> tuple[Argument, ...]:
        """The keyword-only arguments that are written to: `out`, or `values` and `indices`."""
        return tuple(a for a in self.arguments if a.write and a.kwarg_only)

    def __str__(self) -> str:
        parts: list[str] = []
        starred = False
        for argument in self.arguments:
            if argument.kwarg_only and not starred:
                parts.append("*")
                starred = True
            parts.append(str(argument))
        if self.is_vararg:
            parts.append("...")
        prefix = f"{self.namespace}::" if self.namespace else ""
        results = ", ".join(map(str, self.returns))
        # A single tuple type needs parentheses around it to be told from several results.
        if len(self.returns) != 1 or results.startswith("("):
            results = f"({results})"
        return f"{prefix}{self.qualname}({', '.join(parts)}) -> {results}"


def parse(text: str) -> Schema:
    """The `Schema` that `text` describes; raises SchemaError, with the column, if malformed."""
    head = _HEAD_RE.match(text)
    if head is None:
        raise SchemaError("expected `name.overload(`", text, len(text) - len(text.lstrip()))
    namespace, name, overload = head.groups()
    arguments, is_vararg, position = _arguments(text, head.end())
    arrow = _ARROW_RE.match(text, position)
    if arrow is None:
        raise SchemaError("expected `->` and the results", text, position)
    returns = _returns(text, arrow.end())
    return Schema(name, overload or "", arguments, returns, namespace or "", is_vararg)


def _arguments(text: str, position: int) -> tuple[tuple[Argument, ...], bool, int]:
    arguments: list[Argument] = []
    names: set[str] = set()
    kwarg_only = is_vararg = seen_default = False
    if empty := _EMPTY_RE.match(text, position):
        return (), False, empty.end()
    while True:
        match = _ARGUMENT_RE.match(text, position)
        if match is None:
            match = _MARKER_RE.match(text, position)
            if match is None:
                raise _explain(text, position, is_return=False)
            if match[1] == "...":
                is_vararg = True
            elif kwarg_only:
                raise SchemaError("a second `*`", text, match.start(1))
            else:
                kwarg_only = True
            if is_vararg and match[2] == ",":
                raise SchemaError("`...` must come last", text, match.start(1))
        else:
            base, inner, optional, brackets, outer, list_optional, name, written, _ = match.groups()
            if outer and not brackets or list_optional and not brackets:
                column = match.start(5 if outer else 6)
                raise SchemaError("expected the argument's name", text, column)
            kind = _type(base, optional, brackets, list_optional)
            if name in names:
                raise SchemaError(f"argument `{name}` appears twice", text, match.start(7))
            names.add(name)
            default = None
            if written is not None:
                default = _default(written, kind, text, match.start(8))
                seen_default = True
            elif seen_default and not kwarg_only and not kind.list:
                raise SchemaError(
                    f"argument `{name}` without a default follows one with a default",
                    text,
                    match.start(7),
                )
            if inner or outer:
                alias = _alias(text, match)
                arguments.append(
                    Argument(name, kind, default, written is not None, kwarg_only, *alias)
                )
            else:
                arguments.append(Argument(name, kind, default, written is not None, kwarg_only))
        position = match.end()
        if text[position - 1] == ")":
            return tuple(arguments), is_vararg, position


def _returns(text: str, position: int) -> tuple[Return, ...]:
    several = text[position : position + 1] == "("
    if several:
        position += 1
        if empty := _EMPTY_RE.match(text, position):
            return _expect_end(text, empty.end(), ())
    returns: list[Return] = []
    while True:
        match = _RETURN_RE.match(text, position)
        if match is None:
            raise _explain(text, position, is_return=True)
        base, inner, optional, brackets, outer, list_optional, name, follows = match.groups()
        if (outer or list_optional) and not brackets:
            raise SchemaError("expected a result", text, match.start(5 if outer else 6))
        alias = _alias(text, match) if inner or outer else ()
        returns.append(Return(name, _type(base, optional, brackets, list_optional), *alias))
        position = match.end()
        if not several:
            if follows:
                raise SchemaError("several results need parentheses", text, position - 1)
            return tuple(returns)
        if follows == ")":
            return _expect_end(text, position, tuple(returns))
        if not follows:
            raise SchemaError("expected `,` or `)` after a result", text, len(text))


def _expect_end(text: str, position: int, returns: tuple[Return, ...]) -> tuple[Return, ...]:
    if _END_RE.match(text, position) is None:
        raise SchemaError("expected the end of the schema", text, position)
    return returns


@lru_cache(maxsize=4096)
def _type(base: str, optional: str | None, brackets: str | None, list_optional: str | None) -> Type:
    if brackets is None:
        return Type(base, False, None, optional is not None, False)
    size = int(brackets[1:-1]) if len(brackets) > 2 else None
    return Type(base, True, size, list_optional is not None, optional is not None)


def _alias(text: str, match: re.Match[str]) -> tuple[str, bool, str | None, bool]:
    """(alias, write, alias_after, alias_outside) from groups 2 and 5 of a type."""
    outside = match[2] is None
    group = 5 if outside else 2
    if not outside and match[5] is not None:
        raise SchemaError("two alias marks on one type", text, match.start(5))
    mark = _ALIAS_RE.fullmatch(match[group])
    if mark is None:
        raise SchemaError(
            "expected an alias mark such as (a), (a!), (a|b) or (a -> *)", text, match.start(group)
        )
    sets, write, after = mark.groups()
    return sets.replace(" ", ""), write is not None, after and after.replace(" ", ""), outside


def _default(written: str, kind: Type, text: str, column: int) -> Any:
    if written in _CONSTANTS:
        return _CONSTANTS[written]
    if kind.base in _NAMED_DEFAULTS and written.isidentifier():
        return written
    if written in _REDUCTIONS and kind.base == "int":
        return _REDUCTIONS[written]
    try:
        value = ast.literal_eval(written)
    except (ValueError, SyntaxError) as e:
        raise SchemaError(f"cannot read the default `{written}`", text, column) from e
    if kind.base == "float" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    # `int[2] stride=1` is (1, 1); in `int[2]? size=1` PyTorch keeps the int.
    if kind.size is not None and not kind.optional and not isinstance(value, list):
        return (value,) * kind.size
    if isinstance(value, list):
        if not kind.list:
            raise SchemaError(f"a list as the default of `{kind}`", text, column)
        if kind.size not in (None, 1) and len(value) not in (0, kind.size):
            raise SchemaError(f"the default of `{kind}` has {len(value)} elements", text, column)
        return tuple(float(v) for v in value) if kind.base == "float" else tuple(value)
    return value


def _explain(text: str, position: int, is_return: bool) -> SchemaError:
    """Why no argument or result could be read at `position`: walk on as far as it makes sense."""
    kind = _TYPE_RE.match(text, position)
    if kind is None or text[kind.start(1) : kind.end(1)] == "":
        what = "a result's type" if is_return else "an argument's type, `*` or `)`"
        blank = len(text[position:]) - len(text[position:].lstrip())
        return SchemaError(f"expected {what}", text, position + blank)
    position = kind.end()
    name = re.compile(rf"\s+({_NAME})").match(text, position)
    if name is None:
        if is_return:
            return SchemaError("expected `,`, `)` or the end after a result", text, position)
        return SchemaError("expected the argument's name", text, position)
    position = name.end()
    equals = re.compile(r"\s*=\s*").match(text, position)
    if equals is not None:
        return SchemaError(f"cannot read the default of `{name[1]}`", text, equals.end())
    return SchemaError(f"expected `,` or `)` after `{name[1]}`", text, position)


def _annotated(item: Argument | Return) -> str:
    if item.alias is None:
        return _type_text(item.type, "", "")
    after = f" -> {item.alias_after}" if item.alias_after else ""
    mark = f"({item.alias}{'!' if item.write else ''}{after})"
    return _type_text(
        item.type, "" if item.alias_outside else mark, mark if item.alias_outside else ""
    )


def _type_text(kind: Type, inner: str, outer: str) -> str:
    last = "?" if kind.optional else ""
    if not kind.list:
        return f"{kind.base}{inner}{outer}{last}"
    size = "" if kind.size is None else kind.size
    return f"{kind.base}{inner}{'?' if kind.elem_optional else ''}[{size}]{outer}{last}"


def _value_text(value: Any, kind: Type) -> str:
    if isinstance(value, tuple):
        # As PyTorch: one int for a sized list of equal ones, but not for SymInt, nor for length 1.
        if kind.base == "int" and kind.size and len(value) > 1 and len(set(value)) == 1:
            return str(value[0])
        return f"[{', '.join(_value_text(v, kind) for v in value)}]"
    if isinstance(value, float):
        text = f"{value:.17g}"
        return text if set(text) & set(".en") else text + "."
    if isinstance(value, str) and kind.base not in _NAMED_DEFAULTS:
        return f'"{value.translate(_ESCAPES)}"'
    return str(value)
