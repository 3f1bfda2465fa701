"""A graph in the language of Graphviz, and as a picture through its program `dot`.

The interface is the part of pydot's that drawing needs; pydot itself is not needed.
Source: https://graphviz.org/doc/info/lang.html
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|-?[0-9]+(\.[0-9]+)?")


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    return text if text.startswith('"') else '"' + text.replace('"', r"\"") + '"'


def _attributes(given: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{k}={_quoted(str(v))}" for k, v in given.items())
    return f" [{shown}]" if shown else ""


class Node:
    """A box with a name and attributes."""

    def __init__(self, name: str = "", **attrs: Any) -> None:
        self.name, self.attrs = name, attrs

    def get_name(self) -> str:
        """The name, quoted where it has to be."""
        return _quoted(self.name)

    def get_label(self) -> Any:
        """The text in the box."""
        return self.attrs.get("label")

    def get_attributes(self) -> dict[str, Any]:
        """All attributes."""
        return self.attrs

    def to_string(self) -> str:
        """The statement."""
        return f"{self.get_name()}{_attributes(self.attrs)};"


class Edge:
    """An arrow from one node to another."""

    def __init__(self, src: str = "", dst: str = "", **attrs: Any) -> None:
        self.src, self.dst, self.attrs = src, dst, attrs

    def get_source(self) -> str:
        """The name of the node it starts at."""
        return _quoted(self.src)

    def get_destination(self) -> str:
        """The name of the node it ends at."""
        return _quoted(self.dst)

    def to_string(self) -> str:
        """The statement."""
        return f"{self.get_source()} -> {self.get_destination()}{_attributes(self.attrs)};"


class Graph:
    """Nodes, edges and graphs inside. kind: "digraph", or "subgraph" for one inside another."""

    kind = "subgraph"

    def __init__(self, graph_name: str = "G", **attrs: Any) -> None:
        self.name, self.attrs = graph_name, attrs
        self.parts: list[Node | Edge | Graph] = []

    def get_name(self) -> str:
        """The name, quoted where it has to be."""
        return _quoted(self.name)

    def add_node(self, node: Node) -> None:
        """One more node."""
        self.parts.append(node)

    def add_edge(self, edge: Edge) -> None:
        """One more edge."""
        self.parts.append(edge)

    def add_subgraph(self, graph: Graph) -> None:
        """One more graph inside."""
        self.parts.append(graph)

    def get_nodes(self) -> list[Node]:
        """The nodes, without those of graphs inside."""
        return [p for p in self.parts if isinstance(p, Node)]

    def get_edges(self) -> list[Edge]:
        """The edges."""
        return [p for p in self.parts if isinstance(p, Edge)]

    def get_subgraphs(self) -> list[Graph]:
        """The graphs inside."""
        return [p for p in self.parts if isinstance(p, Graph)]

    def to_string(self) -> str:
        """The whole graph in Graphviz's language."""
        lines = [f"{self.kind} {self.get_name()} {{"]
        lines += [f"{k}={_quoted(str(v))};" for k, v in self.attrs.items()]
        lines += [p.to_string() for p in self.parts]
        return "\n".join([*lines, "}"])

    def __str__(self) -> str:
        return self.to_string()


class Cluster(Graph):
    """A graph inside, with a frame around it."""

    def __init__(self, graph_name: str = "subG", **attrs: Any) -> None:
        super().__init__(f"cluster_{graph_name}", **attrs)


class Dot(Graph):
    """A directed graph that can be drawn."""

    kind = "digraph"

    def create(self, prog: str = "dot", format: str = "svg") -> bytes:
        """The picture; RuntimeError if Graphviz is not installed or does not understand."""
        found = shutil.which(prog)
        if found is None:
            raise RuntimeError(
                f"drawing a graph needs Graphviz's program '{prog}', which is not installed; "
                "to_string() and write_raw() give the graph as text without it"
            )
        done = subprocess.run(
            [found, f"-T{format}"], input=self.to_string().encode(), capture_output=True
        )
        if done.returncode:
            raise RuntimeError(f"'{prog}' failed: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def create_svg(self, prog: str = "dot") -> bytes:
        """The picture as SVG."""
        return self.create(prog, "svg")

    def create_png(self, prog: str = "dot") -> bytes:
        """The picture as PNG."""
        return self.create(prog, "png")

    def write(self, path: str | Path, prog: str = "dot", format: str = "raw") -> bool:
        """Write the picture ("raw": the text) to a file."""
        if format == "raw":
            Path(path).write_text(self.to_string())
        else:
            Path(path).write_bytes(self.create(prog, format))
        return True

    def write_raw(self, path: str | Path) -> bool:
        """Write the text."""
        return self.write(path)

    def write_svg(self, path: str | Path, prog: str = "dot") -> bool:
        """Write the picture as SVG."""
        return self.write(path, prog, "svg")

    def write_png(self, path: str | Path, prog: str = "dot") -> bool:
        """Write the picture as PNG."""
        return self.write(path, prog, "png")

    def write_pdf(self, path: str | Path, prog: str = "dot") -> bool:
        """Write the picture as PDF."""
        return self.write(path, prog, "pdf")

    def _repr_svg_(self) -> str:
        return self.create_svg().decode()
