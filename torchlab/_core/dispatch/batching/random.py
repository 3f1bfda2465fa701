"""Random numbers inside vmap: refused, different for each element, or the same for all.

Functions that draw ask here first, through `factories.told` (they have no tensors among their
arguments, or write to them). Different numbers are drawn for the whole batch at once, the hidden
dimension first.

Source: https://docs.pytorch.org/docs/2.13/func.ux_limitations.html#randomness
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from torchlab._core.dispatch import batches, factories
from torchlab._core.dispatch.batches import batched, front, held, is_batched
from torchlab._core.dispatch.batching.calls import Call, each
from torchlab._core.dispatch.levels import LEVELS
from torchlab._core.dispatch.registry import FACES, METHODS, aten
from torchlab._core.tensor import Tensor

_MADE = frozenset(("rand", "randn", "randint", "normal_sizes"))
_WRITES = frozenset(
    ("uniform_", "normal_", "exponential_", "bernoulli_", "random_", "geometric_", "cauchy_",
     "log_normal_")
)  # fmt: skip


def _refuse() -> NoReturn:
    raise RuntimeError(
        "vmap: called random operation while in randomness error mode. Please either use the 'same'"
        " or 'different' randomness flags on vmap or perform the randomness operation out of vmap"
    )


def _refuse_batched(name: str) -> NoReturn:
    raise RuntimeError(
        f"vmap: {name}: randomness='same' is not there for an input that is vmapped over; its"
        " numbers would differ. Draw outside of vmap, or with randomness='different'."
    )


def below(level: int, draw: Callable[[], Any]) -> Any:
    """`draw()` with the transform of this level, and those within, not running."""
    running = LEVELS.running
    LEVELS.running = running[: level - 1]
    try:
        return draw()
    finally:
        LEVELS.running = running


def told(name: str, p: dict[str, Any]) -> Any:
    """The result of a function that draws, with these parameters; NotImplemented if no vmap runs
    or it draws nothing."""
    if name not in _DRAWS:
        return NotImplemented
    found = batches.innermost()
    if found is None:
        return NotImplemented
    level, n, mode = found
    if mode == "error":
        _refuse()
    return _DRAWS[name](name, p, level, n, mode == "same")


def _body(name: str) -> Any:
    owner = FACES.get(name)
    return owner.body if owner is not None else METHODS[name][0].body


def _kept(p: dict[str, Any], *names: str) -> dict[str, Any]:
    return {k: p[k] for k in names if p.get(k) is not None}


_FACTS = ("dtype", "device", "generator")


def _made(name: str, p: dict[str, Any], level: int, n: int, same: bool) -> Any:
    size = p["size"]
    if p.get("more"):
        size = (size, *p["more"])
    size = (size,) if isinstance(size, int) else tuple(size)
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    facts = _kept(p, *_FACTS)
    whole = size if same else (n, *size)
    if name == "randint":
        low, high = p["low"], p["high"]
        if p["size"] is None:
            low, high, size = 0, low, tuple(high)
        elif high is None:
            low, high = 0, low
        whole = size if same else (n, *size)
        r = below(level, lambda: _body(name)(low, high, whole, **facts))
    else:
        r = below(level, lambda: _body(name)(whole, **facts))
    r = r if same else batched(r, 0, level)
    return r.requires_grad_() if p.get("requires_grad") else r


def _permuted(name: str, p: dict[str, Any], level: int, n: int, same: bool) -> Any:
    facts = _kept(p, *_FACTS)
    if same:
        return below(level, lambda: _body(name)(p["n"], **facts))
    rows = below(level, lambda: [_body(name)(p["n"], **facts) for _ in range(n)])
    return batched(aten.stack(rows), 0, level)


def _like(name: str, p: dict[str, Any], level: int, n: int, same: bool) -> Any:
    x = p["self"]
    made = _empty(x, level, n, same, p)
    low = (p["low"], p["high"]) if name == "randint_like" else ()
    if low and low[1] is None:
        low = (0, low[0])
    writer = {"rand_like": "uniform_", "randn_like": "normal_", "randint_like": "random_"}[name]
    facts = _kept(p, "generator")
    below(level, lambda: _body(writer)(held(made, level), *low, **facts))
    return made.requires_grad_() if p.get("requires_grad") else made


def _empty(x: Any, level: int, n: int, same: bool, p: dict[str, Any]) -> Any:
    """An empty tensor like `x`, batched if different numbers go into it."""
    facts = _kept(p, "dtype", "device")
    shape = tuple(x._a.shape)
    dtype, device = facts.get("dtype", x.dtype), facts.get("device", x.device)
    made = below(
        level, lambda: aten.empty(shape if same else (n, *shape), dtype=dtype, device=device)
    )
    return made if same else batched(made, 0, level)


def _written(name: str, p: dict[str, Any], level: int, n: int, same: bool) -> Any:
    x = p["self"]
    rest = {k: v for k, v in p.items() if k not in ("self", "old", "g") and v is not None}
    rest.update(p.get("old") or {})
    given = {k: v for k, v in rest.items() if isinstance(v, Tensor)}
    if x._level < level and not same:
        raise RuntimeError(
            f"vmap: Cannot ask for different inplace randomness on an unbatched tensor, in {name}."
            " This will appear like same randomness. If this is necessary for your usage, please"
            " make the tensor batched, for example with torch.zeros_like of a batched one."
        )
    if x._level > level:  # a transform within holds it
        return NotImplemented
    if not is_batched(x, level):
        if any(is_batched(v, level) for v in given.values()):
            raise RuntimeError(f"vmap: {name}: the tensor is not vmapped over, its parameter is")
        below(level, lambda: _body(name)(held(x, level), **rest))
        return x
    if not same:
        target = front(x, level)
        whole = {k: _aligned(v, target, level) for k, v in given.items()}
        below(level, lambda: _body(name)(target, **{**rest, **whole}))
        return x
    if any(is_batched(v, level) for v in given.values()):
        raise RuntimeError(
            f"vmap: {name}: with randomness='same' its parameter must not be vmapped over"
        )
    drawn = below(level, lambda: _body(name)(aten.empty(tuple(x._a.shape), dtype=x.dtype), **rest))
    return x.copy_(drawn)


def _aligned(v: Any, target: Any, level: int) -> Any:
    if not is_batched(v, level):
        return held(v, level)
    value = front(v, level)
    missing = len(target._a.shape) - len(value._a.shape)
    shape = value._a.shape
    return aten.reshape(value, (shape[0], *(1,) * missing, *shape[1:])) if missing > 0 else value


def _bernoulli(name: str, p: dict[str, Any], level: int, n: int, same: bool) -> Any:
    x, chance = p["self"], p["p"]
    if same and (is_batched(x, level) or is_batched(chance, level)):
        _refuse_batched(name)
    made = _empty(x, level, n, same, {})
    chances = aten.detach(x) if chance is None else chance
    return _written("bernoulli_", {"self": made, "p": chances, **_kept(p, "generator")}, level, n,
                    same) if not same else below(  # fmt: skip
        level, lambda: _body("bernoulli_")(made, held(chances, level)
               if isinstance(chances, Tensor) else chances, **_kept(p, "generator")))  # fmt: skip


def _normal(name: str, p: dict[str, Any], level: int, n: int, same: bool) -> Any:
    mean, std = p["mean"], p["std"]
    if p["size"] is not None:
        r = _made("randn", {"size": tuple(p["size"]), **_kept(p, *_FACTS)}, level, n, same)
        return aten.add(aten.mul(r, std), mean)
    if same and (is_batched(mean, level) or is_batched(std, level)):
        _refuse_batched(name)
    like = aten.add(mean, std)
    return aten.add(aten.mul(_like("randn_like", {"self": like, **_kept(p, "generator")}, level, n,
                                   same), std), mean)  # fmt: skip


def _multinomial(name: str, p: dict[str, Any], level: int, n: int, same: bool) -> Any:
    x = p["self"]
    if x._level > level:
        return NotImplemented
    more = (p["num_samples"], p["replacement"])
    facts = _kept(p, "generator")
    if same:
        if is_batched(x, level):
            _refuse_batched(name)
        return below(level, lambda: _body(name)(held(x, level), *more, **facts))
    rank = len(x._a.shape)
    value = front(x, level)
    if not is_batched(x, level):
        value = aten.expand(value, (n, *value._a.shape))
    rows = aten.reshape(value, (-1, value._a.shape[-1]))
    made = below(level, lambda: _body(name)(aten.contiguous(rows), *more, **facts))
    return batched(aten.unflatten(made, 0, (n, -1)) if rank == 2 else made, 0, level)


_DRAWS: dict[str, Any] = {
    **dict.fromkeys(("rand", "randn", "randint"), _made),
    "randperm": _permuted,
    **dict.fromkeys(("rand_like", "randn_like", "randint_like"), _like),
    **dict.fromkeys(_WRITES, _written),
    "bernoulli": _bernoulli,
    "normal": _normal,
    "multinomial": _multinomial,
}


def _drawing(c: Call) -> Any:
    """Operators that draw for each element of their argument."""
    mode = batches.facts(c.level)[1]
    if mode == "error":
        _refuse()
    if mode == "same":
        _refuse_batched(c.op.name)
    return c.run(**{n: c.full(n) for n in c.tensors()})


each("_sample_dirichlet _standard_gamma poisson binomial", _drawing)
factories.drawn.append(told)

__all__ = ["told"]
