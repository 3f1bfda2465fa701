"""The declaration of a maker of tensors: its own parameters; the options are added.

    @maker("zeros", quick=np.zeros, out=True)
    def zeros(how: How, size: Any, *more: Any) -> Any:
        ...

declares `torch.zeros(size, *more, out=None, dtype=None, layout=None, device=None,
requires_grad=False, pin_memory=False)`. The function with all parameters is written when it is
first needed, with its source in `linecache`, as every generated call: its options cost a call
nothing that leaves them alone. Note [Options of makers] says what they mean.

Source: https://docs.pytorch.org/docs/2.13/torch.html#creation-ops
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torchlab._core.device import AWAY
from torchlab._core.dispatch.factories import told
from torchlab._core.dispatch.generate.source import compile_source
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.dispatch.op import Face, face
from torchlab._core.errors import no_host_memory
from torchlab._core.ops._making import FACTS, How, plain
from torchlab._core.tensor import Tensor

OPTIONS = ("dtype", "layout", "device", "requires_grad", "pin_memory")
_FLAGS = ("requires_grad", "pin_memory")
_OTHER = object()  # another option


class Maker(Face):
    """The public call of a maker. `body` is the function with all parameters, `written` the one
    that its family declares."""

    __slots__ = ("written", "quick", "options", "_whole")

    written: Any
    quick: Any
    options: tuple[str, ...]
    _whole: Any

    @property
    def body(self) -> Any:  # type: ignore[override]
        if self._whole is None:
            self._whole = _write(self)
        return self._whole

    @body.setter
    def body(self, written: Any) -> None:
        self.written, self._whole = written, None


def maker(
    name: str,
    *,
    quick: Any = None,
    out: bool = False,
    memory_format: bool = False,
    options: tuple[str, ...] = OPTIONS,
    **facts: Any,
) -> Callable[[Any], Maker]:
    """Declare a maker; the decorated function's first parameter is the `How` of the call.

    quick: what makes the array from a shape and a NumPy dtype when a call gives no more than that.
    facts: for `face`; a maker is no method unless they say so."""
    facts.setdefault("method", False)

    def declare(written: Any) -> Maker:
        made: Any = face(name, kind=Maker, **facts)(written)
        made.quick = quick
        made.options = (
            *(("out",) if out else ()),
            *options,
            *(("memory_format",) if memory_format else ()),
        )
        return made

    return declare


def _write(m: Maker) -> Any:
    own = list(inspect.signature(m.written).parameters.values())[1:]
    key = f"MAKER_{m.name}"
    env = {f"{key}_written": m.written}
    shown, passed, starred = [], [], False
    for p in own:
        star = "*" if p.kind is p.VAR_POSITIONAL else ""
        if p.kind is p.KEYWORD_ONLY and not starred:
            shown.append("*")
        starred = starred or bool(star) or p.kind is p.KEYWORD_ONLY
        if p.default is not p.empty:
            env[f"{key}_default_{p.name}"] = p.default
        default = "" if p.default is p.empty else f"={key}_default_{p.name}"
        shown.append(star + p.name + default)
        passed.append(f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else star + p.name)
    shown += [] if starred else ["*"]
    shown += [f"{o}=False" if o in _FLAGS else f"{o}=None" for o in m.options]
    told_of = ("out", *OPTIONS, "memory_format")  # the parameters of How
    how = ", ".join(o if o in m.options else str(o not in _FLAGS and None) for o in told_of)
    source = (
        f"def {m.name}({', '.join(shown)}):\n"
        f"    if SLOW and (seen := told('{m.name}', locals())) is not None:\n"
        "        return seen\n"
        "    try:\n"
        f"        return {key}_written(How('{m.name}', {how}), {', '.join(passed)})\n"
        "    except (MemoryError, ValueError) as error:\n"
        "        raise no_host_memory(error) or error from None\n"
    )
    env |= {"SLOW": SLOW, "told": told, "How": How, "no_host_memory": no_host_memory}
    fn = compile_source(f"{m.name} (maker)", source, env, m.name)
    fn.__annotations__ = {p.name: p.annotation for p in own}
    if m.quick is not None:
        fn = _quickly(m, fn)
    fn.__doc__, fn.__module__ = m.doc, m.written.__module__
    return fn


def _quickly(m: Maker, whole: Any) -> Any:
    """The function for calls with sizes and at most a dtype; all others go to `whole`. (Options of
    its own would cost every call 10 ns each: Python looks up each default in a dictionary.)"""
    key = f"MAKER_{m.name}"
    source = (
        f"def {m.name}(size, *more, **options):\n"
        "    if not options:\n"
        "        dtype = None\n"
        "    elif len(options) > 1 or (dtype := options.get('dtype', OTHER)) is OTHER:\n"
        f"        return {key}_whole(size, *more, **options)\n"
        "    if type(size) is int and size >= 0 and not (more or SLOW or AWAY):\n"
        "        facts = FACTS.get(dtype)\n"
        "        if facts is not None:\n"
        "            try:\n"
        f"                a = {key}_quick((size,), facts[0])\n"
        "            except (MemoryError, ValueError):\n"
        "                a = None  # said by the long way, in PyTorch's words\n"
        "            if a is not None:\n"
        "                t = new(Tensor)\n"
        "                t._a = a\n"
        "                t._k = facts[1]\n"
        "                t._e = t._s = t._v = t._g = None\n"
        "                return t\n"
        f"    t = plain((size,) + more, {key}_quick, dtype)\n"
        f"    return {key}_whole(size, *more, **options) if t is None else t\n"
    )
    env = {f"{key}_whole": whole, f"{key}_quick": m.quick, "OTHER": _OTHER, "SLOW": SLOW}
    env |= {"AWAY": AWAY, "FACTS": FACTS, "plain": plain, "Tensor": Tensor, "new": object.__new__}
    fn = compile_source(f"{m.name} (quick maker)", source, env, m.name)
    fn.__signature__ = inspect.signature(whole)
    fn.__annotations__ = whole.__annotations__
    return fn
