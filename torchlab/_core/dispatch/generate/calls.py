"""The generated method, function and core of an operator.

All three have the same body. `core` does not look at `SLOW`; the slow path calls it in the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.dispatch import modes
from torchlab._core.dispatch.compute import EXACT_NUMBERS
from torchlab._core.dispatch.generate import former, names, nodes
from torchlab._core.dispatch.generate.source import compile_source, ident, indent
from torchlab._core.dispatch.generate.values import check_values, counted_from_self
from torchlab._core.dispatch.watching import PLAIN
from torchlab._core.structures import structure
from torchlab._core.tensor import Tensor

_EDGE = "{0}._e if (s := {0}._s) is None or not s.stale else edge_of({0})"


def call(op: Any, variant: str) -> Any:
    """Generate the form `variant` (method, dunder, function or core) of `op`."""
    name = op.name if op.name.isidentifier() else ident(op)
    body = _BODIES[op.family](op, variant)
    first = op.schema.arguments[0].name if op.schema.arguments else ""
    parts = signature(op, variant)
    key = f"FN_{ident(op)}_{variant}"
    other: list[str] = []
    if _takes_other_names(op, variant):
        check = op.family not in _ELEMENTWISE  # the others' MISSING is no tensor: `odd` sees to it
        parts, other = names.accept(parts, key, op.name, check)
    lines = [f"def {name}({', '.join(parts)}):", *other]
    lines = former.admit(op, op.name, variant, lines, len(lines))
    if variant == "dunder":  # `a + b` has no keywords
        lines += [f"    {a.name} = {a.default!r}" for a in op.schema.arguments if a.kwarg_only]
    if variant == "function":
        if first == "self":
            lines.append("    self = input")
        if op.out_form:
            every = ", ".join(a.name for a in op.schema.arguments)
            lines.append("    if out is not None:")
            lines.append(f"        return OUT_{ident(op)}({every}, out=out)")
    if op.varargs and variant == "method":
        lines += _sizes_one_by_one(op)
    if variant != "core":
        arguments = op.schema.arguments
        lines += names.pythons_types([a.name for a in arguments if a.type.base == "ScalarType"])
        lines.append("    if SLOW:")
        as_method = "" if variant == "function" else ", True"
        lines.append(f"        return slow(OP_{ident(op)}, ({_all(op)}){as_method})")
    if variant in ("method", "dunder"):
        body = body.replace(" odd(OP_", " odd_method(OP_")
    if op.schema.arguments and variant != "core":
        start = ", 0" if counted_from_self(op, variant) else ""
        lines.append("    try:")
        lines.append(indent(body, 8))
        check = f"failed(failure_, OP_{ident(op)}, ({_all(op)}){start})"
        lines += ["    except Exception as failure_:", f"        {check}"]
        lines.append("        raise")
    else:
        lines.append(indent(body, 4))
    env = {f"OP_{ident(op)}": op, f"K_{ident(op)}": op.kernel, f"B_{ident(op)}": op.decompose}
    env[f"U_{ident(op)}"], env[f"C_{ident(op)}"] = ufunc(op), complex_function(op)
    if op.instead:
        env[f"OTHER_{ident(op)}"], env[f"INSTEAD_{ident(op)}"] = op.instead[1:]
    if op.family == "binary":
        env[f"PLANS_{ident(op)}"] = op._cache.setdefault("plans", {})
    if op.vjp:
        env[f"N_{ident(op)}"] = op.node_class
        if _fast_alpha(op):
            env[f"D_{ident(op)}"] = op.form("node_at_defaults")
    if op.out_form and variant == "function":
        env[f"OUT_{ident(op)}"] = _late_out(op)
    if len(op.schema.returns) > 1:
        env[f"R_{ident(op)}"] = return_type(op)
    fn = compile_source(
        f"{op.name} ({variant})" if variant != "method" else op.qualname,
        "\n".join(lines) + "\n",
        env,
        name,
    )
    fn.__doc__ = op.doc
    fn.__qualname__ = f"Tensor.{op.name}" if variant == "method" else op.name
    fn.__module__ = "torchlab"
    fn.op = op
    return former.shown(names.shown(fn, key) if other else fn)


def _sizes_one_by_one(op: Any) -> list[str]:
    """`x.view(2, 3)` and `x.view((2, 3))` are one; `x.view(torch.int32)` is `op.instead`'s."""
    a, i = op.schema.arguments[1], ident(op)
    n, lines = a.name, ["    if more:"]
    if op.instead:
        keyword = op.instead[0]
        other = f"        if {keyword} is not None%s or type({n}) is OTHER_{i}:"
        away = f"            return INSTEAD_{i}(self, {n}, {keyword})"
        lines += [f"        if {keyword} is not None:", away.replace(f" {n},", f" ({n}, *more),")]
    lines.append(f"        {n} = ({n},) + more")
    if not a.has_default:
        lines.append(f"    elif type({n}) is not tuple and type({n}) is not Size:")
        if op.instead:
            lines += [other % f" or {n} is None or type({n}) is type", away]
        lines.append(f"        {n} = {n} if type({n}) is list else ({n},)")
    return lines


def _takes_other_names(op: Any, variant: str) -> bool:
    """Not the quickest calls: `a.add(x2=b)` is left out for the 15 ns that it would cost each."""
    if variant == "function":
        return True
    return variant == "method" and op.family not in ("unary", "binary")


_ELEMENTWISE = ("unary", "binary", "pointwise")


def _late_out(op: Any) -> Any:
    def out_form(*args: Any, out: Any) -> Any:
        if type(out) is not Tensor or not PLAIN.issuperset(map(type, args)):
            asked = modes.out_told(op, args, out)
            if asked is not NotImplemented:
                return asked
        told = type(out) is not Tensor or modes.SLOW
        wrapped = told and modes.dispatch_handlers[0]((*args, out))
        if wrapped or modes.SLOW and modes.dispatched():
            return modes.python_out[0](op, args, out)
        return op.out(*args, out=out)

    return out_form


def plainly(*results: Any) -> tuple[Any, ...]:
    """Results without names are a plain tuple."""
    return results


def return_type(op: Any) -> Any:
    """What makes the result of an operator with several out of them."""
    found = op._cache.get("return_type")
    if found is None:
        names = [r.name or "" for r in op.schema.returns]
        found = structure(op.name.rstrip("_"), names) if all(names) else plainly
        op._cache["return_type"] = found
    return found


def signature(op: Any, variant: str) -> list[str]:
    """The Python parameters. `core` takes everything by position."""
    parts, starred = [], False
    for i, a in enumerate(op.schema.arguments):
        name = a.name
        if i == 0 and name == "self" and variant == "function":
            name = "input"
        if i == 1 and op.varargs and variant == "method":
            default = f"={a.default!r}" if a.has_default else ""
            if op.instead:  # `x.view(2, 3)`, `x.view(torch.int32)`
                parts += [f"{name}=None", "*more", f"{op.instead[0]}=None"]
            else:  # `x.permute(1, 0)`, `x.permute(dims=(1, 0))`
                parts += [name + default, "*more"]
            starred = True
            continue
        if a.kwarg_only and variant == "dunder":
            continue
        if a.kwarg_only and not starred and variant != "core":
            parts.append("*")
            starred = True
        default = a.default
        if isinstance(default, list):
            default = tuple(default)
        parts.append(f"{name}={default!r}" if a.has_default else name)
    if variant == "function" and op.out_form:
        if not starred:
            parts.append("*")
        parts.append("out=None")
    return parts


def _all(op: Any) -> str:
    return "".join(a.name + ", " for a in op.schema.arguments)


def _tensors(op: Any) -> list[Any]:
    return [a for a in op.schema.arguments if a.type.base == "Tensor"]


def _check_tensors(op: Any, variant: str = "") -> list[str]:
    """Leave for `odd` if an argument is no plain tensor. An operator of Python's (`a @ b`) leaves
    what is no tensor to the other side."""
    lines = []
    ask = f"odd(OP_{ident(op)}, ({_all(op)}))"
    for a in _tensors(op):
        n = a.name
        go = f"    return {ask}"
        if variant == "dunder" and a is not op.schema.arguments[0]:
            go = f"    return {ask} if isinstance({n}, T) or overriding(({n},)) else NotImplemented"
        if a.type.list:
            lines.append(f"if not all_tensors({n}, {a.type.elem_optional}):")
        elif a.type.optional:
            lines.append(f"if {n} is not None and type({n}) is not T and type({n}) is not P:")
        else:
            lines.append(f"if type({n}) is not T and type({n}) is not P:")
        lines.append(go)
    return lines


def _edges(op: Any) -> list[str]:
    if not op.vjp:
        return []
    p = nodes.plan(op)
    kinds = {a.name: a.type for a in op.schema.arguments}
    lines = []
    for t in p.targets:
        if t in p.lists:
            edge = _EDGE.format("y")
            lines.append(f"e_{t} = [None if y is None else {edge} for y in {t}]")
        elif kinds[t].optional:
            lines.append(f"e_{t} = None if {t} is None else edge_of({t})")
        else:
            lines.append(f"e_{t} = " + _EDGE.format(t))
    return lines


def _recording(op: Any) -> str:
    p = nodes.plan(op)
    need = " or ".join(
        f"any_edge(e_{t})" if t in p.lists else f"e_{t} is not None" for t in p.targets
    )
    return f"if ({need}) and (not NOGRAD or TLS.grad):"


def _record(op: Any, t: str = "result") -> list[str]:
    """Put the node of one or several results on the tape; integer results get none."""
    p = nodes.plan(op)
    body = [*_refused_complex(op, t), *nodes.nowhere_lines(p), *nodes.record_lines(op, t)]
    lines = [_recording(op)] + ["    " + x.replace("NODE_", f"N_{ident(op)}") for x in body]
    if p.outputs == 1:
        if op.family == "general" and "float_result" not in op.tags:
            lines[0] = lines[0][:-1] + f" and {t}._k.differentiable:"
        lines += [f"    node_.shape = {t}._a.shape", f"    node_.k = {t}._k", f"    {t}._e = node_"]
    else:
        lines += [f"    attach_outputs(node_, ({', '.join(f'{t}{i}' for i in range(p.outputs))},))"]
    return lines


def _refused_complex(op: Any, result: str) -> list[str]:
    """What has no gradient of complex numbers (or of integers) says so when it would be
    recorded."""
    if "float_result" in op.tags:
        return [f"if not {result}._k.differentiable:", f"    refuse_integers({result})"]
    if "real_gradient" not in op.tags:
        return []
    first = result if len(op.schema.returns) == 1 else f"{result}0"
    return [f"if {first}._k.dtype.is_complex:", f"    refuse_complex(OP_{ident(op)})"]


def _general_list(op: Any) -> str:
    """One list of tensors and values in, one tensor out: a single pass over the list."""
    i = ident(op)
    (t,) = [a.name for a in _tensors(op)]
    arguments = ", ".join("arrays" if a.name == t else a.name for a in op.schema.arguments)
    as_a_rule = [
        "if arrays is not None:",
        f"    result = wrap(K_{i}(np, {arguments}))",
        "else:",
        *("    " + line for line in _check_tensors(op)),
        f"    result = execute(OP_{i}, ({_all(op)}))",
    ]
    lines = [f"arrays, history, k = list_arrays({t})"]
    if op.inline:  # for contiguous tensors of one kind
        condition, expression, _ = op.inline
        lines = [
            "k = None",
            f"if (type({t}) is list or type({t}) is tuple) and {t} and type(y := {t}[0]) is T:",
            "    arrays, k = [], y._k",
            f"    for y in {t}:",
            "        if type(y) is not T or y._k is not k or y._e is not None or"
            " (s := y._s) is not None and s.stale:",
            "            k = None",
            "            break",
            "        arrays.append(y._a)",
            "if k and k.fast:",
            "    history = False",
            "else:",
            "    " + lines[0],
            "result = None",
            f"if k and k.fast and {condition}:",
            "    try:",
            f"        r = {expression}",
            "    except (ValueError, IndexError):",
            "        r = None  # the kernel says why",
            "    if type(r) is ndarray:",
            "        result = new(T)",
            "        result._a, result._k = r, k",
            "        result._e = result._s = result._v = result._g = None",
            "if result is None:",
            *("    " + line for line in as_a_rule),
        ]
    else:
        lines += as_a_rule
    if op.vjp:
        lines += ["if not history:", "    return result", *_edges(op), *_record(op)]
    return "\n".join([*lines, "return result"])


def _general(op: Any, variant: str) -> str:
    i = ident(op)
    listed = [a for a in _tensors(op) if a.type.list and not a.type.elem_optional]
    if len(listed) == len(_tensors(op)) == len(op.schema.returns) == 1:
        if not op.schema.returns[0].type.list:
            return _general_list(op)
    lines = check_values(op, variant) + _check_tensors(op)
    tensors = _tensors(op)
    direct = []
    for a in tensors:
        if a.type.list:
            direct.append(f"all_direct({a.name})")
        elif a.type.optional:
            direct.append(f"({a.name} is None or {a.name}._k.direct)")
        else:
            direct.append(f"{a.name}._k.direct")
    arguments = []
    for a in op.schema.arguments:
        if a.type.base != "Tensor":
            arguments.append(a.name)
        elif a.type.list:
            arguments.append(f"[y if y is None else y._a for y in {a.name}]")
        elif a.type.optional:
            arguments.append(f"{a.name} if {a.name} is None else {a.name}._a")
        else:
            arguments.append(f"{a.name}._a")
    lines += [f"if {' and '.join(direct) or 'True'}:", f"    r = K_{i}(np, {', '.join(arguments)})"]
    outputs = len(op.schema.returns)
    if op.schema.returns[0].type.list:
        lines += [
            "    result = [wrap(x) for x in r]",
            "else:",
            f"    result = execute(OP_{i}, ({_all(op)}))",
        ]
        if op.vjp:
            lines += _edges(op) + [_recording(op)]
            lines += [
                "    " + x.replace("NODE_", f"N_{i}") for x in nodes.record_lines(op, "result")
            ]
            lines += ["    attach_outputs(node_, result)"]
        return "\n".join([*lines, "return result"])
    if outputs == 1:
        lines += ["    result = wrap(r)", "else:", f"    result = execute(OP_{i}, ({_all(op)}))"]
        if op.vjp:
            lines += _edges(op) + _record(op)
        return "\n".join([*lines, "return result"])
    names = ", ".join(f"result{j}" for j in range(outputs))
    wrapped = ", ".join(f"wrap(r[{j}])" for j in range(outputs))
    lines += [f"    {names} = {wrapped}", "else:", f"    {names} = execute(OP_{i}, ({_all(op)}))"]
    if op.vjp:
        lines += _edges(op) + _record(op)
    return "\n".join([*lines, f"return R_{i}({names})"])


def _view(op: Any, variant: str) -> str:
    i = ident(op)
    rest = "".join(", " + a.name for a in op.schema.arguments[1:])
    lines = check_values(op, variant) + _check_tensors(op)
    many = op.schema.returns[0].type.list
    kernel = (
        f"K_{i}(np, self._a{rest}) if k.plain or k.device.type != 'meta' else"
        f" meta_view(OP_{i}, self{rest})"
    )
    lines.append("k = self._k")
    kind = "k.c if r.flags.c_contiguous else k.v"
    if op.inline:
        condition, expression, same = op.inline
        lines += [
            "a_ = self._a",
            "if k.fast:" if condition == "k.fast" else f"if k.plain and {condition}:",
            "    try:",
            f"        r = {expression}",
            f"        rk = {same or kind}",
            "    except (ValueError, TypeError, IndexError):",  # let the kernel say it
            f"        r = {kernel}",
            f"        rk = {kind}",
            "else:",
            f"    r = {kernel}",
            f"    rk = {kind}",
        ]
        kind = "rk"
    else:
        lines.append(f"r = {kernel}")
    lines += ["s = self._s", "if s is None:", "    s = self._s = Storage(self._a)"]
    if many:
        lines.append("result = view_outputs(self, r, s)")
    else:
        lines += [
            "result = new(T)",
            "result._a = r",
            f"result._k = {kind}",
            "result._s = s",
            "result._g = result._e = None",
            "v = self._v",
        ]
        bare = op.name in ("detach", "_unsafe_view")  # they never get their base's history
        if op.vjp and not bare:  # nothing to remember: by far the most calls
            lines += [
                "if self._e is None and not s.version and not NOGRAD and type(v) is not ViewMeta:",
                "    result._v = self if v is None else v",
                "    return result",
            ]
        lines += [
            "if v is None:",
            "    v = view_meta(self, s, result) if NOGRAD"
            " else (self, 0, s.version, None) if s.version else self",
            "elif s.version or NOGRAD or type(v) is ViewMeta:",
            "    v = view_meta(v, s, result)",
            "result._v = None" if bare else "result._v = v",
        ]
        if op.vjp and bare:
            lines += ["if self._e is None and not s.stale:", "    return result"]
    if op.vjp:
        lines += _edges(op)
        if many:
            lines += [_recording(op)]
            body = [*nodes.nowhere_lines(nodes.plan(op)), *nodes.record_lines(op, "result")]
            lines += ["    " + x.replace("NODE_", f"N_{i}") for x in body]
            lines += ["    attach_outputs(node_, result)", "    s.saved = s.version"]
            lines += ["elif e_self is not None:", "    for r in result:", "        view_leaf(r)"]
        else:
            lines += _record(op)
            lines += ["    s.saved = s.version"]  # see `tape.mark_view`
            if op.name != "detach":  # a view of what wants a gradient wants one: as a leaf
                lines += ["elif e_self is not None:", "    view_leaf(result)"]
    lines.append("return result")
    return "\n".join(lines)


def _tensorwise(op: Any, variant: str) -> str:
    """The kernel takes and gives tensors (without history): for what concerns devices and
    formats."""
    i = ident(op)
    lines = check_values(op, variant) + _check_tensors(op)
    lines.append(f"result = K_{i}({_all(op)[:-2]})")
    if op.vjp:  # results of integers are not recorded: nobody is asked for a history
        lines += ["if not result._k.differentiable:", "    return result"]
        lines += _edges(op) + _record(op)
    return "\n".join([*lines, "return result"])


def _composite(op: Any, variant: str) -> str:
    checks = check_values(op, variant) + _check_tensors(op, variant)
    return "\n".join([*checks, f"return B_{ident(op)}({_all(op)[:-2]})"])


def _pointwise(op: Any, variant: str) -> str:
    """Any number of tensors or numbers: promotion, broadcasting and memory format in `compute`."""
    i = ident(op)
    tensors = _tensors(op)
    lines = check_values(op, variant)
    for a in tensors:
        n = a.name
        bad = f"return odd(OP_{i}, ({_all(op)}))"
        if variant == "dunder" and a is not tensors[0]:
            bad = f"return NotImplemented if not overriding(({n},)) else odd(OP_{i}, ({_all(op)}))"
            if op.name == "eq":  # PyTorch's one comparison that takes arrays
                array = f"equals_array(self, {n}) if type({n}) is ndarray else "
                bad = bad.replace("return ", "return " + array)
        optional = f"{n} is not None and " if a.type.optional else ""
        number = a.name in op.numbers if type(op.numbers) is tuple else True
        if a is tensors[0] and (variant == "method" or variant == "dunder"):
            number = False
            bad = bad.replace("odd(", "odd_self(")
        or_number = f" and not isinstance({n}, NUMBERS)" if number else ""
        lines.append(f"if {optional}type({n}) is not T and type({n}) is not P{or_number}:")
        lines.append(f"    {bad}")
    operands = "".join(a.name + ", " for a in tensors)
    values = "".join(a.name + ", " for a in op.schema.arguments if a.type.base != "Tensor")
    lines.append(f"result = elementwise(OP_{i}, ({operands}), ({values}))")
    if op.vjp:
        p = nodes.plan(op)
        for t in p.targets:
            lines.append(f"e_{t} = edge_of({t}) if isinstance({t}, T) else None")
        lines += _record(op)
    elif "asks_history" in op.tags:  # PyTorch computes it by operators that are recorded
        lines.append("edge_of(self)")
    lines.append("return result")
    return "\n".join(lines)


def ufunc(op: Any) -> Any:
    """What an inlined call runs."""
    return getattr(op.kernel, "fast_ufunc", op.kernel)


def complex_function(op: Any) -> Any:
    """What an inlined call runs for complex numbers, if that is something else."""
    return getattr(op.kernel, "fast_complex", None)


def _arrays_always() -> bool:
    """Whether `out=...` makes a ufunc give an array where it would give a scalar (NumPy ≥ 2.3),
    which is sooner than to make one of the scalar: worth a look at the rank for operators of two
    tensors, which often have none of it."""
    try:
        return type(np.negative(np.float32(1), out=...)) is np.ndarray  # type: ignore[call-overload]
    except TypeError:
        return False


_ARRAYS_ALWAYS = _arrays_always()


def _fast(
    op: Any, k: str, operands: list[str], values: list[tuple[str, str]], of: str = "U"
) -> list[str]:
    """The inlined call for contiguous host operands of one kind; `of`: "C" for complex numbers,
    where they have a function of their own."""
    i = ident(op)
    assert operands[0] == "self._a"
    given = ", ".join(["a_", *operands[1:]])
    if of == "U" and len(operands) > 1 and _ARRAYS_ALWAYS and isinstance(ufunc(op), np.ufunc):
        lines = [f"r = U_{i}({given}) if (a_ := self._a).ndim else U_{i}({given}, out=...)"]
    else:
        lines = [
            f"r = {of}_{i}({', '.join(operands)})",
            "if type(r) is not ndarray:",
            "    r = asarray(r)",
        ]
    lines += [
        "result = new(T)",
        "result._a = r",
        f"result._k = {k}",
        "result._s = result._v = result._g = None",
    ]
    if not op.vjp:
        return [*lines, "result._e = None", "return result"]
    p = nodes.plan_at_defaults(op) if _fast_alpha(op) else nodes.plan(op)
    node = f"D_{i}" if _fast_alpha(op) else f"N_{i}"
    record = [x.replace("NODE_", node) for x in nodes.record_lines(op, "result", p=p)]
    need = " or ".join(f"e_{t} is not None" for t in p.targets)
    lines += [f"e_{t} = {v}" for t, v in values]
    lines += [f"if ({need}) and (not NOGRAD or TLS.grad):"]
    lines += [
        "    " + x
        for x in [*record, "node_.shape = r.shape", f"node_.k = {k}", "result._e = node_"]
    ]
    return [*lines, "else:", "    result._e = None", "return result"]


def _fast_ok(op: Any) -> bool:
    """Whether the kernel is a ufunc that gives PyTorch's values for contiguous operands."""
    from_ufunc = callable(getattr(op.kernel, "reduce", None)) or getattr(op.kernel, "fast", False)
    return bool(from_ufunc) and all(a.type.base == "Tensor" for a in op.schema.arguments)


def has_ufunc(op: Any) -> bool:
    """Whether one ufunc is the whole kernel for contiguous operands and default values."""
    return _fast_ok(op) or _fast_alpha(op)


# Python numbers that may become operands, by the kind's flag that the operator asks for.
SCALARS_OF = {
    "fp": "c is float or c is int",
    "arith": "(c is float and k.fp) or c is int",
    "ordered": "(c is float and k.fp) or c is int",
}


def takes_number(op: Any, flag: str) -> str:
    """Whether the number `other` may become an operand here, of the kind k."""
    test = SCALARS_OF[flag]
    return f"({test}) and k.dtype is not FLOAT16" if op.name in EXACT_NUMBERS else test


# Operators of two tensors that complex numbers, which have no order, do not have.
ORDERS = frozenset(("lt", "le", "gt", "ge", "maximum", "minimum", "fmax", "fmin"))


def at_defaults(op: Any) -> str:
    """That arguments behind the tensors were left out. `True` equals 1, but is another alpha."""
    return "".join(
        f" and {a.name} is ONE" if a.default == 1 else f" and {a.name} == {a.default!r}"
        for a in op.schema.arguments[2:]
    )


def kind_flag(op: Any) -> str:
    """The flag of the kinds for which the inlined call is right."""
    if op.promote == "float":
        return "fp"
    return "ordered" if op.name in ORDERS or complex_function(op) else "arith"


def _result_kind(op: Any) -> str:
    return "BOOL_KIND" if op.promote == "bool" else "k"


def _unary(op: Any, variant: str) -> str:
    slow = _pointwise(op, variant)
    if variant == "core" or not has_ufunc(op):
        return slow
    flag = kind_flag(op)
    real = (
        " and not k.dtype.is_complex" if op.promote == "real" else ""
    )  # |z| has another kind than z
    body = _fast(op, _result_kind(op), ["self._a"], [("self", "self._e")])
    c = [
        "c = type(self)",
        "if c is T or c is P:",
        "    k = self._k",
        f"    if k.{flag}{real} and ((s := self._s) is None or not s.stale):",
    ]
    return "\n".join([*c, *("        " + x for x in body), slow])


def _binary(op: Any, variant: str) -> str:
    slow = _pointwise(op, variant)
    if variant == "core" or not has_ufunc(op):
        return slow
    i = ident(op)
    flag = kind_flag(op)
    k = _result_kind(op)
    edges = [(t, f"{t}._e") for t in ("self", "other")]
    values = "".join(a.name + ", " for a in op.schema.arguments[2:])

    def two_tensors(of: str) -> list[str]:
        both = _fast(op, k, ["self._a", "other._a"], edges, of)
        both[:1] = [
            "try:",
            "    " + both[0],
            "except ValueError:",  # shapes that do not broadcast
            f"    return elementwise(OP_{i}, (self, other), ({values}))",
        ]
        return both

    one = _fast(op, k, ["self._a", "y"], [("self", "self._e"), ("other", "None")])
    extra = "" if variant == "dunder" else at_defaults(op)
    if type(op.numbers) is tuple and "other" not in op.numbers:
        one = ["return " + f"odd(OP_{i}, ({_all(op)}))"]
    scalars = takes_number(op, flag)
    lines = [
        "try:",
        "    k = self._k",
        "except AttributeError:",
        f"    return odd_self(OP_{i}, ({_all(op)}))",
        "c = type(self)",
        f"if k.{flag} and (c is T or c is P) and ((s := self._s) is None or not s.stale){extra}:",
        "    c = type(other)",
        "    if c is T or c is P:",
        "        if other._k is k and ((s := other._s) is None or not s.stale):",
        *("            " + x for x in two_tensors("U")),
        *("        " + x for x in _mixed(op)),
        f"    elif {scalars}:",
        "        y = SCALARS.get((other, c, k))",
        "        if y is None:",
        "            y = scalar_of(other, c, k)",
        *("        " + x for x in one),
    ]
    if complex_function(op):
        lines += [
            f"elif k.arith and type(other) is T is c and other._k is k{extra}:",
            "    if ((s := self._s) is None or not s.stale) and ("
            "(s := other._s) is None or not s.stale):",
            *("        " + x for x in two_tensors("C")),
        ]
    if variant != "method" and variant != "dunder":  # `self` may be a number in the function
        lines.insert(
            0, "if not isinstance(self, T):\n    " + f"return core_of(OP_{i})({_all(op)[:-2]})"
        )
    return "\n".join([*lines, slow])


def _mixed(op: Any) -> list[str]:
    """Two kinds: what they promote to is looked up, the ufunc converts."""
    if op.promote == "bool":
        return []
    i = ident(op)
    return [
        "else:",
        "    k = other._k",
        f"    p = PLANS_{i}.get((self._k, k, not self._a.ndim, not other._a.ndim))",
        "    if p is None:",
        f"        p = plan_mixed(OP_{i}, PLANS_{i}, self, other)",
        "    if p and ((s := other._s) is None or not s.stale):",
        "        try:",
        f"            r = U_{i}(self._a, other._a, dtype=p[0])",
        "        except ValueError:",
        "            r = None",
        "        if r is not None:",
        "            if type(r) is not ndarray:",
        "                r = asarray(r)",
        "            result = new(T)",
        "            result._a = r",
        "            result._k = p[1]",
        "            result._e = result._s = result._v = result._g = None",
        *("            " + x for x in _mixed_record(op)),
        "            return result",
    ]


def _mixed_record(op: Any) -> list[str]:
    if not op.vjp:
        return []
    lines = ["e_self = self._e", "e_other = other._e"]
    lines = [x for x in lines if x[2:].split(" ")[0] in nodes.plan(op).targets]
    return lines + _record(op)


def _fast_alpha(op: Any) -> bool:
    """add and sub: the ufunc is right while alpha is 1."""
    return getattr(op.kernel, "fast_ufunc", None) is not None


_BODIES = {
    "general": _general,
    "view": _view,
    "tensorwise": _tensorwise,
    "composite": _composite,
    "pointwise": _pointwise,
    "unary": _unary,
    "binary": _binary,
}
