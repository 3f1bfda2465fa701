"""The in-place and out= forms of an operator."""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.generate import calls, former, nodes
from torchlab._core.dispatch.generate.calls import signature
from torchlab._core.dispatch.generate.source import compile_source, ident
from torchlab._core.dispatch.generate.values import check_values


def inplace_call(op: Any, told: bool = False) -> Any:
    """`x.add_(y)`: checks first, then the kernel writes straight into x, then the tape's new
    history. `told`: the form in which handlers do the write (Note [Below autograd])."""
    i = ident(op)
    vjp = op.vjp or op.write_vjp
    names = [a.name for a in op.schema.arguments]
    tensors = [a.name for a in op.schema.arguments if a.type.base == "Tensor"]
    values = [a.name for a in op.schema.arguments if a.type.base != "Tensor"]
    name = op.name + "_"
    others = "".join(n + ", " for n in tensors[1:])
    head = [
        f"    if SLOW and slow_write(OP_{i}):",
        f"        return slow_inplace(OP_{i}, IN_{i}, ({''.join(n + ', ' for n in names)}))",
    ]
    classes = [  # Note [Below autograd]: a class of the user's stands in a tensor's place
        f"type({n}) is not T and type({n}) is not P"
        + ("" if n == "self" else f" and isinstance({n}, T)")
        for n in tensors
    ]
    odd = [
        f"    if {' or '.join(classes)}:",
        f"        return odd_inplace(OP_{i}, IN_{i}, ({''.join(n + ', ' for n in names)}))",
    ]
    fast = _fast_lines(op)
    lines = ["    " + line for line in check_values(op, "method")]
    lines.append(f"    grad = prepare_write(OP_{i}, self, ({others}))")
    if told:  # Note [Levels]
        lines.append(f"    top_ = top_level(({''.join(n + ', ' for n in names)}))")
    else:
        lines = [*fast, *lines]
    writer = "elementwise_into" if op.family in ("unary", "binary", "pointwise") else "general_into"
    if not told:
        lines.append(f"    check_{writer}(OP_{i}, self, ({', '.join(tensors)},))")
    if vjp:
        p = nodes.plan(op)
        lines += [f"    e_{t} = edge_of({t}) if isinstance({t}, T) else None" for t in p.targets]
        need = " or ".join(f"e_{t} is not None" for t in p.targets)
        lines.append(f"    record = grad and ({need})")
        if "self" in p.saved:
            wanted = " or ".join(f"e_{t} is not None" for t in dict.fromkeys(p.saved["self"]))
            lines.append(f"    original = saved_original(self) if record and ({wanted}) else self")
    record: list[str] = []
    if vjp:
        kept = "original" if "self" in op_saved(op) else None
        record = nodes.record_lines(op, "self", original=kept)
        lines += ["    if record:", *("        " + x for x in nodes.nowhere_lines(p))]
    early = []  # saved before the write: `x.mul_(x)` must not keep the new x for the old one
    for j, line in enumerate(record):
        slot, _, expression = line.partition(" = ")
        if slot.startswith("node_.s_") and slot[8:] in tensors[1:]:
            early.append(f"        {slot[6:]} = {expression}")
            record[j] = f"{slot} = {slot[6:]}"
    if early:
        lines += ["    if record:", *early]
    arguments = "".join(n + ", " for n in tensors), "".join(n + ", " for n in values)
    if told:
        lines.append(f"    write_told(OP_{i}, ({''.join(n + ', ' for n in names)}))")
    else:
        lines.append(f"    {writer}(OP_{i}, self, ({arguments[0]}), ({arguments[1]}))")
        lines.append("    wrote(self)")
    if vjp:
        result = "result" if "result" in p.saved else None
        lines.append("    if record:")
        if result:
            lines.append("        result = self")
        for x in record:
            lines.append("        " + x.replace("NODE_", f"N_{i}"))
        lines += [
            "        node_.shape = self._a.shape",
            "        node_.k = self._k",
            "        rebase_history(self, node_)",
        ]
    lines.append("    return self")
    env = {f"OP_{i}": op, f"U_{i}": getattr(op.kernel, "fast_ufunc", op.kernel)}
    if vjp:
        env[f"N_{i}"] = op.node_class
    define = f"def {name}({', '.join(signature(op, 'method'))}):"
    core = f"def {name}({', '.join(signature(op, 'core'))}):"
    title = f"{op.qualname} (in place)"
    if told:
        text = "\n".join([core, *lines]) + "\n"
        text = text.replace("save_output(", "keep_output(").replace(" save(", " keep(")
        text = text.replace(" edge_of(", " edge_at(top_, ")
        return compile_source(title + " told", text.replace("(save(", "(keep("), env, name)
    env[f"IN_{i}"] = compile_source(title + " core", "\n".join([core, *lines]) + "\n", env, name)
    body = [*fast, *odd, *lines[len(fast) :]]
    body = ["    try:", *("    " + x for x in body), "    except Exception as failure_:"]
    body += [f"        failed(failure_, OP_{i}, ({''.join(n + ', ' for n in names)}), 0)"]
    body.append("        raise")
    all_lines = former.admit(op, name, "method", [define, *head, *body])
    fn = compile_source(title, "\n".join(all_lines) + "\n", env, name)
    fn.__doc__ = f"In-place version of `{op.name}`."
    fn.__qualname__ = f"Tensor.{name}"
    fn.__module__ = "torchlab"
    fn.op = op
    return former.shown(fn)


def _fast_lines(op: Any) -> list[str]:
    """The inlined write into a contiguous host tensor without history, from operands of its kind:
    nothing to record, and no memory that partly overlaps."""
    if op.family not in ("unary", "binary") or not calls.has_ufunc(op) or op.promote == "bool":
        return []
    i = ident(op)
    flag = calls.kind_flag(op)
    extra = calls.at_defaults(op)
    lines = [
        "k = self._k",
        "c = type(self)",
        "s = self._s",
        "v = self._v",
        f"if k.{flag} and (c is T or c is P) and (self._e is None or NOGRAD and not TLS.grad)"
        " and (s is None or not s.stale)"
        " and (v is None or (v[0] if type(v) is ViewMeta else v)._e is None)"
        f"{' and not k.dtype.is_complex' if op.promote == 'real' else ''}{extra}:",
    ]
    done = [  # (a shape that does not fit is refused by the ufunc, then told by the checks below)
        "    if s is None:",
        "        s = self._s = Storage(self._a)",
        "        s.version = 1",
        "    elif s.saved == s.version:",
        "        note_write(s)",
        "    else:",
        "        s.version += 1",
        "    return self",
    ]
    if op.family == "unary":
        lines += [f"    U_{i}(self._a, self._a)", *done, "s = None"]
        return ["    " + line for line in lines]
    lines += [
        "    c = type(other)",
        "    y = None",
        "    if c is T or c is P:",
        "        if other._k is k and (other._e is None or NOGRAD and not TLS.grad):",
        "            s_ = other._s",
        "            if other is self or s_ is None or (s_ is not s and not s_.stale"
        " and not (TWINS and same_memory(s, s_))):",
        "                y = other._a",
        f"    elif {calls.takes_number(op, flag)}:",
        "        y = SCALARS.get((other, c, k))",
        "        if y is None:",
        "            y = scalar_of(other, c, k)",
        "    if y is not None:",
        "        try:",
        f"            U_{i}(self._a, y, self._a)",
        *("        " + line for line in done),
        "        except ValueError:",
        "            pass",
    ]
    # (`wrote` counts who holds the storage: Note [Views that fell behind] in tape)
    return ["    " + line for line in [*lines, "s = s_ = None"]]


def op_saved(op: Any) -> Any:
    """What the node keeps of tensors, by name."""
    return nodes.plan(op).saved


def out_call(op: Any) -> Any:
    """`torch.add(x, y, out=z)`."""
    i = ident(op)
    names = [a.name for a in op.schema.arguments]
    tensors = [a.name for a in op.schema.arguments if a.type.base == "Tensor"]
    values = [a.name for a in op.schema.arguments if a.type.base != "Tensor"]
    every = "".join(n + ", " for n in names)
    head = f"def {op.name}_out({', '.join(names)}, *, out):"
    if op.family in ("unary", "binary", "pointwise"):
        operands = "".join(n + ", " for n in tensors), "".join(n + ", " for n in values)
        body = f"    return elementwise_out(OP_{i}, ({operands[0]}), ({operands[1]}), out)"
    else:
        body = f"    return general_out(OP_{i}, ({every}), out)"
    checks = "".join(f"    {line}\n" for line in check_values(op, "function"))
    fn = compile_source(
        f"{op.qualname} (out=)", f"{head}\n{checks}{body}\n", {f"OP_{i}": op}, f"{op.name}_out"
    )
    fn.op = op
    return fn
