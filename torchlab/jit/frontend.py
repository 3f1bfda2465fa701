"""Which Python a script may consist of, and the errors that say where it leaves that.

The subset is TorchScript's: functions with positional and keyword parameters, assignments, `if`,
`for`, `while`, `with`, `assert`, `raise`, `return`, comprehensions of lists and dictionaries, calls
of tensors' operators, of the builtins below, and of Python functions that keep to it themselves.

Source: https://docs.pytorch.org/docs/2.13/jit_language_reference.html
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from typing import Any

_REFUSED: dict[type[ast.AST], str] = {
    ast.Try: "try blocks",
    ast.FunctionDef: "function definitions",
    ast.AsyncFunctionDef: "async function definitions",
    ast.ClassDef: "class definitions",
    ast.Global: "global variables",
    ast.Nonlocal: "nonlocal variables",
    ast.Import: "import statements",
    ast.ImportFrom: "import statements",
    ast.AsyncFor: "async for loops",
    ast.AsyncWith: "async with statements",
    ast.Lambda: "Lambda",
    ast.Yield: "Yield",
    ast.YieldFrom: "YieldFrom",
    ast.Await: "Await",
    ast.Set: "Set",
    ast.SetComp: "SetComp",
    ast.NamedExpr: "NamedExpr",
    ast.Match: "match statements",
}
if hasattr(ast, "TryStar"):
    _REFUSED[ast.TryStar] = "try blocks"

_BUILTINS = frozenset(
    "abs all any bin bool chr complex dict divmod enumerate float getattr hasattr hash hex"
    " int isinstance len list max min oct ord pow print range reversed round sorted str sum"
    " super tuple zip slice None True False Ellipsis NotImplemented __debug__".split()
)


class FrontendError(Exception):
    """The source of a script is not what it may be; shows the place."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{message}:\n{place}")
        self.msg, self.source_range = message, place


class NotSupportedError(FrontendError):
    """Something that scripts cannot do."""


class UnsupportedNodeError(NotSupportedError):
    """A statement or an expression that scripts have not got."""


class Source:
    """The source of one function: its tree with the line numbers of its file."""

    def __init__(self, fn: Any) -> None:
        try:
            lines, first = inspect.getsourcelines(fn)
            self.file = inspect.getsourcefile(fn) or fn.__code__.co_filename
        except (OSError, TypeError) as e:
            raise OSError(
                f"Can't get source for {fn}. torch.jit.script needs the source of what it scripts:"
                " define it in a file or a notebook's cell."
            ) from e
        self.text = "".join(lines)
        self.first = first
        self.lines = self.text.splitlines()
        tree = ast.parse(textwrap.dedent(self.text))
        found = tree.body[0] if len(tree.body) == 1 else None
        if not isinstance(found, ast.FunctionDef):
            raise RuntimeError(f"Expected a single top-level function: {self.file}:{first}")
        self.tree = _Live().visit(found)
        self.margin = len(self.lines[0]) - len(textwrap.dedent(self.text).splitlines()[0])

    def place(self, node: Any) -> str:
        """The lines of the function with a mark under `node`."""
        at = node.lineno - 1
        width = 1
        if node.end_lineno == node.lineno:
            width = max(1, node.end_col_offset - node.col_offset)
        mark = " " * (node.col_offset + self.margin) + "~" * width + " <--- HERE"
        shown = [*self.lines[: at + 1], mark, *self.lines[at + 1 : at + 4]]
        head = f'  File "{self.file}", line {self.first + at}\n'
        return head + textwrap.indent("\n".join(shown), "    ") + "\n"


class _Live(ast.NodeTransformer):
    """Leaves out the branches that no script takes: of `if not torch.jit.is_scripting():` and its
    like, and what stands after a `return` or `raise`. They may be any Python, and name anything."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for statements in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(statements, list):
                ends = [
                    i for i, x in enumerate(statements) if isinstance(x, (ast.Return, ast.Raise))
                ]
                if ends:
                    del statements[ends[0] + 1 :]
        return node

    def visit_If(self, node: ast.If) -> Any:
        taken = _decided(node.test)
        if taken is None:
            return self.generic_visit(node)
        return [self.visit(x) for x in (node.body if taken else node.orelse)] or ast.Pass(
            lineno=node.lineno, col_offset=node.col_offset,
            end_lineno=node.end_lineno, end_col_offset=node.end_col_offset,
        )  # fmt: skip

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        taken = _decided(node.test)
        if taken is None:
            return self.generic_visit(node)
        return self.visit(node.body if taken else node.orelse)


def _decided(test: ast.expr) -> bool | None:
    """What a condition is in every script; None where it depends on values."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _decided(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        decisive = isinstance(test.op, ast.Or)
        parts = [_decided(x) for x in test.values]
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive
    if isinstance(test, ast.Call) and not test.args and not test.keywords:
        called = test.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        return True if name == "is_scripting" else None
    return None


def check(source: Source) -> None:
    """Raise an error that shows the place where a function leaves the language of scripts."""
    tree = source.tree
    for extra in (tree.args.vararg, tree.args.kwarg):
        if extra is not None:
            raise _varied(source, extra)
    for default in tree.args.kw_defaults:
        if default is not None:
            raise _varied(source, default)
    for statement in tree.body:
        for node in ast.walk(statement):
            refused = _REFUSED.get(type(node))
            if refused is not None:
                raise UnsupportedNodeError(source.place(node), f"{refused} aren't supported")
            if isinstance(node, (ast.For, ast.While)) and node.orelse:
                kind = "for" if isinstance(node, ast.For) else "while"
                raise UnsupportedNodeError(
                    source.place(node.orelse[0]), f"else branches of {kind} loops aren't supported"
                )


def _varied(source: Source, node: Any) -> NotSupportedError:
    return NotSupportedError(
        source.place(node),
        "Compiled functions can't take variable number of arguments or use keyword-only arguments"
        " with defaults",
    )


def names_of(source: Source) -> list[tuple[str, tuple[str, ...], ast.AST]]:
    """What the body reads and does not assign: (name, the attributes asked of it, the place)."""
    tree = source.tree
    own = {a.arg for a in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            own.add(node.id)
    found = []
    inner: set[int] = set()
    for statement in tree.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.AnnAssign):  # what a note says is not computed
                inner.update(id(x) for x in ast.walk(node.annotation))
    for statement in tree.body:
        for node in ast.walk(statement):
            path: list[str] = []
            root: Any = node
            while isinstance(root, ast.Attribute):
                path.insert(0, root.attr)
                inner.add(id(root.value))
                root = root.value
            if isinstance(root, ast.Name) and id(node) not in inner and root.id not in own:
                found.append((root.id, tuple(path), node))
    return found


def value_of(fn: Any, name: str, source: Source, node: ast.AST) -> Any:
    """What a name of the body stands for outside it."""
    code = fn.__code__
    if name in code.co_freevars:
        try:
            return fn.__closure__[code.co_freevars.index(name)].cell_contents
        except ValueError:
            raise RuntimeError(f"\nundefined value {name}:\n{source.place(node)}") from None
    if name in fn.__globals__:
        return fn.__globals__[name]
    if hasattr(builtins, name):
        value = getattr(builtins, name)
        is_error = isinstance(value, type) and issubclass(value, BaseException)
        if name not in _BUILTINS and not is_error:
            raise RuntimeError(
                f"\nPython builtin {value!r} is currently not supported in Torchscript:\n"
                + source.place(node)
            )
        return value
    raise RuntimeError(f"\nundefined value {name}:\n{source.place(node)}")


__all__ = ["FrontendError", "NotSupportedError", "Source", "UnsupportedNodeError", "check"]
