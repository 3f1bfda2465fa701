"""`torchlab.sparse`: functions for sparse tensors. The tensors themselves are made by
`torch.sparse_coo_tensor`, `torch.sparse_csr_tensor` and `Tensor.to_sparse`.

Source: https://docs.pytorch.org/docs/2.13/sparse.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlab._core import legacy
from torchlab._core.dispatch import registry
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._sparse import Sparse, around, put
from torchlab._core.ops._sparse_checks import STATE

__all__ = ["as_sparse_gradcheck", "check_sparse_tensor_invariants"]

globals().update(legacy.SPARSE)


def __getattr__(name: str) -> Any:
    try:
        value = registry.function(name, "sparse")
    except AttributeError:
        raise AttributeError(f"module 'torchlab.sparse' has no attribute '{name}'") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*registry.FUNCTIONS.get("sparse", ()), *legacy.SPARSE, *__all__})


class check_sparse_tensor_invariants:
    """Switch the checks of sparse tensors' invariants on or off: by `enable()` and `disable()` for
    the process, as a context manager, or as a decorator. They are off at first.

    Source: https://docs.pytorch.org/docs/2.13/generated/torch.sparse.check_sparse_tensor_invariants.html
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        return STATE["on"]

    @staticmethod
    def enable() -> None:
        STATE["on"] = True

    @staticmethod
    def disable() -> None:
        STATE["on"] = False

    def __enter__(self) -> None:
        if self.saved is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context"
                " manager instance for context nesting."
            )
        self.saved = STATE["on"]
        STATE["on"] = self.state

    def __exit__(self, *exc: object) -> None:
        assert self.saved is not None
        STATE["on"], self.saved = self.saved, None

    def __call__(self, mth: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(mth)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return mth(*args, **kwargs)

        return checked


def as_sparse_gradcheck(gradcheck: Callable[..., Any]) -> Callable[..., Any]:
    """Let a gradcheck function take sparse inputs and outputs: it then checks the derivatives with
    respect to the specified elements.

    Source: https://docs.pytorch.org/docs/2.13/generated/torch.sparse.as_sparse_gradcheck.html
    """

    @functools.wraps(gradcheck)
    def checked(func: Callable[..., Any], inputs: Any, **kwargs: Any) -> Any:
        kwargs.pop("masked", None)
        given = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
        patterns = [x._a if isinstance(x, Sparse) else None for x in given]
        strided = []
        for x in given:
            if isinstance(x, Sparse):
                v = aten.clone(aten.detach(around(x._a)._a.values))
                x = v.requires_grad_() if x.requires_grad else v
            strided.append(x)

        def on_values(*values: Any) -> Any:
            args = [v if p is None else put(p, v) for v, p in zip(values, patterns, strict=True)]
            r = func(*args)
            outputs = r if isinstance(r, (list, tuple)) else (r,)
            dense = tuple(aten.to_dense(x) if isinstance(x, Sparse) else x for x in outputs)
            return dense if isinstance(r, (list, tuple)) else dense[0]

        return gradcheck(on_values, tuple(strided), **kwargs)

    return checked
