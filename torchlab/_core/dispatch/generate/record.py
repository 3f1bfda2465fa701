"""The tape's part of a call alone, for results that somebody else computed: a dispatch mode, a
tensor subclass, or a kernel that a library has registered."""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.generate import nodes
from torchlab._core.dispatch.generate.source import compile_source, ident


def record_call(op: Any) -> Any:
    """`record(*args, result)`: put the node of `op` on the tape if an argument wants gradients.
    `result` is one tensor, or the sequence of the results."""
    i = ident(op)
    p = nodes.plan(op)
    names = "".join(a.name + ", " for a in op.schema.arguments)
    lines = [f"def record({names}results):", f"    top_ = top_level(({names}))"]
    for t in p.targets:
        if t in p.lists:
            edges = f"[edge_at(top_, y) if isinstance(y, T) else None for y in {t}]"
            lines.append(f"    e_{t} = {edges}")
        else:
            lines.append(f"    e_{t} = edge_at(top_, {t}) if isinstance({t}, T) else None")
    need = " or ".join(
        f"any_edge(e_{t})" if t in p.lists else f"e_{t} is not None" for t in p.targets
    )
    lines += [f"    if not ({need}) or NOGRAD and not TLS.grad:", "        return"]
    many = op.schema.returns[0].type.list
    if many:
        lines.append("    result = results")
    elif p.outputs == 1:
        lines += ["    result = results", "    if not result._k.differentiable:", "        return"]
    else:
        lines += [f"    result{j} = results[{j}]" for j in range(p.outputs)]
    body = [
        x.replace("NODE_", f"N_{i}")
        .replace("save_output(", "keep_output(")
        .replace("save(", "keep(")
        for x in nodes.record_lines(op, "result")
    ]
    lines += ["    " + x for x in body]
    if many or p.outputs > 1:
        lines.append("    attach_outputs(node_, results)")
    else:
        lines += [
            "    node_.shape = result._a.shape",
            "    node_.k = result._k",
            "    result._e = node_",
        ]
    env = {f"N_{i}": op.node_class}
    return compile_source(f"{op.qualname} (record)", "\n".join(lines) + "\n", env, "record")


__all__ = ["record_call"]
