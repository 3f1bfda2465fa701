"""Small programs with operators of one's own; each returns something that can be compared."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

CASES: dict[str, Callable[[Any], Any]] = {}


def case(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    CASES[f.__name__] = f
    return f


def err(f: Callable[[], Any]) -> str:
    try:
        f()
    except Exception as e:
        return type(e).__name__
    return "no error"


@case
def define_impl(torch: Any) -> Any:
    L = torch.library
    with L._scoped_library("dlib1", "DEF") as lib:
        n = lib.define("scale(Tensor x, float by=2.0) -> Tensor")
        lib.impl("scale", lambda x, by=2.0: x * by, "CPU")
        r = [
            n,
            torch.ops.dlib1.scale(torch.ones(2), 3.0).tolist(),
            torch.ops.dlib1.scale.default(torch.ones(2)).tolist(),
            str(torch.ops.dlib1.scale.default._schema),
            str(torch.ops.dlib1.scale.default),
            torch.ops.dlib1.scale.default.name(),
        ]
    return r


@case
def overloads(torch: Any) -> Any:
    L = torch.library
    with L._scoped_library("dlib2", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.define("f.two(Tensor x, Tensor y) -> Tensor")
        lib.impl("f", lambda x: x + 1, "CompositeExplicitAutograd")
        lib.impl("f.two", lambda x, y: x + y + 10, "CompositeExplicitAutograd")
        o = torch.ones(1)
        return (
            sorted(torch.ops.dlib2.f.overloads()),
            torch.ops.dlib2.f(o).tolist(),
            torch.ops.dlib2.f(o, o).tolist(),
            torch.ops.dlib2.f.two(o, o).tolist(),
        )


@case
def implicit(torch: Any) -> Any:
    L = torch.library
    with L._scoped_library("dlib3", "DEF") as lib:
        lib.define("sq(Tensor x) -> Tensor")
        lib.impl("sq", lambda x: x * x, "CompositeImplicitAutograd")
        x = torch.ones(2, requires_grad=True) * 3
        x.retain_grad()
        y = torch.ops.dlib3.sq(x)
        y.sum().backward()
        return x.grad.tolist(), type(y.grad_fn).__name__


@case
def errors(torch: Any) -> Any:
    L = torch.library
    r = [err(lambda: L.Library("x", "NOPE")), err(lambda: L.Library("prim", "DEF"))]
    with L._scoped_library("dlib4", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        r += [
            err(lambda: lib.define("f(Tensor x) -> Tensor")),
            err(lambda: L.Library("dlib4", "DEF")),
            err(lambda: lib.impl("f", 3, "CPU")),
            err(lambda: L.fallthrough_kernel()),
            err(lambda: lib.define("f(Tensor x")),
            err(lambda: torch.ops.dlib4.nothing),
            err(lambda: torch.ops.dlib4.f(torch.ones(1))),
        ]
        lib.impl("f", lambda x: x, "CPU")
        r += [
            err(lambda: lib.impl("f", lambda x: x, "CPU")),
            err(lambda: torch.ops.dlib4.f(1)),
            err(lambda: torch.ops.dlib4.f()),
        ]
    r += [err(lambda: torch.ops.dlib4.f(torch.ones(1)))]
    return r


@case
def low_level_functions(torch: Any) -> Any:
    L = torch.library
    with L._scoped_library("dlib5", "FRAGMENT") as lib:
        L.define("dlib5::g", "(Tensor x) -> Tensor", lib=lib)

        @L.impl("dlib5::g", "default", lib=lib)
        def g(x):
            return x * 7

        @L.register_fake("dlib5::g", lib=lib)
        def _(x):
            return torch.empty_like(x)

        L.register_autograd("dlib5::g", lambda ctx, gr: gr * 7, lib=lib)
        x = torch.ones(2, requires_grad=True)
        y = torch.ops.dlib5.g(x)
        y.sum().backward()
        return (
            y.tolist(),
            x.grad.tolist(),
            tuple(torch.ops.dlib5.g(torch.empty(3, device="meta")).shape),
        )


@case
def custom(torch: Any) -> Any:
    L = torch.library

    @L.custom_op("dlib6::mul", mutates_args=())
    def mul(x: torch.Tensor, y: float) -> torch.Tensor:
        return x * y

    @mul.register_fake
    def _(x, y):
        return torch.empty_like(x)

    def setup(ctx, inputs, output):
        ctx.y = inputs[1]

    mul.register_autograd(lambda ctx, g: (g * ctx.y, None), setup_context=setup)
    x = torch.ones(2, requires_grad=True)
    z = mul(x, 3.0)
    z.sum().backward()
    L.opcheck(mul, (torch.ones(2, requires_grad=True), 2.0))
    return (
        z.tolist(),
        x.grad.tolist(),
        str(torch.ops.dlib6.mul.default._schema),
        repr(mul).replace(" ", ""),
        L.opcheck(mul, (torch.ones(2), 2.0)),
    )


@case
def custom_in_mode(torch: Any) -> Any:
    L = torch.library
    TM = import_module(torch.__name__ + ".utils._python_dispatch").TorchDispatchMode
    log = []

    @L.custom_op("dlib7::dbl", mutates_args=())
    def dbl(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    dbl.register_autograd(lambda ctx, g: g * 2)

    class M(TM):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, requires_grad=True)
    with M():
        y = dbl(x)
        y.sum().backward()
    return log, x.grad.tolist(), y.requires_grad


@case
def torch_dispatch_rule(torch: Any) -> Any:
    L = torch.library
    pd = import_module(torch.__name__ + ".utils._python_dispatch")
    log = []

    @L.custom_op("dlib8::foo", mutates_args=())
    def foo(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    class M(pd.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append(("handler", str(func)))
            return func(*args, **(kwargs or {}))

    @L.register_torch_dispatch("dlib8::foo", M)
    def _(mode, func, types, args, kwargs):
        log.append(("rule", type(mode).__name__, str(func)))
        return func(*args, **(kwargs or {})) + 1

    class W(torch.Tensor):
        @staticmethod
        def __new__(cls, e):
            r = torch.Tensor._make_wrapper_subclass(cls, e.shape, dtype=e.dtype, device=e.device)
            r.e = e
            return r

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError("no")

    @L.register_torch_dispatch("dlib8::foo", W)
    def _(cls, func, types, args, kwargs):
        return W(func(args[0].e) * 5)

    with M():
        y = foo(torch.ones(1))
        torch.ones(1).add(1)
    return log, y.tolist(), foo(W(torch.ones(1))).e.tolist()


@case
def mutating(torch: Any) -> Any:
    L = torch.library

    @L.custom_op("dlib9::inc", mutates_args={"x"})
    def inc(x: torch.Tensor, n: int = 1) -> None:
        x.add_(n)

    x = torch.zeros(2)
    v = x._version
    r = inc(x)
    inc(x, 2)
    return (
        r,
        x.tolist(),
        x._version > v,
        str(torch.ops.dlib9.inc.default._schema),
        torch.ops.dlib9.inc.default._schema.is_mutable,
    )


@case
def ctx(torch: Any) -> Any:
    L = torch.library
    return err(L.get_ctx)


@case
def kernels(torch: Any) -> Any:
    L = torch.library

    @L.custom_op("dlib10::k", mutates_args=(), device_types="cpu")
    def k(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    r = [k(torch.zeros(1)).tolist(), err(lambda: k(torch.empty(1, device="meta")))]
    L.register_kernel("dlib10::k", "cpu", lambda x: x + 5)
    return r + [k(torch.zeros(1)).tolist()]


@case
def opcheck_fails(torch: Any) -> Any:
    L = torch.library

    @L.custom_op("dlib11::bad", mutates_args=())
    def bad(x: torch.Tensor) -> torch.Tensor:
        return x.sum(0)

    @bad.register_fake
    def _(x):
        return torch.empty_like(x)

    r = L.opcheck(bad, (torch.ones(2, 3),), raise_exception=False)
    return sorted(k for k, v in r.items() if v == "SUCCESS"), sorted(r)


@case
def infer(torch: Any) -> Any:
    L = torch.library
    T = torch.Tensor

    def f(
        x: T,
        y: T | None,
        n: int,
        xs: list[T],
        fl: float = 1.0,
        b: bool = True,
        *,
        dt: torch.dtype | None = None,
    ) -> T: ...
    def g(x: T) -> tuple[T, T]: ...
    def h(x): ...

    return (
        L.infer_schema(f, mutates_args=()),
        L.infer_schema(g, mutates_args={"x"}),
        err(lambda: L.infer_schema(h, mutates_args=())),
        L.infer_schema(g, mutates_args="unknown", op_name="q"),
    )


@case
def list_and_grad(torch: Any) -> Any:
    L = torch.library

    @L.custom_op("dlib12::total", mutates_args=())
    def total(xs: list[torch.Tensor]) -> torch.Tensor:
        return sum(xs[1:], xs[0].clone())

    def setup(ctx, inputs, output):
        ctx.n = len(inputs[0])

    total.register_autograd(lambda ctx, g: [g * 1.0] * ctx.n, setup_context=setup)
    a = torch.ones(2, requires_grad=True)
    b = torch.ones(2, requires_grad=True)
    total([a, b]).sum().backward()
    return a.grad.tolist(), b.grad.tolist()


@case
def multiple_outputs(torch: Any) -> Any:
    L = torch.library

    @L.custom_op("dlib13::pair", mutates_args=())
    def pair(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, x * 3

    pair.register_autograd(lambda ctx, a, b: a * 2 + b * 3)
    x = torch.ones(2, requires_grad=True)
    a, b = pair(x)
    (a + b).sum().backward()
    return x.grad.tolist(), type(pair(x)).__name__


@case
def no_autograd(torch: Any) -> Any:
    L = torch.library

    @L.custom_op("dlib14::n", mutates_args=())
    def n(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    y = n(torch.ones(1, requires_grad=True))
    return y.requires_grad, err(lambda: y.sum().backward())


@case
def compiled(torch: Any) -> Any:
    L = torch.library

    @L.custom_op("dlib15::c", mutates_args=())
    def c(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @c.register_fake
    def _(x):
        return torch.empty_like(x)

    c.register_autograd(lambda ctx, g: g * 2)
    f = torch.compile(lambda x: torch.sin(c(x) + 1), backend="aot_eager", fullgraph=True)
    x = torch.ones(2, requires_grad=True)
    f(x).sum().backward()
    return [round(v, 4) for v in x.grad.tolist()]


@case
def kernel_switch(torch: Any) -> Any:
    L = torch.library

    @L.custom_op("dlib16::s", mutates_args=())
    def s(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    s.register_kernel("cpu", lambda x: x + 2)
    r = [s(torch.zeros(1)).item()]
    with s.set_kernel_enabled("cpu", enabled=False):
        r.append(s(torch.zeros(1)).item())
    return r + [s(torch.zeros(1)).item()]


@case
def aten_names(torch: Any) -> Any:
    names = (
        "add sub mul div mm addmm bmm relu sigmoid tanh exp log sum mean max min cat stack "
        "view reshape permute transpose t expand squeeze unsqueeze select slice index gather "
        "scatter where clamp native_layer_norm convolution embedding maximum minimum "
        "logical_and ones zeros empty full arange rand randn clone copy_ fill_ zero_ add_ "
        "mul_ detach _softmax _log_softmax nll_loss_forward gelu silu special_i0e erf sort "
        "topk cumsum argmax eq lt any all var std linalg_vector_norm _to_copy lift_fresh "
        "_local_scalar_dense "
    ).split()
    return [n for n in names if not hasattr(torch.ops.aten, n)]
