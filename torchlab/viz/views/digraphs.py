"""The two graphs as a `graphviz.Digraph`, for those who work on with it. Nothing here needs
`dot`."""

from __future__ import annotations

from typing import Any

from torchlab._core.lazy import lazy
from torchlab.viz import palette
from torchlab.viz.snapshots.autograd import AutogradSnapshot
from torchlab.viz.snapshots.common import shape_text
from torchlab.viz.snapshots.fusion import FusionSnapshot

_graphviz = lazy(
    "graphviz", "pip install graphviz; its Python package is enough to build the source"
)


def _label(*lines: str) -> str:
    """A label in which graphviz reads nothing as markup or as an escape."""
    return "\n".join(_graphviz.escape(t) for t in lines if t)


def _digraph(name: str) -> Any:
    c = palette.ink("light")
    return _graphviz.Digraph(
        name,
        node_attr={
            "shape": "box",
            "style": "filled,rounded",
            "fontname": "monospace",
            "fontsize": "11",
        },
        edge_attr={"color": c["edge"], "arrowsize": "0.7"},
    )


def autograd_digraph(snapshot: AutogradSnapshot) -> Any:
    """The tape as a `graphviz.Digraph`, with the snapshot's node ids."""
    c = palette.ink("light")
    dot = _digraph("autograd")
    for node in snapshot["nodes"]:
        kind = "leaf" if node["kind"] == "leaf" else "op"
        info = (node["outputs"] or node["inputs"])[:1]
        dot.node(
            node["id"],
            _label(
                node["label"] or node["name"],
                *(f"{shape_text(i['shape'])} {i['dtype']}" for i in info),
            ),
            fillcolor=c[kind],
            color=c[f"{kind}-line"],
        )
    for edge in snapshot["edges"]:
        dot.edge(edge["src"], edge["dst"])
    return dot


def fusion_digraph(snapshot: FusionSnapshot) -> Any:
    """The lowered graph as a `graphviz.Digraph`, a cluster per kernel."""
    c = palette.ink("light")
    dot = _digraph("fusion")
    grouped = {m for g in snapshot["groups"] for m in g["nodes"]}
    nodes = {n["id"]: n for n in snapshot["nodes"]}

    def add(target: Any, identity: str) -> None:
        node = nodes[identity]
        op = node["kind"] == "op"
        target.node(
            identity,
            _label(
                f"{identity} = {node['op']}" if op else identity,
                f"{shape_text(node['shape'])} {node['dtype']}",
            ),
            fillcolor=c["op" if op else "io"],
            color=c["op-line" if op else "io-line"],
        )

    for group in snapshot["groups"]:
        with dot.subgraph(name=f"cluster_{group['id']}") as cluster:
            cluster.attr(
                label=_label(group["name"]),
                color=c["group-line"],
                fontname="monospace",
                fontsize="11",
            )
            for member in group["nodes"]:
                add(cluster, member)
    for identity in nodes:
        if identity not in grouped:
            add(dot, identity)
    for source, target in snapshot["edges"]:
        dot.edge(source, target)
    return dot
