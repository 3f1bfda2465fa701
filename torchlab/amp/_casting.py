"""What autocast does to one call: it looks at the operator's policy and casts the arguments.

An operator's declaration names its policy (`Op.autocast`), a word or several:

    lower      tensors become the dtype that autocast was given: products of matrices, convolutions
    float32    tensors become float32: what is too coarse, or not implemented, in 16 bits; for
               operators of users also float16, bfloat16, float64
    promote    all become the widest type among them
    rounded    nothing is cast but the result, to autocast's dtype: the last step is a product
    off        nothing is cast; what the operator is made of runs in the types that it is given
    banned     the operator may not be called: its backward would overflow
    None       the operator runs in the types it is given

A word for one kind of device alone has the kind in front: "float32:cpu", "float32:accelerator".
The operators are those of PyTorch 2.13 for its CPU and its CUDA devices.

Casts are ordinary `.to`, so gradients flow back through them in float32. The operator's own work
then runs with autocast off: what it is made of has no say.

Source: https://docs.pytorch.org/docs/2.13/amp.html#autocast-op-reference
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch import modes
from torchlab._core.tape import NOGRAD, TLS, AccumulateGrad
from torchlab._core.tensor import Tensor

Policies = dict[str, str]
"""Kind of device → policy."""

_KINDS = ("cpu", "accelerator")
_BANNED = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. Use"
    " binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss, which take what comes before"
    " the sigmoid and are safe"
)
_FIXED = {d.name: d for d in (dt.float16, dt.bfloat16, dt.float32, dt.float64)}
_parsed: dict[str, Policies] = {}


def policies(text: str) -> Policies:
    """The policy per kind of device, from a declaration's words."""
    found = _parsed.get(text)
    if found is None:
        found = {}
        for word in text.split():
            policy, _, kind = word.partition(":")
            found |= {kind: policy} if kind else dict.fromkeys(_KINDS, policy)
        _parsed[text] = found
    return found


def kind_of(device_type: str) -> str:
    """Simulated accelerators follow the rules of real ones."""
    return "cpu" if device_type == "cpu" else "accelerator"


class Cache:
    """The casts of leaves, kept until the outermost autocast of the thread ends: a weight that is
    used twice is cast once, and its gradients add up before they are cast back."""

    def __init__(self) -> None:
        self.casts: dict[tuple[int, dt.dtype], tuple[weakref.ref[Tensor], Tensor]] = {}

    def get(self, x: Tensor, to: dt.dtype) -> Tensor | None:
        found = self.casts.get((id(x), to))
        if found is None or found[0]() is not x:  # another tensor may have got a dead one's id
            return None
        return found[1]

    def put(self, x: Tensor, to: dt.dtype, made: Tensor) -> None:
        self.casts[id(x), to] = (weakref.ref(x), made)

    def clear(self) -> None:
        self.casts.clear()


class Caster:
    """The autocast of one thread while it is on; `TLS.autocast` holds it."""

    __slots__ = ("lower", "cache")

    def __init__(self, lower: dict[str, dt.dtype], cache: Cache | None) -> None:
        self.lower = lower  # type of device → dtype, for the devices whose autocast is on
        self.cache = cache  # None: casts are not kept

    @property
    def key(self) -> Any:
        """What results depend on: (type of device, dtype) of each that is on."""
        return tuple(sorted((kind, lower.name) for kind, lower in self.lower.items()))

    def __call__(self, op: Any, args: tuple[Any, ...]) -> Any:
        """The operator's result, or NotImplemented if autocast does not concern the call."""
        cast = self.arguments(op.autocast, args)
        if cast is None:
            return NotImplemented
        return self.off(modes.slow)(op, cast)

    def face(
        self, policy: str, body: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        """The same for a function of Python's over operators."""
        cast = self.arguments(policy, (*args, *named.values()))
        if cast is None:
            return body(*args, **named)
        n = len(args)
        result = self.off(body)(*cast[:n], **dict(zip(named, cast[n:], strict=True)))
        if "rounded" in policy and eligible(result):
            return result.to(self.lower[result._k.device.type])
        return result

    def off(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, run with this thread's autocast off."""

        def without(*args: Any, **named: Any) -> Any:
            TLS.autocast = None
            try:
                return call(*args, **named)
            finally:
                TLS.autocast = self

        return without

    def arguments(self, policy: str, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The cast arguments; None if no tensor is on a device with a policy and autocast on."""
        rules = policies(policy)
        tensors = modes.tensors_in(args)
        targets: dict[str, dt.dtype | None] = {}
        for kind in {x._k.device.type for x in tensors}:
            rule = rules.get(kind_of(kind))
            if rule is not None and kind in self.lower:
                targets[kind] = _target(rule, tensors, kind, self.lower[kind])
        if not targets:
            return None
        return tuple(self._each(x, targets) for x in args)

    def _each(self, x: Any, targets: dict[str, dt.dtype | None]) -> Any:
        if isinstance(x, Tensor):
            to = targets.get(x._k.device.type)
            return x if to is None or x._k.dtype is to or not eligible(x) else self.cast(x, to)
        if type(x) in (list, tuple) and any(isinstance(y, Tensor) for y in x):
            return type(x)(self._each(y, targets) for y in x)
        return x

    def cast(self, x: Tensor, to: dt.dtype) -> Tensor:
        cache = self.cache
        leaf = type(x._e) is AccumulateGrad and x._k.dtype is dt.float32 and x._v is None
        if cache is None or not leaf or _captured():
            return x.to(to)
        found = cache.get(x, to)
        if found is None:
            found = _recorded(x, to)
            cache.put(x, to, found)
        return found


def _captured() -> bool:
    """Whether the compiler is recording: a graph's casts are its own, they have no data."""
    stack = TLS.dispatch_modes
    return bool(stack) and not hasattr(stack[-1], "below_autograd")


def eligible(x: Tensor) -> bool:
    """Whether autocast may cast it: floating point, and not float64, which was asked for."""
    d = x._k.dtype
    return d.is_floating_point and d is not dt.float64


def _target(rule: str, tensors: list[Tensor], kind: str, lower: dt.dtype) -> dt.dtype | None:
    """What tensors on that type of device become; None: what they are."""
    if rule == "banned":
        raise RuntimeError(_BANNED)
    if rule == "lower":
        return lower
    if rule == "promote":
        return _widest(tensors, kind, lower)
    return _FIXED.get(rule)


def _widest(tensors: list[Tensor], kind: str, lower: dt.dtype) -> dt.dtype:
    """float32 from the first float32 on; until then all must be of autocast's dtype."""
    widest = lower
    for x in tensors:
        d = x._k.dtype
        if x._k.device.type != kind or not eligible(x) or d is widest or widest is dt.float32:
            continue
        if d is not dt.float32:
            raise RuntimeError(
                f"Unexpected floating ScalarType in autocast: a tensor is {d!r}, autocast runs in"
                f" {lower!r}; convert it to float32 or {lower!r} with .to()"
            )
        widest = d
    return widest


def _recorded(x: Tensor, to: dt.dtype) -> Tensor:
    """x.to(to) on the tape even under no_grad or inference_mode: the cast outlives them."""
    grad, inference = TLS.grad, TLS.inference
    if grad and not inference:
        return x.to(to)
    TLS.inference = False
    if not grad:
        TLS.grad = True
        NOGRAD.pop()
    try:
        return x.to(to)
    finally:
        TLS.inference = inference
        if not grad:
            TLS.grad = False
            NOGRAD.append(1)
