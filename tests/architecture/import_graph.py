"""Reads the imports of a package's files with `ast`, without importing anything."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Import:
    """One import as it stands in a file."""

    importer: str
    """The full name of the importing module."""
    target: str
    """The full name of a module of the package, or the top-level name of a foreign one."""
    line: int
    in_function: bool
    type_checking: bool
    """Under `if TYPE_CHECKING:`, so never executed."""
    through_lazy: bool
    """The argument of a call `lazy("...")`."""


def modules_of(package: pathlib.Path) -> dict[str, pathlib.Path]:
    """Full module name -> file, for every .py file of the package folder."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        if not all(part.isidentifier() for part in parts):
            continue
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)
    return name == "TYPE_CHECKING"


class _Reader(ast.NodeVisitor):
    def __init__(self, module: str, is_package: bool, known: dict[str, pathlib.Path]) -> None:
        self.module = module
        self.is_package = is_package
        self.known = known
        self.root = module.partition(".")[0]
        self.functions = 0
        self.type_checking = False
        self.imports: list[Import] = []

    def _add(self, target: str, line: int, lazy: bool = False) -> None:
        if target.partition(".")[0] == self.root:
            while target not in self.known and "." in target:  # a name in a module, not a module
                target = target.rpartition(".")[0]
        else:
            target = target.partition(".")[0]
        self.imports.append(
            Import(self.module, target, line, self.functions > 0, self.type_checking, lazy)
        )

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            parts = self.module.split(".")
            up = node.level - 1 if self.is_package else node.level
            base = ".".join(parts[: len(parts) - up] + ([base] if base else []))
        for alias in node.names:
            self._add(base if alias.name == "*" else f"{base}.{alias.name}", node.lineno)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if name == "lazy" and node.args and isinstance(node.args[0], ast.Constant):
            self._add(str(node.args[0].value), node.lineno, lazy=True)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if not _is_type_checking(node.test):
            self.generic_visit(node)
            return
        outer, self.type_checking = self.type_checking, True
        for child in node.body:
            self.visit(child)
        self.type_checking = outer
        for child in node.orelse:
            self.visit(child)

    def _function(self, node: ast.AST) -> None:
        self.functions += 1
        self.generic_visit(node)
        self.functions -= 1

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function


def imports_of(module: str, known: dict[str, pathlib.Path]) -> list[Import]:
    """The imports of one module of the package that `known` lists."""
    path = known[module]
    reader = _Reader(module, path.name == "__init__.py", known)
    reader.visit(ast.parse(path.read_text(encoding="utf-8"), str(path)))
    return reader.imports


def all_imports(known: dict[str, pathlib.Path]) -> Iterator[Import]:
    """The imports of all modules, in the order of their names."""
    for module in known:
        yield from imports_of(module, known)
