"""Operators of one's own: `custom_op`, with the same declaration that torchlab's operators have.

    @torchlab.library.custom_op("mylib::sin", mutates_args=())
    def sin(x: Tensor) -> Tensor: ...

    @sin.register_fake
    def _(x): return torchlab.empty_like(x)

    sin.register_autograd(backward, setup_context=setup_context)

Such an operator is opaque: modes and the compiler see one call and never look inside.
Source: https://docs.pytorch.org/docs/2.13/library.html
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch import arrivals, python_key
from torchlab._core.dispatch.compute import meta_tensor
from torchlab._core.dispatch.modes import tensors_in
from torchlab._core.dispatch.op import Op
from torchlab._core.dispatch.overload import OpOverload
from torchlab._core.dispatch.writes import wrote
from torchlab._core.tape import NOGRAD, TLS, edge_of, storage_of
from torchlab._core.tensor import Tensor
from torchlab._ops import CUSTOM, OpOverloadPacket
from torchlab.amp._casting import kind_of
from torchlab.amp.autocast_mode import is_autocast_available
from torchlab.autograd.function import Function
from torchlab.autograd.function_transforms import by_rule
from torchlab.autograd.grad_mode import no_grad
from torchlab.library.fake_context import fake_context
from torchlab.library.infer_schema import infer_schema


class CustomOpDef:
    """What `custom_op` gives: a callable with the registrations of one operator.

    `op` is the declaration; `torchlab.ops.<namespace>.<name>` finds it.
    """

    def __init__(
        self,
        namespace: str,
        name: str,
        schema: str,
        fn: Callable[..., Any] | None,
        overload: str = "default",
    ) -> None:
        self._namespace = namespace
        self._name = name
        self.implicit = False  # the kernel's own calls are recorded: no gradient is registered
        self._default: Callable[..., Any] | None = None
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._off: set[str] = set()  # devices whose kernels are switched off
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self.__name__ = name
        self.__doc__ = doc = fn.__doc__ if fn is not None else None
        self.op = Op(
            (name if overload == "default" else f"{name}.{overload}") + schema,
            family="tensorwise",
            kernel=self._run,
            meta=self._meta,
            method=False,
            spaces=(),
            public=False,
            namespace=namespace,
            doc=doc or "",
        )
        self.op._cache["above"] = self._above
        arguments = self.op.schema.arguments
        self._mutated = [i for i, a in enumerate(arguments) if a.write]
        self._positional = sum(not a.kwarg_only for a in arguments)
        overloads = CUSTOM.setdefault(namespace, {}).setdefault(name, {})
        overloads[overload] = self.op

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op.function(*args, **kwargs)

    # ---- registrations ----

    def register_kernel(
        self, device_types: str | Iterable[str] | None, fn: Callable[..., Any] | None = None
    ) -> Any:
        """Use `fn` for tensors on these devices ("cpu", "sim", "cuda"; None: on all)."""

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            if device_types is None:
                self._default = fn
            else:
                for d in (device_types,) if isinstance(device_types, str) else device_types:
                    self._kernels[d] = fn
            return fn

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Let `fn` tell the outputs' shapes and dtypes: it gets and returns tensors
        without data."""
        self._fake = fn
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register `backward(ctx, *grads)`, which returns one gradient for each positional input.
        `setup_context(ctx, inputs, output)` saves what it needs (with keyword-only arguments:
        `setup_context(ctx, inputs, keyword_only_inputs, output)`)."""
        if self._mutated or any(r.alias for r in self.op.schema.returns):
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema "
                f"{self._namespace}::{self.op.schema}. Please create a functional operator and "
                "register an autograd "
                "formula for that."
            )
        self._backward = backward
        self._setup_context = setup_context

    def register_vmap(self, func: Callable[..., Any] | None = None, /) -> Any:
        """Let `func(info, in_dims, *args, **kwargs)` compute the operator on a whole batch.

        info.batch_size and info.randomness tell of the vmap; in_dims has the hidden dimension of
        each positional argument, None where there is none. It returns (output, out_dims). Without
        it the operator runs once for each element.
        """

        def register(func: Callable[..., Any]) -> Callable[..., Any]:
            n = self._positional
            names = [a.name for a in self.op.schema.arguments[n:]]

            def rule(op: Any, args: tuple[Any, ...], level: int) -> Any:
                named = dict(zip(names, args[n:], strict=True))
                called = partial(func, **named) if named else func
                return by_rule(called, f"vmap function of {self._qualname}", args[:n], level)

            self.op._cache["batching"] = rule
            return func

        return register if func is None else register(func)

    def register_torch_dispatch(
        self, torch_dispatch_class: type, fn: Callable[..., Any] | None = None, /
    ) -> Any:
        """Let `fn` be what a mode's or a tensor subclass' `__torch_dispatch__` does for this
        operator: `fn(mode, func, types, args, kwargs)`, for tensors with the class first."""

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            overload = arrivals.overload_of(self.op)
            if (overload, torch_dispatch_class) in python_key.RULES:
                raise RuntimeError(
                    f"{torch_dispatch_class} already has a `__torch_dispatch__` rule registered"
                    f" for {self._qualname}"
                )
            python_key.RULES[overload, torch_dispatch_class] = fn
            return fn

        return register if fn is None else register(fn)

    def register_autocast(self, device_type: str, cast_inputs: dt.dtype) -> None:
        """While autocast is on for that type of device, let floating-point tensors on it become
        `cast_inputs` (float64 stays) and the operator run with autocast off. ValueError for types
        of devices without autocast and dtypes that are not floating-point."""
        if not isinstance(device_type, str):
            raise TypeError(
                f"register_autocast(): device_type must be str, not {type(device_type).__name__}"
            )
        if not is_autocast_available(device_type):
            raise ValueError(f"Unknown device type for autocast: {device_type}")
        if not isinstance(cast_inputs, dt.dtype) or not cast_inputs.is_floating_point:
            raise ValueError(f"register_autocast(): {cast_inputs} is no floating-point dtype")
        kind = kind_of(device_type)
        others = [w for w in (self.op.autocast or "").split() if not w.endswith(f":{kind}")]
        self.op.autocast = " ".join([*others, f"{cast_inputs.name}:{kind}"])

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Inside, the kernel registered for a device is used or (enabled=False) passed over for
        the one that is there for all devices."""
        before = set(self._off)
        (self._off.discard if enabled else self._off.add)(device_type)
        try:
            yield
        finally:
            self._off = before

    # ---- calls ----

    def _run(self, *args: Any) -> Any:
        """The kernel of the declaration: on tensors, all arguments by position."""
        args = tuple(_dtype(a, x) for a, x in zip(self.op.schema.arguments, args, strict=True))
        return self._above(args, self._invoke)

    def _above(self, args: tuple[Any, ...], invoke: Callable[[tuple[Any, ...]], Any]) -> Any:
        """The tape's part around `invoke(args)`."""
        if self.implicit:
            n = self._positional
            names = [a.name for a in self.op.schema.arguments[n:]]
            fn = self._choose(tensors_in(args))
            return fn(*args[:n], **dict(zip(names, args[n:], strict=True)))
        if (not NOGRAD or TLS.grad) and not self._mutated:
            if any(edge_of(t) is not None for t in tensors_in(args)):
                return self._record(args, invoke)
        return invoke(args)

    def _invoke(self, args: tuple[Any, ...]) -> Any:
        """Run the function that is registered for the device, and hold it to its schema."""
        tensors = tensors_in(args)
        written = tensors_in(tuple(args[i] for i in self._mutated))
        versions = [storage_of(t).version for t in written]
        fn = self._choose(tensors)
        n = self._positional
        names = [a.name for a in self.op.schema.arguments[n:]]
        faking = any(t._k.device.type == "meta" for t in tensors)
        with no_grad(), fake_context(faking):
            output = fn(*args[:n], **dict(zip(names, args[n:], strict=True)))
        for t, version in zip(written, versions, strict=True):
            if storage_of(t).version == version:  # written past torchlab, through NumPy
                wrote(t)
        self._check_alias(tensors, output)
        return output

    def _choose(self, tensors: list[Tensor]) -> Callable[..., Any]:
        types = {t._k.device.type for t in tensors}
        if "meta" in types:
            return self._fake_kernel()
        device = next((t for t in types if t != "cpu"), "cpu")
        fn = self._kernels.get(device) or self._default
        if fn is not None and fn is self._kernels.get(device) and device in self._off:
            fn = self._default
        if fn is None:
            raise NotImplementedError(
                f"Could not run '{self._qualname}' with arguments from the '{device.upper()}' "
                "backend: it has kernels for "
                f"{sorted(self._kernels)}. Register one with register_kernel({device!r})."
            )
        return fn

    def _fake_kernel(self) -> Callable[..., Any]:
        if self._fake is not None:
            return self._fake
        if not self.op.schema.returns:
            return lambda *args, **kwargs: None
        raise RuntimeError(
            f"There was no fake impl registered for {self}. This is necessary for compile, export "
            "and tensors on the "
            "meta device. Please use `register_fake` to add one."
        )

    def _meta(self, *args: Any) -> Any:
        """The meta rule of the declaration, on arrays without data."""

        def tensor(x: Any) -> Any:
            if type(x) in (list, tuple):
                return [tensor(y) for y in x]
            if not (hasattr(x, "shape") and hasattr(x, "dtype")):
                return x
            return meta_tensor(MetaArray(tuple(x.shape), x.dtype), dt.from_numpy(x.dtype))

        def array(x: Any) -> Any:
            return (
                type(x)(array(y) for y in x)
                if type(x) in (list, tuple)
                else x._a
                if isinstance(x, Tensor)
                else x
            )

        return array(self._invoke(tuple(tensor(x) for x in args)))

    def _check_alias(self, inputs: list[Tensor], output: Any) -> None:
        seen = {id(storage_of(t)) for t in inputs}
        for t in tensors_in(output if type(output) in (list, tuple) else (output,)):
            s = storage_of(t)
            if id(s) in seen:
                raise RuntimeError(
                    f"{self._qualname}: The output of this custom operator (1) must not also be "
                    "an input to this custom "
                    "operator and (2) may not alias any inputs to this custom operator or other "
                    "returns. Return a clone "
                    "of the tensor instead (x.clone())."
                )
            seen.add(id(s))

    def _record(self, args: tuple[Any, ...], invoke: Callable[[tuple[Any, ...]], Any]) -> Any:
        """Run the operator as one node of the tape. Lists of tensors are spread for the
        tape's sake."""
        n = self._positional
        keyword = {a.name: x for a, x in zip(self.op.schema.arguments[n:], args[n:], strict=True)}
        spread = [len(x) if type(x) in (list, tuple) and tensors_in(x) else None for x in args[:n]]
        shape: list[Any] = []
        flat = _flatten(args[:n], spread)

        class Generated(Function):
            @staticmethod
            def forward(ctx: Any, *values: Any) -> Any:
                inputs = _gather(values, spread)
                output = invoke((*inputs, *keyword.values()))
                if self._setup_context is not None:
                    if keyword:
                        self._setup_context(ctx, inputs, keyword, output)
                    else:
                        self._setup_context(ctx, inputs, output)
                shape.append(type(output))
                return tuple(output) if type(output) in (list, tuple) else output

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                if self._backward is None:
                    raise RuntimeError(
                        f"Trying to backward through {self.op} but no autograd formula was "
                        "registered. Please use "
                        "register_autograd to add one."
                    )
                given = (list(grads),) if shape[0] is list else grads
                results = self._backward(ctx, *given)
                results = results if isinstance(results, tuple) else (results,)
                if len(results) != n:
                    raise RuntimeError(
                        f"{self._qualname}: backward returned an incorrect number of gradients "
                        f"(expected {n}, got "
                        f"{len(results)}): one for each positional input, None where there is none"
                    )
                return tuple(_flatten(results, spread))

        Generated.__name__ = f"GeneratedBackwardFor_{self._namespace}_{self._name}_default"
        Generated._backward_cls.__name__ = f"{Generated.__name__}Backward"
        output = Generated.apply(*flat)
        return list(output) if shape[0] is list else output


def _dtype(argument: Any, x: Any) -> Any:
    """A dtype that a schema's default names."""
    return getattr(dt, x) if argument.type.base == "ScalarType" and isinstance(x, str) else x


def _flatten(values: Sequence[Any], spread: list[int | None]) -> list[Any]:
    flat: list[Any] = []
    for x, n in zip(values, spread, strict=True):
        if n is None:
            flat.append(x)
        else:
            flat.extend((None,) * n if x is None else x)
    return flat


def _gather(values: Sequence[Any], spread: list[int | None]) -> tuple[Any, ...]:
    rest = iter(values)
    return tuple(next(rest) if n is None else [next(rest) for _ in range(n)] for n in spread)


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make the decorated function an operator called `namespace::name`.

    mutates_args: names of the arguments it writes to, or "unknown" for all tensors.
    device_types: devices the function is for; others come with `register_kernel`.
    schema: PyTorch's notation without the name; by default it follows from the type hints.
    """

    def declare(fn: Callable[..., Any]) -> CustomOpDef:
        namespace, separator, short = name.partition("::")
        if not separator or not namespace.isidentifier() or not short.isidentifier():
            raise ValueError(f"custom_op: the name must be 'namespace::name', got '{name}'")
        text = infer_schema(fn, mutates_args=mutates_args) if schema is None else schema
        CUSTOM.get(namespace, {}).pop(short, None)  # defined anew
        d = CustomOpDef(namespace, short, text, fn)
        d.register_kernel(device_types, fn)
        return d

    return declare if fn is None else declare(fn)


def definition_of(op: Any) -> CustomOpDef:
    """The definition of a custom operator given as itself, its overload, or "namespace::name"."""
    if isinstance(op, CustomOpDef):
        return op
    if isinstance(op, OpOverload):
        op = op.op
    if isinstance(op, OpOverloadPacket):
        op = op._qualified_op_name
    if isinstance(op, str):
        namespace, _, name = op.partition("::")
        name, _, which = name.partition(".")
        op = CUSTOM.get(namespace, {}).get(name, {}).get(which or "default", op)
    owner = getattr(getattr(op, "kernel", None), "__self__", None)
    if not isinstance(owner, CustomOpDef):
        raise RuntimeError(
            f"{op}: there is no custom operator of that name; define it with "
            "torchlab.library.custom_op"
        )
    return owner


def undefine(d: CustomOpDef) -> None:
    """Forget an operator."""
    overloads = CUSTOM.get(d._namespace, {}).get(d._name, {})
    overloads.pop(d.op.overload, None)
    if not overloads:
        CUSTOM.get(d._namespace, {}).pop(d._name, None)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Any = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """`CustomOpDef.register_fake` by the operator's name."""
    d = definition_of(op)
    if d._fake is not None and not allow_override:
        raise RuntimeError(f"register_fake: {d} already has a fake impl registered")
    return d.register_fake if func is None else d.register_fake(func)


def register_kernel(
    op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """`CustomOpDef.register_kernel` by the operator's name."""
    return definition_of(op).register_kernel(device_types, func)


def register_autocast(
    op: Any, device_type: str, cast_inputs: dt.dtype, /, *, lib: Any = None
) -> None:
    """`CustomOpDef.register_autocast` by the operator's name."""
    definition_of(op).register_autocast(device_type, cast_inputs)


def impl_abstract(
    qualname: Any, func: Callable[..., Any] | None = None, *, lib: Any = None, _stacklevel: int = 1
) -> Any:
    """The old name of `register_fake`."""
    warnings.warn(
        "`torch.library.impl_abstract` was renamed to `torch.library.register_fake`. Please use"
        " that instead.",
        FutureWarning,
        stacklevel=2,
    )
    return register_fake(qualname, func, lib=lib)


def register_torch_dispatch(
    op: Any,
    torch_dispatch_class: type,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Any = None,
) -> Any:
    """`CustomOpDef.register_torch_dispatch` by the operator's name."""
    return definition_of(op).register_torch_dispatch(torch_dispatch_class, func)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """`CustomOpDef.register_vmap` by the operator's name."""
    return definition_of(op).register_vmap(func)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Any = None,
) -> None:
    """`CustomOpDef.register_autograd` by the operator's name."""
    definition_of(op).register_autograd(backward, setup_context=setup_context)


__all__ = [
    "CustomOpDef",
    "custom_op",
    "definition_of",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "undefine",
]
