"""Pruning: parameters of a module times masks of zeros and ones.

A pruned parameter `name` becomes three things: the parameter `name_orig`, which the optimizer goes
on training, the buffer `name_mask`, and the attribute `name`, their product, which a hook before
each forward pass renews. `remove` makes the product the parameter.

Source: https://docs.pytorch.org/docs/2.13/nn.html#utilities (torch.nn.utils.prune)
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import contiguous_format
from torchlab._core.tensor import Tensor
from torchlab.functional import norm
from torchlab.nn.module import Module
from torchlab.nn.utils.convert_parameters import parameters_to_vector


class BasePruningMethod(ABC):
    """What makes masks. A subclass says in `PRUNING_TYPE` what it masks ("unstructured",
    "structured" or "global") and computes masks in `compute_mask`."""

    _tensor_name: str
    PRUNING_TYPE: str

    def __call__(self, module: Module, inputs: Any) -> None:
        """The hook before each forward pass: the masked parameter becomes an attribute."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """A mask for `t` that keeps no more than `default_mask` does."""

    def apply_mask(self, module: Module) -> Tensor:
        """The original parameter times its mask."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask, orig = getattr(module, name + "_mask"), getattr(module, name + "_orig")
        return mask.to(dtype=orig.dtype) * orig

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prune the parameter `name` of `module`, once more if it is pruned already."""
        before = _methods(module, name)
        if len(before) > 1:
            raise AssertionError(
                "Avoid adding multiple pruning hooks to the same tensor"
                f" {name} of module {module}. Use a PruningContainer."
            )
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        if before:
            key, former = next(iter(before.items()))
            container = PruningContainer(former)
            container.add_pruning_method(method)
            container._tensor_name = name
            method = container
        orig = getattr(module, name)
        if importance_scores is not None:
            if importance_scores.shape != orig.shape:
                raise AssertionError(
                    "importance_scores should have the same shape as parameter"
                    f" {name} of {module}: {tuple(orig.shape)}, got"
                    f" {tuple(importance_scores.shape)}"
                )
        else:
            importance_scores = orig
        if before:
            default_mask = getattr(module, name + "_mask").detach().clone()
        else:
            default_mask = aten.ones_like(orig)
        mask = method.compute_mask(importance_scores, default_mask=default_mask)
        if before:
            del module._forward_pre_hooks[key]
        else:
            module.register_parameter(name + "_orig", orig)
            del module._parameters[name]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """`t` masked, without a module."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                "importance_scores should have the same shape as tensor t:"
                f" {tuple(t.shape)}, got {tuple(importance_scores.shape)}"
            )
        default_mask = aten.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: Module) -> None:
        """Make the masked value the parameter; the mask is forgotten, its zeros stay."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        delattr(module, name)
        orig = module._parameters[name + "_orig"]
        orig.data = weight.data
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, orig)


def _methods(module: Module, name: str) -> dict[Any, BasePruningMethod]:
    """The pruning hooks of a parameter, by their keys."""
    return {
        k: hook
        for k, hook in module._forward_pre_hooks.items()
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
    }


class PruningContainer(BasePruningMethod):
    """Several methods in a row: each masks what the ones before have left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if not isinstance(args, Iterable):
            raise TypeError("PruningContainer takes pruning methods")
        if len(args) == 1 and isinstance(args[0], BasePruningMethod):
            args = args[0]._pruning_methods if type(args[0]) is PruningContainer else args
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add one at the end."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named"
                f" '{self._tensor_name}' to PruningContainer {self}. Found"
                f" '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The last method's mask of what `default_mask` keeps, laid over `default_mask`."""
        method = self._pruning_methods[-1]
        kind = method.PRUNING_TYPE
        if kind == "unstructured":
            places: Any = default_mask == 1
        elif kind == "structured":
            dim = method.dim + t.dim() if method.dim < 0 else method.dim  # type: ignore[attr-defined]
            others = [d for d in range(t.dim()) if d != dim]
            kept = default_mask.sum(dim=others) != 0
            places = [slice(None)] * t.dim()
            places[dim] = kept
            places = tuple(places)
        elif kind == "global":
            places = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {kind}")
        mask = default_mask.clone()
        part = method.compute_mask(t[places], default_mask=default_mask[places])
        mask[places] = part.to(dtype=mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but gives the parameter its mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> BasePruningMethod:  # type: ignore[override]
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _check_amount(amount)
        self.amount = amount

    def _count(self, t: Tensor) -> int:
        total = t.nelement()
        n = _count(self.amount, total)
        _check_count(n, total)
        return n


class RandomUnstructured(_Unstructured):
    """Prunes elements at random: `amount` of them, a fraction or a number."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        n = self._count(t)
        mask = default_mask.clone(memory_format=contiguous_format)
        if n != 0:
            order = aten.topk(aten.rand_like(t).view(-1), n)
            mask.view(-1)[order.indices] = 0
        return mask

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any) -> BasePruningMethod:  # type: ignore[override]
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the elements nearest to zero: `amount` of them, a fraction or a number."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        n = self._count(t)
        mask = default_mask.clone(memory_format=contiguous_format)
        if n != 0:
            order = aten.topk(aten.abs(t).view(-1), n, largest=False)
            mask.view(-1)[order.indices] = 0
        return mask

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: Any, importance_scores: Tensor | None = None
    ) -> BasePruningMethod:
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    PRUNING_TYPE = "structured"
    amount: Any
    dim: int

    def _count(self, t: Tensor) -> int:
        _check_structured(t)
        _check_dim(t, self.dim)
        total = t.shape[self.dim]
        n = _count(self.amount, total)
        _check_count(n, total)
        return n

    def _mask(self, t: Tensor, keep: Any) -> Tensor:
        """Ones in the channels `keep`."""
        mask = aten.zeros_like(t)
        places: list[Any] = [slice(None)] * t.dim()
        places[self.dim] = keep
        mask[tuple(places)] = 1
        return mask


class RandomStructured(_Structured):
    """Prunes whole channels along `dim` at random."""

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount, self.dim = amount, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        n = self._count(t)
        if n == 0:
            return default_mask
        chances = aten.rand(t.shape[self.dim])
        keep = chances > aten.kthvalue(chances, n).values
        mask = self._mask(t, keep)
        mask *= default_mask.to(dtype=mask.dtype)
        return mask

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: Any, dim: int = -1
    ) -> BasePruningMethod:
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the channels along `dim` that have the smallest n-norm."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = self._count(t)
        if count == 0:
            return default_mask
        dims = list(range(t.dim()))
        del dims[self.dim]
        norms = norm(t, p=self.n, dim=dims)
        best = aten.topk(norms, t.shape[self.dim] - count, largest=True)
        mask = self._mask(t, best.indices)
        mask *= default_mask.to(dtype=mask.dtype)
        return mask

    @classmethod
    def apply(  # type: ignore[override]
        cls,
        module: Module,
        name: str,
        amount: Any,
        n: Any,
        dim: int,
        importance_scores: Tensor | None = None,
    ) -> BasePruningMethod:
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )


class CustomFromMask(BasePruningMethod):
    """Prunes with a mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"mask shape {tuple(self.mask.shape)} should match the parameter's"
                f" {tuple(default_mask.shape)}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> BasePruningMethod:  # type: ignore[override]
        return super().apply(module, name, mask=mask)


def identity(module: Module, name: str) -> Module:
    """Give the parameter a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Prune elements at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: Any, importance_scores: Tensor | None = None
) -> Module:
    """Prune the elements nearest to zero, or with the smallest scores."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Prune channels at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: Any,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prune the channels with the smallest n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Any,
    pruning_method: Any,
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune many parameters, pairs (module, name), as if they were one long vector."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if importance_scores is not None and not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    parameters = list(parameters)
    scores = importance_scores or {}
    values = [scores.get((m, n), getattr(m, n)) for m, n in parameters]
    vector = parameters_to_vector(values)
    masks = [getattr(m, n + "_mask", aten.ones_like(getattr(m, n))) for m, n in parameters]
    default_mask = parameters_to_vector(masks)
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found'
            f" {pruning_method} of type {method.PRUNING_TYPE}"
        )
    mask = container.compute_mask(vector, default_mask)
    at = 0
    for module, name in parameters:
        param = getattr(module, name)
        size = param.numel()
        custom_from_mask(module, name, mask[at : at + size].view_as(param))
        at += size


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune with a mask that is given."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Make the masked value the parameter `name`; it stays as sparse as it is."""
    for key, hook in _methods(module, name).items():
        hook.remove(module)
        del module._forward_pre_hooks[key]
        return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Module) -> bool:
    """Whether a parameter of this module or one inside it is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for inner in module.modules()
        for hook in inner._forward_pre_hooks.values()
    )


# ---- checks -------------------------------------------------------------------------------------


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, numbers.Integral) and amount < 0) or (
        not isinstance(amount, numbers.Integral) and (float(amount) > 1.0 or float(amount) < 0.0)
    ):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative"
            " integer"
        )


def _check_count(n: int, total: int) -> None:
    if n > total:
        raise ValueError(
            f"amount={n} should be smaller than the number of parameters to prune={total}"
        )


def _check_structured(t: Tensor) -> None:
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of"
            f" shape {t.shape} with {t.dim()} dims"
        )


def _check_dim(t: Tensor, dim: int) -> None:
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _count(amount: Any, total: int) -> int:
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * total)
