"""Hooks on what the tape saves: packed when it is saved, unpacked when backward needs it.

Source: https://docs.pytorch.org/docs/2.13/autograd.html#saved-tensors-hooks
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torchlab._core.backends import accelerator
from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import TLS
from torchlab._core.tensor import Tensor


class saved_tensors_hooks:
    """Inside, what the tape saves goes through `pack_hook`, and back through `unpack_hook`."""

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if TLS.hooks_refused is not None:
            raise RuntimeError(TLS.hooks_refused)
        TLS.saved_hooks = [*TLS.saved_hooks, (self.pack_hook, self.unpack_hook)]

    def __exit__(self, *args: object) -> None:
        TLS.saved_hooks = TLS.saved_hooks[:-1]


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors in host memory and bring them back to their device when needed.
    `pin_memory`: in page-locked memory, where there is an accelerator."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(t: Tensor) -> Any:
            if t.device.type == "cpu":
                return t.device, aten.detach(t)  # its memory, without a cycle through its history
            host = t.detach().to("cpu")
            return t.device, host.pin_memory() if pin_memory and accelerator.kind() else host

        def unpack(packed: Any) -> Tensor:
            place, host = packed
            return host.to(place, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside, using `saved_tensors_hooks` raises a RuntimeError with this message."""
    if TLS.saved_hooks:
        raise RuntimeError(error_message)
    before, TLS.hooks_refused = TLS.hooks_refused, error_message
    try:
        yield
    finally:
        TLS.hooks_refused = before


__all__ = ["disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]
