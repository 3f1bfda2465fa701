"""Random numbers: PyTorch's own stream on the CPU (see torchlab._core.generator).

Other devices draw on the host from the same stream and move the numbers.
Source: https://docs.pytorch.org/docs/2.13/torch.html#random-sampling
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import box_muller, layout
from torchlab._core import dtype as dt
from torchlab._core import generator as engine
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch import compute, writes
from torchlab._core.dispatch.factories import told
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import contiguous_format
from torchlab._core.generator import Generator, default_generator
from torchlab._core.layout import broadcast_shapes
from torchlab._core.lazy import lazy
from torchlab._core.ops._kinds import REAL, need
from torchlab._core.ops._makers import maker
from torchlab._core.ops._making import How, into_out
from torchlab._core.tape import edge_of
from torchlab._core.tensor import Tensor

_normals = lazy("torchlab._core.codegen.normals")  # long draws are compiled
_twister = lazy("torchlab._core.codegen.twister")
box_muller.compiled = lambda: _normals.kernel()
engine.compiled = lambda: _twister.kernel()


def generator_of(generator: Any) -> Generator:
    """The given generator, or the default one of the process."""
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(
            f"argument 'generator' must be torch.Generator, not {type(generator).__name__}"
        )
    return generator


@face("manual_seed", method=False)
def manual_seed(seed: Any) -> Any:
    """Seed the default generator; returns it."""
    return default_generator.manual_seed(int(seed))


@face("seed", method=False)
def seed() -> Any:
    """Seed the default generator from the system's entropy; returns the seed."""
    return default_generator.seed()


@face("initial_seed", method=False)
def initial_seed() -> Any:
    """The seed that the default generator began with."""
    return default_generator.initial_seed()


@face("get_rng_state", method=False)
def get_rng_state() -> Any:
    """The default generator's state as a uint8 tensor."""
    return compute.wrap(default_generator.get_state())


@face("set_rng_state", method=False)
def set_rng_state(new_state: Any) -> Any:
    """Set the default generator's state."""
    default_generator.set_state(
        np.ascontiguousarray(new_state._a if isinstance(new_state, Tensor) else new_state)
    )


def _made(how: How, draw: Any, shape: Any, dtype: dt.dtype) -> Any:
    """The numbers that `draw(n)` gives, in that shape."""
    if how.place.type == "meta":
        return how.done(how.empty(shape, dtype))
    how.check_pin()  # before numbers are drawn
    return how.around(draw(layout.numel(shape)).reshape(shape), dtype)


def _uniform(shape: Any, dtype: Any) -> Any:
    if dtype.kind not in "fV":
        raise ValueError("not by the short way")
    return default_generator.uniform(layout.numel(shape), dtype).reshape(shape)


def _normal(shape: Any, dtype: Any) -> Any:
    if dtype.kind not in "fV":
        raise ValueError("not by the short way")
    return default_generator.normal(layout.numel(shape), dtype=dtype).reshape(shape)


@maker("rand", quick=_uniform, out=True)
def rand(how: How, size: Any, *more: Any, generator: Any = None) -> Any:
    """Uniform numbers in [0, 1): the values PyTorch draws for the same seed."""
    shape, d, g = how.sizes(size, more), how.kind, generator_of(generator)
    if how.layout is not None:
        return how.unlike(shape, "uniform_")
    if how.place.type != "meta":
        _drawable(d, "check_uniform_bounds", "fVc")
    if d.is_complex:
        real = d.to_real().np
        return _made(how, lambda n: g.uniform(2 * n, real).view(d.np), shape, d)
    return _made(how, lambda n: g.uniform(n, d.np), shape, d)


def _normal_type(dtype: dt.dtype, place: Any) -> None:
    if place.type == "meta" and dtype.category < dt.FLOAT:
        raise RuntimeError(f"expected a floating-point or complex dtype, but got dtype={dtype}")
    _drawable(dtype, "normal_kernel_cpu", "fVc")


def _normal_numbers(how: How, shape: Any, mean: float, std: float, g: Generator) -> Any:
    if how.layout is not None:
        return how.unlike(shape, "normal_", compressed=True)
    d = how.kind
    _normal_type(d, how.place)
    if not d.is_complex:
        return _made(how, lambda n: g.normal(n, mean, std, d.np), shape, d)
    # Two parts of half the variance each, and both with the mean, as PyTorch
    real, part = d.to_real().np, std * 0.5**0.5
    return _made(how, lambda n: g.normal(2 * n, mean, part, real).view(d.np), shape, d)


@maker("randn", quick=_normal, out=True)
def randn(how: How, size: Any, *more: Any, generator: Any = None) -> Any:
    """Standard normal numbers: PyTorch's for the same seed (float32 to the last bits)."""
    if how.out is not None and edge_of(how.out) is not None:
        raise RuntimeError("cannot resize variables that require grad")
    return _normal_numbers(how, how.sizes(size, more), 0.0, 1.0, generator_of(generator))


@maker("randint", out=True)
def randint(
    how: How, low: Any = 0, high: Any = None, size: Any = None, *, generator: Any = None
) -> Any:
    """Integers in [low, high): `randint(high, size)` or `randint(low, high, size)`."""
    if size is None:
        if high is None or isinstance(high, int):
            raise TypeError("randint(): argument 'size' must be tuple of ints")
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    shape, d, g = how.sizes(tuple(size)), how.dtype or dt.int64, generator_of(generator)
    if how.layout is not None:
        how.dtype = d
        return how.unlike(shape, "random_.from")
    low, high = int(low), int(high)
    if how.place.type != "meta":
        _check_range(low, high, d)
    return _made(how, lambda n: g.randint(n, low, high, d.np), shape, d)


@maker("randperm", out=True)
def randperm(how: How, n: int, *, generator: Any = None) -> Any:
    """A random permutation of 0 … n − 1."""
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got {n}")
    d, g = how.dtype or dt.int64, generator_of(generator)
    if how.layout is not None:
        how.dtype = d
        return how.unlike((n,), "randperm.generator_out")
    if how.place.type != "meta":
        _drawable(d, "randperm", "iufV")
    return _made(how, lambda m: g.randperm(m, d.np), (n,), d)


def _like(name: str, fill: str) -> None:
    @maker(name, memory_format=True)
    def like(how: How, self: Any, *, generator: Any = None) -> Any:
        return how.done(getattr(aten, fill)(how.like(self), generator=generator))

    like.doc = f"As `{name[:-5]}`, with the size and type of `input`."


_like("rand_like", "uniform_")
_like("randn_like", "normal_")


@maker("randint_like", memory_format=True)
def randint_like(how: How, self: Any, low: Any, high: Any = None, *, generator: Any = None) -> Any:
    """As `randint`, with the size and type of `input`."""
    if high is None:
        low, high = 0, low
    return how.done(random_.body(how.like(self), int(low), int(high), generator=generator))


@op(
    "_random_write(Tensor self) -> Tensor",
    family="tensorwise",
    public=False,
    vjp={"self": "zeros_like(g)"},
)
def _random_write(self: Any) -> Any:
    """The node of a write of random numbers: nothing of the old value is left."""
    return self


def _node(name: str) -> Any:
    cls = _random_write.node_class
    return type(name, (cls,), {"__slots__": (), "__module__": cls.__module__})


_nodes: dict[str, Any] = {}


def memory_order(a: Any) -> tuple[int, ...] | None:
    """The dims of the array from the widest stride to the narrowest, or None if they are so
    already: the order in which PyTorch's loops go through a tensor that they write."""
    if a.flags.c_contiguous or a.ndim < 2:
        return None
    order = tuple(sorted(range(a.ndim), key=lambda dim: -a.strides[dim]))
    return None if order == tuple(range(a.ndim)) else order


def fill_random(t: Tensor, draw: Any, name: str, others: tuple[Any, ...] = ()) -> Tensor:
    """Write `draw(n)` into t, in the order of its memory, with the bookkeeping of a write in
    place."""
    grad = writes.prepare_write(_random_write, t, others)
    writes.check_memory(_random_write, t, ())
    e = edge_of(t)
    if t._k.device.type != "meta":
        order = memory_order(t._a)
        target = t._a if order is None else t._a.transpose(order)
        values = draw(target.size).reshape(target.shape)
        target[...] = (
            values
            if t._k.device.type != "cuda"
            else compute.base.backend(t._k.device).xp.asarray(values)
        )
    writes.wrote(t)
    if grad and e is not None:
        if name not in _nodes:
            _nodes[name] = _node("".join(p.title() for p in name.split("_")) + "Backward0")
        node = _nodes[name]()
        node.next, node.shape, node.k = (e,), t._a.shape, t._k
        writes.rebase_history(t, node)
    return t


def _drawable(dtype: dt.dtype, kernel: str, kinds: str = "fV") -> None:
    """Raise as PyTorch's kernel of this name does for dtypes that it has not got."""
    if dtype.np.kind not in kinds:
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{dtype.scalar_name}'; use a floating-point dtype"
        )


def _floating(t: Tensor, kernel: str, kinds: str = "fV") -> None:
    if t._k.device.type != "meta":  # which has no kernels
        _drawable(t._k.dtype, kernel, kinds)


def _check_range(low: int, high: int, dtype: dt.dtype) -> None:
    """Raise RuntimeError if `dtype` cannot hold the integers in [low, high)."""
    if dtype.is_complex:
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types, not"
            f" {dtype}"
        )
    if dtype.category == dt.FLOAT:
        return
    largest = 1 if dtype is dt.bool_ else (1 << 8 * dtype.itemsize - dtype.is_signed) - 1
    smallest = -largest - 1 if dtype.is_signed else 0
    for what, x in (("from", low), ("to - 1", high - 1)):
        if not smallest <= x <= largest:
            raise RuntimeError(
                f"{what} is out of bounds for {dtype.name}: {x} is not in [{smallest}, {largest}]"
            )


def _continuous(t: Tensor, name: str) -> None:
    if t._a.dtype.kind not in "fV":
        raise RuntimeError(
            f"{name} distribution is a continuous probability distribution. dtype must be a"
            f" floating point but you specified {t._k.dtype.scalar_name}"
        )


def _short(x: Any) -> str:
    """The number as PyTorch prints it in messages: 1.0 is 1."""
    return f"{x:g}"


@face("uniform_", spaces=())
def uniform_(
    self: Any, from_: float = 0, to: float = 1, *, generator: Any = None, **old: Any
) -> Any:
    """Fill with uniform numbers in [from, to); both parts of complex ones."""
    if SLOW and (seen := told("uniform_", locals())) is not None:
        return seen
    from_ = old.pop("from", from_)
    if old:
        raise TypeError(f"uniform_() got an unexpected keyword argument '{next(iter(old))}'")
    _floating(self, "check_uniform_bounds", "fVc")
    real = self._k.dtype.to_real().np
    largest = float(np.finfo(real).max) if real.kind == "f" else 255 * 2.0**120
    for name, bound in (("from", from_), ("to", to)):
        if not -largest <= bound <= largest:
            raise RuntimeError(f"{name} is out of bounds for {self._k.dtype.scalar_name}")
    if from_ > to:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={_short(from_)} >"
            f" to={_short(to)}"
        )
    if to - from_ > largest:
        raise RuntimeError(
            "uniform_ expects to-from <= std::numeric_limits<"
            f"{self._k.dtype.scalar_name}>::max(), but found to={_short(to)} and"
            f" from={_short(from_)} which result in to-from to exceed the limit"
        )
    g = generator_of(generator)

    def draw(n: int) -> Any:
        if self._a.dtype.kind == "c":
            return g.uniform(2 * n, real, from_, to).view(self._a.dtype)
        return g.uniform(n, self._a.dtype, from_, to)

    return fill_random(self, draw, "uniform")


@face("normal_", spaces=())
def normal_(self: Any, mean: float = 0, std: float = 1, *, generator: Any = None) -> Any:
    """Fill with normal numbers."""
    if SLOW and (seen := told("normal_", locals())) is not None:
        return seen
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {_short(std)}")
    _normal_type(self._k.dtype, self._k.device)
    g = generator_of(generator)
    contiguous = self._k.contiguous

    def draw(n: int) -> Any:
        if self._a.dtype.kind != "c":
            return g.normal(n, mean, std, self._a.dtype, contiguous)
        # Two parts of half the variance each, and both with the mean, as PyTorch
        real = self._k.dtype.to_real().np
        return g.normal(2 * n, mean, std * 0.5**0.5, real, contiguous).view(self._a.dtype)

    return fill_random(self, draw, "normal")


@face("exponential_", spaces=())
def exponential_(self: Any, lambd: float = 1, *, generator: Any = None) -> Any:
    """Fill with exponential numbers of rate `lambd`."""
    if SLOW and (seen := told("exponential_", locals())) is not None:
        return seen
    _continuous(self, "Exponential")
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={_short(lambd)}")
    g = generator_of(generator)
    return fill_random(self, lambda n: g.exponential(n, lambd, self._a.dtype), "exponential")


@face("random_", spaces=())
def random_(
    self: Any, from_: Any = None, to: Any = None, *, generator: Any = None, **old: Any
) -> Any:
    """Fill with integers: below `from` (if alone), in [from, to), or over the type's range."""
    if SLOW and (seen := told("random_", locals())) is not None:
        return seen
    from_ = old.pop("from", from_)
    if old:
        raise TypeError(f"random_() got an unexpected keyword argument '{next(iter(old))}'")
    g = generator_of(generator)
    if from_ is None:
        return fill_random(self, lambda n: g.random(n, self._a.dtype), "random")
    if to is None:
        from_, to = 0, from_
    low, high = int(from_), int(to)
    if self._k.device.type != "meta":
        _check_range(low, high, self._k.dtype)
    return fill_random(self, lambda n: g.randint(n, low, high, self._a.dtype), "random")


def _check_probabilities(p: Any) -> None:
    if type(p) is not MetaArray and p.size and not (bool((p >= 0).all()) and bool((p <= 1).all())):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")


@face("bernoulli_", spaces=())
def bernoulli_(self: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    """Fill with ones of probability p (a number or a tensor of probabilities), zeros elsewhere."""
    if SLOW and (seen := told("bernoulli_", locals())) is not None:
        return seen
    g = generator_of(generator)
    if isinstance(p, Tensor):
        _floating(p, "bernoulli_tensor_cpu_p_")
        _check_probabilities(p._a)
        probabilities = np.broadcast_to(p._a, self._a.shape)
        order = memory_order(self._a)
        if order is not None:
            probabilities = probabilities.transpose(order)
        drawn = lambda n: g.bernoulli_tensor(np.ascontiguousarray(probabilities))
        return fill_random(self, drawn, "bernoulli", (p,))
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={_short(p)}")
    need(REAL, "bernoulli_scalar_cpu_", self._a)
    return fill_random(self, lambda n: g.bernoulli_p(n, float(p)), "bernoulli")


def _drawn(name: str, grad_name: str) -> Any:
    @op(
        f"{name}(Tensor values, Tensor parameter) -> Tensor",
        public=False,
        half=False,
        meta=lambda values, parameter: MetaArray(values.shape, values.dtype),
        vjp={"parameter": "zeros_like(parameter)"},
        grad_name=grad_name,
    )
    def drawn(xp: Any, values: Any, parameter: Any) -> Any:
        """Numbers drawn for a parameter, on which they do not depend smoothly: the gradient is
        zero."""
        return values.copy()

    return drawn


_drawn("_drawn_bernoulli", "BernoulliBackward0")
_drawn("_drawn_for_mean", "NormalBackward1")
_drawn("_drawn_for_std", "NormalBackward2")


@face("bernoulli")
def bernoulli(self: Any, p: Any = None, *, generator: Any = None, out: Any = None) -> Any:
    """Ones with the probabilities that `input` holds (or p everywhere), zeros elsewhere."""
    if SLOW and (seen := told("bernoulli", locals())) is not None:
        return seen
    given = aten.detach(self)
    if out is not None:
        writes.prepare_out(bernoulli, out, (self,))
    if p is None:
        _floating(self, "bernoulli_tensor_cpu_p_")
    if out is not None:
        writes.resize_out(bernoulli, out, self._a.shape)
    r = aten.empty_like(given, memory_format=contiguous_format) if out is None else out
    r = bernoulli_.body(r, given if p is None else p, generator=generator)
    return aten._drawn_bernoulli(r, self) if out is None and self.requires_grad else r


@maker("normal", out=True)
def normal(how: How, mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None) -> Any:
    """Normal numbers with means and standard deviations from tensors or numbers."""
    if size is not None:
        if std < 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {_short(std)}")
        g = generator_of(generator)
        return _normal_numbers(how, how.sizes(size), float(mean), float(std), g)
    if how.given:
        raise TypeError(
            "normal() received an invalid combination of arguments: with a tensor for mean or std,"
            " the result is of its dtype, device and layout; leave these options out"
        )
    out = how.out
    if out is not None:
        writes.prepare_out(normal, out, (mean, std))
    if isinstance(std, Tensor):
        if type(std._a) is not MetaArray and std._a.size and bool((std._a < 0).any()):
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {_short(std)}")
    like = mean if isinstance(mean, Tensor) else std
    shape = like._a.shape
    if isinstance(mean, Tensor) and isinstance(std, Tensor):
        shape = broadcast_shapes(mean._a.shape, std._a.shape)
    parameters = mean, std
    mean, std = (aten.detach(x) if isinstance(x, Tensor) else x for x in (mean, std))
    if out is not None:
        out.resize_(shape)
    r = aten.new_empty(aten.detach(like), shape) if out is None else out
    normal_.body(r, 0.0, 1.0, generator=generator)
    r = r.mul_(std).add_(mean)
    if out is None:
        draws = aten._drawn_for_mean, aten._drawn_for_std
        for x, drawn in zip(parameters, draws, strict=True):
            if isinstance(x, Tensor) and x.requires_grad:
                r = drawn(r, x)
    return r


@face("multinomial")
def multinomial(
    self: Any,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Any = None,
    out: Any = None,
) -> Any:
    """Indices drawn with the probabilities of each row."""
    if SLOW and (seen := told("multinomial", locals())) is not None:
        return seen
    a = self._a
    if a.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not self._k.dtype.is_floating_point:
        raise RuntimeError(
            "multinomial only supports floating-point dtypes for input, got:"
            f" {self._k.dtype.scalar_name}"
        )
    if out is not None and out._k.dtype is not dt.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out._k.dtype.scalar_name}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > a.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if a.shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    if a.size and (bool((a < 0).any()) or not bool(np.isfinite(a).all())):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if a.size and bool((a.sum(-1) == 0).any()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    r = compute.wrap_on(
        generator_of(generator).multinomial(a, num_samples, replacement), self._k.device
    )
    return into_out(multinomial, r, out) if out is not None else r


@face("geometric_", spaces=())
def geometric_(self: Any, p: float, *, generator: Any = None) -> Any:
    """Fill with the numbers of trials up to the first success."""
    if SLOW and (seen := told("geometric_", locals())) is not None:
        return seen
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={_short(p)}")
    _floating(self, "geometric_cpu", "fViu")
    g = generator_of(generator)
    return fill_random(self, lambda n: g.geometric(n, p, self._a.dtype), "geometric")


@face("cauchy_", spaces=())
def cauchy_(self: Any, median: float = 0, sigma: float = 1, *, generator: Any = None) -> Any:
    """Fill with Cauchy numbers."""
    if SLOW and (seen := told("cauchy_", locals())) is not None:
        return seen
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={_short(sigma)}")
    _continuous(self, "Cauchy")
    g = generator_of(generator)
    return fill_random(self, lambda n: g.cauchy(n, median, sigma, self._a.dtype), "cauchy")


@face("log_normal_", spaces=())
def log_normal_(self: Any, mean: float = 1, std: float = 2, *, generator: Any = None) -> Any:
    """Fill with exp of normal numbers."""
    if SLOW and (seen := told("log_normal_", locals())) is not None:
        return seen
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={_short(std)}")
    _floating(self, "log_normal_cpu")
    g = generator_of(generator)
    return fill_random(self, lambda n: g.log_normal(n, mean, std, self._a.dtype), "log_normal")
