"""The rules of the architecture. Each takes imports and gives one line of text per violation."""

from __future__ import annotations

import graphlib
import sys
from collections.abc import Iterable

from tests.architecture import layers
from tests.architecture.import_graph import Import


def _below(module: str) -> str:
    return module.partition(".")[2]


def _own(imports: Iterable[Import]) -> list[Import]:
    """Imports of torchlab's modules that are executed at some time."""
    return [i for i in imports if i.target.partition(".")[0] == layers.FACE and not i.type_checking]


def _is_container(module: str) -> bool:
    return module in (layers.FACE, layers.FACE + "._core")


def _on_top(module: str) -> bool:
    found = layers.place(_below(module))
    return found is not None and found[0] == len(layers.LINES) - 1


def _is_shared(part: str) -> bool:
    return part.startswith("_") or part in layers.SHARED_BY_SIBLINGS


def unplaced(modules: Iterable[str]) -> list[str]:
    """Modules that the table of layers does not know."""
    return [
        f"{module} has no place in tests/architecture/layers.py"
        for module in modules
        if not _is_container(module) and layers.place(_below(module)) is None
    ]


def upward(imports: Iterable[Import]) -> list[str]:
    """Imports of higher lines, of units further right, of the face, and of a sibling family."""
    wrong = []
    for i in _own(imports):
        if _is_container(i.importer):
            continue
        if i.through_lazy and i.target == layers.FACE and _on_top(i.importer):
            continue  # who uses torchlab as a user does may take the public names, when called
        if _is_container(i.target):
            wrong.append(f"{i.importer}:{i.line} imports {i.target}, which lies above it")
            continue
        source, target = layers.place(_below(i.importer)), layers.place(_below(i.target))
        if source is None or target is None:
            continue  # `unplaced` says so
        if target[:2] > source[:2]:
            where = "above it" if target[0] > source[0] else "to its right in the line"
            wrong.append(
                f"{i.importer}:{i.line} (line {source[0]}) imports {i.target} (line {target[0]}), "
                f"which lies {where}"
            )
        prefix = f"{layers.FACE}.{layers.SIBLINGS}."
        if i.importer.startswith(prefix) and i.target.startswith(prefix):
            mine = i.importer.removeprefix(prefix).partition(".")[0]
            other = i.target.removeprefix(prefix).partition(".")[0]
            if mine != other and not _is_shared(other):
                wrong.append(
                    f"{i.importer}:{i.line} imports its sibling {i.target}; look the operator up "
                    "in the registry when it is called"
                )
    return list(dict.fromkeys(wrong))  # one import statement may name several things


def cycles(imports: Iterable[Import]) -> list[str]:
    """The first cycle of imports among files, if there is one."""
    graph: dict[str, set[str]] = {}
    for i in _own(imports):
        if i.importer != i.target and not i.through_lazy:
            graph.setdefault(i.importer, set()).add(i.target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as e:
        return [" <- ".join(e.args[1])]
    return []


def inside_functions(imports: Iterable[Import]) -> list[str]:
    """Imports in a function's body: they hide dependencies and cost time at each call."""
    return [
        f"{i.importer}:{i.line} imports {i.target} inside a function"
        for i in imports
        if i.in_function and not i.type_checking and not i.through_lazy
    ]


def foreign(imports: Iterable[Import]) -> list[str]:
    """Third-party modules imported at the top of a file that may not do so."""
    wrong = []
    for i in imports:
        if i.target.partition(".")[0] == layers.FACE or i.type_checking:
            continue
        if i.target in sys.stdlib_module_names or i.through_lazy:
            continue
        below = _below(i.importer)
        allowed = layers.THIRD_PARTY_EVERYWHERE
        for prefix, more in layers.THIRD_PARTY.items():
            if below == prefix or below.startswith(prefix + "."):
                allowed = allowed | more
        place = layers.place(below)
        if place is not None and place[2] in layers.STANDARD_LIBRARY_ONLY:
            allowed = frozenset()
        if i.target not in allowed:
            wrong.append(f'{i.importer}:{i.line} imports {i.target}; use lazy("{i.target}")')
    return wrong
