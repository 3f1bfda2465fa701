"""Small programs with tensor subclasses and modes; each returns something that can be compared."""

from __future__ import annotations

import copy
from collections.abc import Callable
from importlib import import_module
from typing import Any

CASES: dict[str, Callable[[Any], Any]] = {}


def case(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    CASES[f.__name__] = f
    return f


def logging_tensor(torch: Any, log: Any) -> Any:
    tree_map = import_module(torch.__name__ + ".utils._pytree").tree_map

    class LoggingTensor(torch.Tensor):
        elem: object
        __slots__ = ["elem"]

        @staticmethod
        def __new__(cls, elem, *args, **kwargs):
            r = torch.Tensor._make_wrapper_subclass(
                cls,
                elem.size(),
                strides=elem.stride(),
                storage_offset=elem.storage_offset(),
                dtype=elem.dtype,
                layout=elem.layout,
                device=elem.device,
                requires_grad=kwargs.get("requires_grad", False),
            )
            r.elem = elem.detach() if r.requires_grad else elem
            return r

        def __repr__(self, *, tensor_contents=None):
            return f"LoggingTensor({self.elem})"

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            unwrap = lambda e: e.elem if isinstance(e, cls) else e
            wrap = lambda e: cls(e) if isinstance(e, torch.Tensor) else e
            log.append(str(func))
            return tree_map(wrap, func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {})))

    return LoggingTensor


@case
def log_mul(torch: Any) -> Any:
    log = []
    L = logging_tensor(torch, log)
    x = L(torch.tensor([3.0]), requires_grad=True)
    y = x * x
    log.append("backward")
    y.sum().backward()
    return log, type(y).__name__, type(x.grad).__name__, x.grad.elem.tolist()


@case
def log_mlp(torch: Any) -> Any:
    log = []
    L = logging_tensor(torch, log)
    x = L(torch.ones(2, 3))
    w = L(torch.ones(4, 3), requires_grad=True)
    b = L(torch.zeros(4), requires_grad=True)
    y = torch.nn.functional.linear(x, w, b)
    z = torch.relu(y).sum()
    z.backward()
    return (
        log,
        z.elem.item(),
        w.grad.elem.tolist(),
        b.grad.elem.tolist(),
        tuple(y.shape),
        y.requires_grad,
    )


@case
def log_views(torch: Any) -> Any:
    log = []
    L = logging_tensor(torch, log)
    x = L(torch.arange(6.0).reshape(2, 3))
    y = x.t()[1:]
    z = y.reshape(4)
    return log, z.elem.tolist(), y.stride(), y.is_contiguous(), x.shape == (2, 3)


@case
def log_inplace(torch: Any) -> Any:
    log = []
    L = logging_tensor(torch, log)
    x = L(torch.ones(3))
    v = x._version
    x.add_(1)
    x.mul_(x)
    r = x.elem.tolist()
    return log, r, x._version - v


@case
def log_softmax(torch: Any) -> Any:
    log = []
    L = logging_tensor(torch, log)
    x = L(torch.ones(2, 3), requires_grad=True)
    torch.log_softmax(x, 1)[:, 0].sum().backward()
    return x.grad.elem.tolist()


@case
def log_mixed(torch: Any) -> Any:
    log = []
    L = logging_tensor(torch, log)
    x = L(torch.ones(3))
    return (
        type(x + torch.ones(3)).__name__,
        type(torch.ones(3) + x).__name__,
        type(torch.cat([torch.ones(3), x])).__name__,
        log,
    )


@case
def log_exp_saved(torch: Any) -> Any:
    log = []
    L = logging_tensor(torch, log)
    x = L(torch.ones(3), requires_grad=True)
    y = x.exp()
    y.sum().backward()
    return log, x.grad.elem.tolist()


@case
def log_second(torch: Any) -> Any:
    log = []
    L = logging_tensor(torch, log)
    x = L(torch.ones(3) * 2, requires_grad=True)
    (g,) = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return g.elem.tolist(), h.elem.tolist()


@case
def nested_mode_and_tensor(torch: Any) -> Any:
    TM = import_module(torch.__name__ + ".utils._python_dispatch").TorchDispatchMode
    log = []
    L = logging_tensor(torch, log)

    class M(TM):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append(("mode", str(func), [t.__name__ for t in types]))
            return func(*args, **(kwargs or {}))

    x = L(torch.ones(2))
    with M():
        y = x + 1
    return log, type(y).__name__


@case
def two_modes(torch: Any) -> Any:
    TM = import_module(torch.__name__ + ".utils._python_dispatch").TorchDispatchMode
    log = []

    class M(TM):
        def __init__(self, n):
            super().__init__()
            self.n = n

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append((self.n, str(func)))
            return func(*args, **(kwargs or {}))

    with M("out"):
        with M("in"):
            torch.ones(2) + 1
        torch.ones(2)
    return log


@case
def mode_changes(torch: Any) -> Any:
    TM = import_module(torch.__name__ + ".utils._python_dispatch").TorchDispatchMode

    class M(TM):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten.add.Tensor:
                func = torch.ops.aten.sub.Tensor
            if func.overloadpacket is torch.ops.aten.relu:
                return args[0] * 0 + 7
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, requires_grad=True)
    with M():
        y = torch.relu(x + 3)
        y.sum()
    return y.tolist(), y.requires_grad, type(y.grad_fn).__name__


@case
def mode_raises(torch: Any) -> Any:
    TM = import_module(torch.__name__ + ".utils._python_dispatch").TorchDispatchMode

    class M(TM):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise ValueError("no")

    x = torch.ones(2)
    try:
        with M():
            x + 1
    except ValueError as e:
        r = str(e)
    return r, (x + 1).tolist()


@case
def disable_modes(torch: Any) -> Any:
    pd = import_module(torch.__name__ + ".utils._python_dispatch")
    log = []

    class M(pd.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append(str(func))
            return func(*args, **(kwargs or {}))

    with M():
        with pd._disable_current_modes():
            torch.ones(2) + 1
        torch.ones(2) * 2
    return log


@case
def overload_facts(torch: Any) -> Any:
    f = torch.ops.aten.add.Tensor
    return (
        str(f),
        repr(f),
        f.name(),
        str(f._schema),
        f.overloadpacket is torch.ops.aten.add,
        [a.name for a in f._schema.arguments],
        f._schema.arguments[2].kwarg_only,
        f._schema.arguments[2].default_value,
        f.namespace,
        f.__name__,
        f._overloadname,
        f._opname,
        f._schema.is_mutable,
        torch.ops.aten.add_.Tensor._schema.is_mutable,
        str(torch.ops.aten.add_.Tensor._schema),
        str(torch.ops.aten.add.out._schema),
        torch.ops.aten.add_.Tensor._schema.arguments[0].alias_info.is_write,
        torch.ops.aten.t.default.is_view,
        str(torch.ops.aten.add),
        repr(torch.ops.aten.add),
        len(f._schema.returns),
        f is torch.ops.aten.add.Tensor,
        {f: 1}[torch.ops.aten.add.Tensor],
        hasattr(torch.ops.aten, "no_such"),
        torch.ops.aten.mm.default(torch.eye(2), torch.eye(2)).tolist(),
        torch.ops.aten.add(torch.ones(1), 1).tolist(),
        torch.ops.aten.sum.dim_IntList(torch.ones(2, 2), [1]).tolist(),
        str(torch.ops.aten.mm.default),
        torch.ops.aten.mm.default.name(),
    )


def two_tensor(torch: Any) -> Any:
    pd = import_module(torch.__name__ + ".utils._python_dispatch")
    pt = import_module(torch.__name__ + ".utils._pytree")
    C = import_module(torch.__name__ + "._C")

    class TwoTensor(torch.Tensor):
        @staticmethod
        def __new__(cls, a, b):
            return torch.Tensor._make_wrapper_subclass(
                cls,
                a.size(),
                strides=a.stride(),
                storage_offset=a.storage_offset(),
                device=a.device,
                layout=a.layout,
                requires_grad=a.requires_grad,
                dtype=a.dtype,
            )

        def __init__(self, a, b):
            self.a = a
            self.b = b

        def __repr__(self):
            return f"TwoTensor({self.a!r}, {self.b!r})"

        def __tensor_flatten__(self):
            return ["a", "b"], None

        @staticmethod
        def __tensor_unflatten__(inner, meta, size, stride):
            return TwoTensor(inner["a"], inner["b"])

        __torch_function__ = C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args, kwargs):
            kwargs = kwargs or {}
            fa = func(
                *pt.tree_map_only(TwoTensor, lambda x: x.a, args),
                **pt.tree_map_only(TwoTensor, lambda x: x.a, kwargs),
            )
            fb = func(
                *pt.tree_map_only(TwoTensor, lambda x: x.b, args),
                **pt.tree_map_only(TwoTensor, lambda x: x.b, kwargs),
            )
            la, spec = pt.tree_flatten(fa)
            lb = pt.tree_leaves(fb)
            out = pt.tree_unflatten(
                [cls(x, y) if isinstance(x, torch.Tensor) else x for x, y in zip(la, lb)], spec
            )
            return pd.return_and_correct_aliasing(func, args, kwargs, out)

    return TwoTensor


@case
def two_basic(torch: Any) -> Any:
    T = two_tensor(torch)
    x = T(torch.ones(2, 2), torch.zeros(2, 2))
    y = (x + 1).t().mm(x)
    return y.a.tolist(), y.b.tolist(), type(y).__name__, repr(x)


@case
def two_alias(torch: Any) -> Any:
    T = two_tensor(torch)
    x = T(torch.ones(2, 2), torch.zeros(2, 2))
    v = x.view(4)
    r = x.add_(1)
    return r is x, v.a.tolist(), v.b.tolist(), x.a.tolist()


@case
def two_grad(torch: Any) -> Any:
    T = two_tensor(torch)
    x = T(torch.ones(2), torch.ones(2) * 3).requires_grad_()
    (x * x).sum().backward()
    return x.grad.a.tolist(), x.grad.b.tolist(), type(x.grad).__name__


@case
def two_module(torch: Any) -> Any:
    T = two_tensor(torch)
    m = torch.nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        m.weight.fill_(1.0)
    m.weight = torch.nn.Parameter(T(m.weight.detach(), m.weight.detach() * 2))
    y = m(torch.ones(1, 2))
    y.sum().backward()
    return (
        type(m.weight).__name__,
        isinstance(m.weight, torch.nn.Parameter),
        [n for n, _ in m.named_parameters()],
        y.a.tolist(),
        y.b.tolist(),
        m.weight.grad.b.tolist(),
    )


@case
def two_traceable(torch: Any) -> Any:
    pd = import_module(torch.__name__ + ".utils._python_dispatch")
    T = two_tensor(torch)
    x = T(torch.ones(2), torch.zeros(2))
    t = pd.transform_subclass(x, lambda n, t: t + 1)
    return (
        pd.is_traceable_wrapper_subclass(x),
        pd.is_traceable_wrapper_subclass(torch.ones(2)),
        t.a.tolist(),
        t.b.tolist(),
    )


@case
def two_sgd(torch: Any) -> Any:
    T = two_tensor(torch)
    p = torch.nn.Parameter(T(torch.ones(2), torch.ones(2) * 2))
    opt = torch.optim.SGD([p], lr=0.1)
    (p * p).sum().backward()
    opt.step()
    return [round(v, 5) for v in p.a.tolist() + p.b.tolist()]


@case
def two_deepcopy(torch: Any) -> Any:
    T = two_tensor(torch)
    x = T(torch.ones(2), torch.zeros(2))
    y = copy.deepcopy(x)
    y.a.add_(1)
    return type(y).__name__, x.a.tolist(), y.a.tolist()


@case
def quantized(torch: Any) -> Any:
    C = import_module(torch.__name__ + "._C")

    class Q(torch.Tensor):
        @staticmethod
        def __new__(cls, data, scale):
            return torch.Tensor._make_wrapper_subclass(
                cls, data.shape, dtype=scale.dtype, device=data.device
            )

        def __init__(self, data, scale):
            self.data_ = data
            self.scale = scale

        __torch_function__ = C._disabled_torch_function_impl

        def deq(self):
            return self.data_.to(self.scale.dtype) * self.scale

        @classmethod
        def __torch_dispatch__(cls, func, types, args, kwargs=None):
            if func is torch.ops.aten.t.default:
                return Q(args[0].data_.t(), args[0].scale)
            if func is torch.ops.aten.detach.default:
                return Q(args[0].data_, args[0].scale)
            args = [a.deq() if isinstance(a, Q) else a for a in args]
            return func(*args, **(kwargs or {}))

    w = Q(torch.tensor([[1, 2], [3, 4]], dtype=torch.int8), torch.tensor(0.5))
    x = torch.ones(1, 2, requires_grad=True)
    m = torch.nn.Linear(2, 2)
    m.weight = torch.nn.Parameter(w, requires_grad=False)
    with torch.no_grad():
        m.bias.zero_()
    y = m(x)
    y.sum().backward()
    return (
        y.tolist(),
        x.grad.tolist(),
        type(m.weight).__name__,
        w.dtype == torch.float32,
        tuple(w.shape),
    )


@case
def metadata(torch: Any) -> Any:
    class M(torch.Tensor):
        @staticmethod
        def __new__(cls, x, meta=None, *a, **k):
            return super().__new__(cls, x, *a, **k)

        def __init__(self, x, meta=None):
            self.meta = meta

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            metas = [a.meta for a in args if hasattr(a, "meta")]
            r = super().__torch_function__(func, types, args, kwargs or {})
            if isinstance(r, M) and metas:
                r.meta = metas[0]
            return r

    x = M([1.0, 2.0], meta="info")
    y = torch.add(x, 1)
    z = (y * 2)[0]
    return y.meta, type(y).__name__, z.meta, type(x.shape).__name__, x.tolist()


@case
def make_subclass(torch: Any) -> Any:
    class A(torch.Tensor):
        @staticmethod
        def __new__(cls, x):
            return torch.Tensor._make_subclass(cls, x, True)

    x = torch.ones(2)
    a = A(x)
    x.add_(1)
    return type(a).__name__, a.requires_grad, a.is_leaf, a.tolist(), (a * 2).requires_grad


@case
def pytree(torch: Any) -> Any:
    pt = import_module(torch.__name__ + ".utils._pytree")
    import collections

    P = collections.namedtuple("P", "x y")
    t = {
        "b": [1, (2, None)],
        "a": P(3, collections.OrderedDict(z=4, c=5)),
        "d": collections.deque([6]),
    }
    l, s = pt.tree_flatten(t)
    r = [
        l,
        s.num_leaves,
        pt.tree_unflatten([x if x is None else x * 2 for x in l], s)
        == pt.tree_map(lambda x: x if x is None else x * 2, t),
        pt.tree_leaves(t),
        pt.tree_map_only(int, lambda x: -x, [1, "a"]),
        pt.tree_all(lambda x: x is None or x > 0, t),
        pt.tree_any(lambda x: x == 6, t),
        pt.tree_structure([1, 2]) == pt.tree_structure([3, 4]),
        str(pt.tree_structure([1, {"a": 2}])),
        pt.tree_map(lambda a, b: a + b, [1, [2]], [3, [4]]),
    ]

    class N:
        def __init__(s, a, b):
            s.a = a
            s.b = b

    pt.register_pytree_node(N, lambda n: ([n.a, n.b], None), lambda v, c: N(*v))
    n = pt.tree_map(lambda x: x + 1, N(1, 2))
    r += [(n.a, n.b)]
    kp, _ = pt.tree_flatten_with_path({"a": [1, 2]})
    r += [[pt.keystr(k) for k, _ in kp]]
    try:
        pt.tree_unflatten([1], s)
        r.append(0)
    except ValueError:
        r.append(1)
    return r


@case
def flops(torch: Any) -> Any:
    FC = import_module(torch.__name__ + ".utils.flop_counter").FlopCounterMode
    m = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with FC(display=False) as f:
        m(torch.ones(3, 4)).sum().backward()
    r = [
        f.get_total_flops(),
        {str(k): v for k, v in f.get_flop_counts()["Global"].items()},
        sorted(k for k in f.get_flop_counts()),
    ]
    c = torch.nn.Conv2d(2, 3, 3, padding=1)
    with FC(display=False) as f:
        c(torch.ones(1, 2, 5, 5, requires_grad=True)).sum().backward()
    r += [f.get_total_flops()]
    with FC(display=False) as f:
        torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5))
        torch.baddbmm(torch.ones(2, 3, 5), torch.ones(2, 3, 4), torch.ones(2, 4, 5))
        torch.einsum("bij,bjk->bik", torch.ones(2, 3, 4), torch.ones(2, 4, 5))
    return r + [f.get_total_flops()]
