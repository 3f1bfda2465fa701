"""Parametrizations: a parameter that is a function of others.

`register_parametrization(module, "weight", f)` makes `module.weight` the value of f(original): the
module gets a class of its own, with a property of that name, and the original goes to
`module.parametrizations.weight`.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.utils.parametrize.register_parametrization.html
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from torchlab._core.tensor import Parameter, Tensor
from torchlab.autograd.grad_mode import no_grad
from torchlab.nn.containers import ModuleDict, ModuleList
from torchlab.nn.module import Module


class _Cache:
    """The values computed since the outermost `cached` began, by module and tensor name."""

    def __init__(self) -> None:
        self.depth = 0
        self.values: dict[tuple[int, str], Any] = {}


_CACHE = _Cache()


@contextmanager
def cached() -> Iterator[None]:
    """Within it, every parametrized tensor is computed when it is first used, and no second
    time."""
    _CACHE.depth += 1
    try:
        yield
    finally:
        _CACHE.depth -= 1
        if not _CACHE.depth:
            _CACHE.values = {}


def _enter(module: Any, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _inverse(parametrization: Any, value: Any) -> Any:
    """What its `right_inverse` says; `value` itself where that declares it cannot be done."""
    try:
        return parametrization.right_inverse(value)
    except NotImplementedError:
        return value


def _must_match(what: str, first: tuple[str, Any], second: tuple[str, Any], flag: str) -> None:
    for kind in ("dtype", "shape"):
        a, b = getattr(first[1], kind), getattr(second[1], kind)
        if a != b:
            raise ValueError(
                f"{what.format(kind=kind)}, unless {flag} flag is enabled.\n"
                f"{first[0].format(kind=kind)}: {a}\n{second[0].format(kind=kind)}: {b}"
            )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied one after the other, and what they start from:
    `original`, or `original0`, `original1`, … where the first takes several tensors."""

    def __init__(
        self, modules: Sequence[Module], original: Tensor | Parameter, unsafe: bool = False
    ) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        start: Any = original
        source = cast(Any, original)
        with no_grad():
            for module in reversed(modules):
                if hasattr(module, "right_inverse"):
                    start = _inverse(module, start)
        if not isinstance(start, (Tensor, list, tuple)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(start).__name__}"
            )
        self.is_tensor = isinstance(start, Tensor)
        self.ntensors = 1 if self.is_tensor else len(start)
        looks = _Looks(source)
        self._check_start(source, start)
        if self.is_tensor:
            _put(source, start)
            _enter(self, "original", original)
        else:
            for i, t in enumerate(start):
                learnt = isinstance(original, Parameter)
                t = Parameter(t.detach(), source.requires_grad) if learnt else t.detach()
                _enter(self, f"original{i}", t)
        if not unsafe:
            value = self()
            if not isinstance(value, Tensor):
                raise ValueError(
                    f"A parametrization must return a tensor. Got {type(value).__name__}."
                )
            _must_match(
                "Registering a parametrization may not change the {kind} of the tensor",
                ("unparametrized {kind}", looks),
                ("parametrized {kind}", value),
                "`unsafe`",
            )

    def _check_start(self, original: Any, start: Any) -> None:
        if self.is_tensor:
            if original.dtype != start.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\n"
                    f"right_inverse(original).dtype: {start.dtype}"
                )
            return
        for i, t in enumerate(start):
            if not isinstance(t, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                    f"tuple...). Got element {i} of the sequence with type {type(t).__name__}."
                )

    def right_inverse(self, value: Any) -> None:
        """Let the originals be those that give `value`: what assigning to the tensor does."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            values = [value] if self.is_tensor else value
            if not isinstance(values, (list, tuple)) or len(values) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got {type(value).__name__}"
                )
            originals = self._originals()
            for new, old in zip(values, originals, strict=True):
                if not isinstance(new, Tensor):
                    raise ValueError(
                        f"`right_inverse` should return a tensor. Got {type(new).__name__}"
                    )
                if new.dtype != old.dtype:  # type: ignore[attr-defined]
                    raise ValueError(
                        "The tensor returned by `right_inverse` has dtype "
                        f"{new.dtype} while `original` has dtype {old.dtype}"  # type: ignore[attr-defined]
                    )
            for new, old in zip(values, originals, strict=True):
                _put(old, new)

    def _originals(self) -> list[Any]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def forward(self) -> Any:
        first, *others = self
        x = first(*self._originals())
        for module in others:
            x = module(x)
        return x


class _Looks:
    """dtype and shape that a tensor had before it was changed in place."""

    def __init__(self, tensor: Any) -> None:
        self.dtype, self.shape = tensor.dtype, tensor.shape


def _put(into: Any, new: Any) -> None:
    """Give a tensor another's memory, so that optimizers that know it still do."""
    if into is not new:
        into.data = new.detach()


# ---- the module's class -------------------------------------------------------------------------


def _copied(self: Any, memo: dict[int, Any]) -> Any:
    """Without pickling, which the next function forbids."""
    found = memo.get(id(self))
    if found is None:
        found = self.__new__(type(self))
        memo[id(self)] = found
        found.__dict__ = copy.deepcopy(self.__dict__, memo)
    return found


def _not_pickled(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _own_class(module: Any) -> None:
    base = type(module)
    members: dict[str, Any] = {"__getstate__": _not_pickled, "__module__": __name__}
    if not hasattr(base, "__deepcopy__"):
        members["__deepcopy__"] = _copied
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), members)


def _own_property(module: Any, name: str) -> None:
    def value(self: Any) -> Any:
        if not _CACHE.depth:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _CACHE.values:
            _CACHE.values[key] = self.parametrizations[name]()
        return _CACHE.values[key]

    def assign(self: Any, new: Any) -> None:
        self.parametrizations[name].right_inverse(new)

    setattr(type(module), name, property(value, assign))


# ---- registering and removing -------------------------------------------------------------------


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the module, or its tensor of that name, has parametrizations."""
    own = getattr(module, "parametrizations", None)
    if own is None or not isinstance(own, ModuleDict):
        return False
    return len(own) > 0 if tensor_name is None else tensor_name in own


def type_before_parametrizations(module: Module) -> type:
    """The module's class without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let `module.tensor_name` be parametrization(original), after those that it has already.

    A `right_inverse` of the parametrization says which original gives a value, at the start and
    when a value is assigned. Raises ValueError if dtype or shape change, unless `unsafe`, and if
    there is no such tensor.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        chain: Any = module.parametrizations[tensor_name]
        if not unsafe:
            _check_next(module, tensor_name, parametrization)
        chain.append(parametrization)
        chain.unsafe = chain.unsafe or unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        chain = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _own_class(module)
            module.parametrizations = ModuleDict()
        _own_property(module, tensor_name)
        module.parametrizations[tensor_name] = chain
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def _check_next(module: Any, name: str, parametrization: Any) -> None:
    now = getattr(module, name)
    value = parametrization(now)
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
    _must_match(
        "Registering a parametrization may not change the {kind} of the tensor",
        (f"module.{name}.{{kind}}", now),
        (f"parametrization(module.{name}).{{kind}}", value),
        "the `unsafe`",
    )
    if hasattr(parametrization, "right_inverse"):
        back = _inverse(parametrization, value)
        if not isinstance(back, Tensor):
            raise ValueError(
                f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
            )
        _must_match(
            f"The tensor returned by parametrization.right_inverse must have the same {{kind}} as "
            f"module.{name}",
            (f"module.{name}.{{kind}}", now),
            ("returned {kind}", back),
            "the `unsafe`",
        )


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make the tensor a plain one again: with its present value, or with `leave_parametrized`
    False with the original's."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    own: Any = module.parametrizations
    chain = own[tensor_name]
    if chain.is_tensor:
        original = chain.original
        if leave_parametrized:
            with no_grad():
                _put(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del own[tensor_name]
    _enter(module, tensor_name, original)
    if len(own) == 0:
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give `to_module` the parametrizations of `from_module`, and the originals; of one tensor, or
    of all. Returns `to_module`."""
    if not is_parametrized(from_module):
        return to_module
    source: Any = from_module.parametrizations
    for name in [tensor_name] if tensor_name is not None else list(source.keys()):
        if not hasattr(to_module, name):
            value = Parameter(getattr(from_module, name).detach())
            to_module.register_parameter(name, value)
        chain = source[name]
        for parametrization in chain:
            register_parametrization(to_module, name, parametrization)
        target: Any = to_module.parametrizations
        for key in chain._parameters.keys() | chain._buffers.keys():
            setattr(target[name], key, getattr(chain, key))
    return to_module


__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization",
    "remove_parametrizations", "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]  # fmt: skip
