"""Where nodes come from: stacks and other facts that are handed on from a graph that runs to the
graph that is being made.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import copy
import functools
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchlab.fx.graph import Graph
    from torchlab.fx.node import Node

__all__ = [
    "annotate",
    "annotate_fn",
    "preserve_node_meta",
    "has_preserved_node_meta",
    "set_stack_trace",
    "set_grad_fn_seq_nr",
    "reset_grad_fn_seq_nr",
    "format_stack",
    "set_current_meta",
    "get_current_meta",
    "NodeSource",
    "NodeSourceAction",
    "get_graph_provenance_json",
    "set_current_replay_node",
    "get_current_replay_node",
]


class _State(threading.local):
    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.preserve = False
        self.replay: Any = None


_STATE = _State()


class NodeSourceAction(Enum):
    """What a pass did to make a node."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """From which node, and by which pass, a node was made."""

    class NodeInfo:
        """Name, target and graph of the node that was there before."""

        def __init__(self, name: str, target: str, graph_id: int) -> None:
            self.name, self.target, self.graph_id = name, target, graph_id

    def __init__(
        self,
        node: Node | None,
        pass_name: str = "",
        action: NodeSourceAction | list[NodeSourceAction] | None = None,
    ) -> None:
        self.pass_name = pass_name
        if action is None:
            action = []
        elif not isinstance(action, list):
            action = [action]
        for a in action:
            if not isinstance(a, NodeSourceAction):
                raise AssertionError(f"Expected NodeSourceAction, got {type(a)}")
        self.action = action
        self.node_info: NodeSource.NodeInfo | None = None
        self.from_node: list[NodeSource] = []
        if node is not None:
            self.node_info = self.NodeInfo(node.name, str(node.target), id(node.graph))
            self.from_node = copy.deepcopy(node.meta.get("from_node", []))

    @property
    def name(self) -> str:
        """The name of the node before."""
        return self.node_info.name if self.node_info else ""

    @property
    def target(self) -> str:
        """The target of the node before."""
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self) -> int:
        """The id of its graph; -1 if there is none."""
        return self.node_info.graph_id if self.node_info else -1

    def _get_action_string(self) -> str:
        return "+".join(a.name.lower() for a in self.action)

    def print_readable(self, indent: int = 0) -> str:
        """The history as text, the oldest last."""
        if indent > 9:
            return ""
        text = " " * indent * 4
        text += f"(name={self.name}, pass_name={self.pass_name}, "
        text += f"action={self._get_action_string()}, graph_id={self.graph_id})\n"
        return text + "".join(n.print_readable(indent + 1) for n in self.from_node)

    def to_dict(self) -> dict[str, Any]:
        """The history as plain dicts and lists."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._get_action_string(),
            "from_node": [n.to_dict() for n in self.from_node],
        }

    def __repr__(self) -> str:
        return self.print_readable()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.target, self.graph_id, self.pass_name))

    @classmethod
    def _from_dict(cls, d: dict[str, Any] | None) -> NodeSource | None:
        if d is None:
            return None
        actions = [NodeSourceAction[a.upper()] for a in d.get("action", "").split("+") if a]
        made = cls(None, d.get("pass_name", ""), actions)
        if d.get("name"):
            made.node_info = cls.NodeInfo(d["name"], d.get("target", ""), d.get("graph_id", -1))
        made.from_node = [x for x in map(cls._from_dict, d.get("from_node", [])) if x is not None]
        return made


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Inside, nodes that tracers make get the facts of `get_current_meta()`, which an Interpreter
    keeps at those of the node it runs."""
    before = _STATE.preserve, _STATE.meta
    _STATE.preserve = enable
    _STATE.meta = dict(before[1])
    try:
        yield
    finally:
        _STATE.preserve, _STATE.meta = before


def has_preserved_node_meta() -> bool:
    """Whether `preserve_node_meta` is on in this thread."""
    return _STATE.preserve


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Inside, nodes that are traced get `meta["custom"]` with these entries (and those of the
    `annotate` around it), while `preserve_node_meta` is on."""
    before = _STATE.meta.get("custom")
    _STATE.meta = {**_STATE.meta, "custom": {**(before or {}), **annotation_dict}}
    try:
        yield
    finally:
        _STATE.meta = {k: v for k, v in _STATE.meta.items() if k != "custom"}
        if before is not None:
            _STATE.meta["custom"] = before


def annotate_fn(
    annotation_dict: dict[str, Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function runs under `annotate(annotation_dict)`."""

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return fn(*args, **kwargs)

        return annotated

    return decorate


def set_stack_trace(stack: list[str]) -> None:
    """The stack that nodes get while `preserve_node_meta` is on."""
    if _STATE.preserve and stack:
        _STATE.meta["stack_trace"] = "".join(stack)


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Note the number of the autograd node that is running."""
    if _STATE.preserve:
        _STATE.meta["grad_fn_seq_nr"] = [*_STATE.meta.get("grad_fn_seq_nr", []), seq_nr]
        _STATE.meta["in_grad_fn"] = _STATE.meta.get("in_grad_fn", 0) + 1


def reset_grad_fn_seq_nr() -> None:
    """Take back the last `set_grad_fn_seq_nr`."""
    if not _STATE.preserve:
        return
    level = _STATE.meta.get("in_grad_fn", 0)
    if level <= 1:
        _STATE.meta.pop("in_grad_fn", None)
        _STATE.meta.pop("grad_fn_seq_nr", None)
    else:
        _STATE.meta["in_grad_fn"] = level - 1
        _STATE.meta["grad_fn_seq_nr"] = _STATE.meta["grad_fn_seq_nr"][:-1]


def format_stack() -> list[str]:
    """The stack as lines: the preserved one, else that of the caller."""
    if _STATE.preserve:
        return [_STATE.meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Inside, what is made comes from `node`: its facts are the current ones."""
    if not (_STATE.preserve and node.meta):
        yield
        return
    before = _STATE.meta
    _STATE.meta = node.meta.copy()
    _STATE.meta["from_node"] = [NodeSource(node, pass_name, NodeSourceAction.CREATE)]
    try:
        yield
    finally:
        _STATE.meta = before


def get_current_meta() -> dict[str, Any]:
    """The facts that nodes get while `preserve_node_meta` is on."""
    return _STATE.meta


@contextmanager
def set_current_replay_node(node: Node | None) -> Iterator[None]:
    """Inside, `get_current_replay_node()` gives `node`."""
    before, _STATE.replay = _STATE.replay, node
    try:
        yield
    finally:
        _STATE.replay = before


def get_current_replay_node() -> Node | None:
    """The node that an Interpreter is running, if it says so."""
    return _STATE.replay  # type: ignore[no-any-return]


def get_graph_provenance_json(graph: Graph) -> dict[str, Any]:
    """For every node that a pass made, where it came from, as plain dicts."""
    return {
        n.name: [s.to_dict() for s in n.meta["from_node"]]
        for n in graph.nodes
        if n.op == "call_function" and "from_node" in n.meta
    }
