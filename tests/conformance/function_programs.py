"""Small programs with `__torch_function__`; each returns something that can be compared."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

CASES: dict[str, Callable[[Any], Any]] = {}


def case(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    CASES[f.__name__] = f
    return f


@case
def scalar_like(torch: Any) -> Any:
    H = {}

    class S:
        def __init__(self, n, v):
            self.n = n
            self.v = v

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func not in H or not all(issubclass(t, (torch.Tensor, S)) for t in types):
                return NotImplemented
            return H[func](*args, **(kwargs or {}))

        def tensor(self):
            return torch.eye(self.n) * self.v

    H[torch.mean] = lambda x: x.v / x.n
    H[torch.add] = lambda a, b: (
        (a.tensor() if isinstance(a, S) else a) + (b.tensor() if isinstance(b, S) else b)
    )
    s = S(2, 4)
    r = [
        torch.mean(s),
        torch.add(s, torch.ones(2, 2)).tolist(),
        torch.add(torch.ones(2, 2), s).tolist(),
    ]
    for f in (lambda: torch.mul(s, 2), lambda: torch.mul(torch.ones(2), s)):
        try:
            f()
            r.append("none")
        except TypeError:
            r.append("TypeError")
    return r


@case
def plain_subclass(torch: Any) -> Any:
    class A(torch.Tensor):
        pass

    class B(A):
        pass

    class C(torch.Tensor):
        pass

    a = torch.ones(2).as_subclass(A)
    b = torch.ones(2).as_subclass(B)
    c = torch.ones(2).as_subclass(C)
    r = [
        type(a + 1).__name__,
        type(a + b).__name__,
        type(b + a).__name__,
        type(torch.stack([a, torch.ones(2)])).__name__,
        type(a.sum()).__name__,
        type(a[0]).__name__,
        type(a.detach()).__name__,
        type(a.max(0)[0]).__name__,
        type(a.clone()).__name__,
        repr(a),
    ]
    try:
        a + c
        r.append("ok")
    except TypeError:
        r.append("TypeError")
    return r


@case
def disable_function(torch: Any) -> Any:
    class A(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "told"

    a = torch.ones(2).as_subclass(A)
    C = import_module(torch.__name__ + "._C")
    with C.DisableTorchFunctionSubclass():
        r = type(a + 1).__name__
        s = a.shape
    return a + 1, r, tuple(s), a.shape, a.sum(), torch.nn.functional.relu(a)


@case
def function_mode(torch: Any) -> Any:
    ov = import_module(torch.__name__ + ".overrides")
    log = []

    class M(ov.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(getattr(func, "__name__", str(func)))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 2)
    with M():
        x + 1
        torch.add(x, 1)
        x.sum()
        torch.nn.functional.relu(x)
        x.t()
        x.add_(1)
        torch.matmul(x, x)
        x.view(4)
    return log


@case
def function_mode_identity(torch: Any) -> Any:
    ov = import_module(torch.__name__ + ".overrides")
    log = []

    class M(ov.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(
                (
                    func is torch.add,
                    func == torch.Tensor.add,
                    func is torch.sum,
                    func == torch.Tensor.sum,
                )
            )
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 2)
    with M():
        x + 1
        torch.add(x, 1)
        x.add(1)
        x.sum()
    return log


@case
def function_mode_factories(torch: Any) -> Any:
    ov = import_module(torch.__name__ + ".overrides")
    log = []

    class M(ov.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(getattr(func, "__name__", str(func)))
            return func(*args, **(kwargs or {}))

    with M():
        torch.ones(2)
        torch.zeros(2)
        torch.rand(2)
        torch.tensor([1.0])
        torch.arange(3)
        torch.empty(2)
        torch.zeros_like(torch.ones(1))
        torch.full((1,), 1.0)
    return log


@case
def nested_function_modes(torch: Any) -> Any:
    ov = import_module(torch.__name__ + ".overrides")
    log = []

    class M(ov.TorchFunctionMode):
        def __init__(self, n):
            self.n = n

        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append((self.n, func.__name__))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with M(1):
        with M(2):
            x.add(1)
        x.mul(2)
    return log


@case
def identity_functions(torch: Any) -> Any:
    log = []

    class A(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append(
                (
                    func is torch.mean,
                    func == torch.Tensor.mean,
                    func == torch.Tensor.add,
                    func is torch.add,
                    func == torch.Tensor.shape.__get__,
                    func == torch.Tensor.__getitem__,
                )
            )
            return super().__torch_function__(func, types, args, kwargs or {})

    a = torch.ones(2, 2).as_subclass(A)
    torch.mean(a)
    a.mean()
    a + 1
    a.add(1)
    torch.add(a, 1)
    torch.ones(2, 2) + a
    torch.ones(2, 2).add(a)
    _ = a.shape
    _ = a[0]
    return log


@case
def parameter_subclass(torch: Any) -> Any:
    class A(torch.Tensor):
        pass

    class P(torch.nn.Parameter):
        pass

    a = torch.nn.Parameter(torch.ones(2).as_subclass(A))
    p = P(torch.ones(2))
    m = torch.nn.Module()
    m.a = a
    m.p = p
    return (
        type(a).__name__,
        isinstance(a, torch.nn.Parameter),
        isinstance(torch.ones(2), torch.nn.Parameter),
        type(p).__name__,
        isinstance(p, torch.nn.Parameter),
        sorted(n for n, _ in m.named_parameters()),
        type(a + 1).__name__,
        type(p + 1).__name__,
    )


@case
def overrides_api(torch: Any) -> Any:
    ov = import_module(torch.__name__ + ".overrides")

    class A(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *a, **k):
            return NotImplemented

    a = torch.ones(2).as_subclass(A)

    def my(x):
        if ov.has_torch_function((x,)):
            return ov.handle_torch_function(my, (x,), x)
        return 1

    try:
        my(a)
        r = 0
    except TypeError:
        r = 1
    return (
        ov.has_torch_function((a,)),
        ov.has_torch_function((torch.ones(1),)),
        r,
        my(torch.ones(1)),
        ov.is_tensor_like(a),
        ov.is_tensor_like(3),
        ov.resolve_name(torch.add),
        ov.resolve_name(torch.Tensor.add),
        ov.resolve_name(torch.nn.functional.relu),
        ov.is_tensor_method_or_property(torch.Tensor.add),
        ov.is_tensor_method_or_property(torch.Tensor.shape.__get__),
        ov.is_tensor_method_or_property(torch.add),
    )
