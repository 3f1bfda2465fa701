"""One process, one batch, several devices: `nn.DataParallel`.

Without an accelerator it calls the module it wraps and does nothing else, as in PyTorch.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.DataParallel.html
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from torchlab._core import device as devices
from torchlab.nn.module import Module
from torchlab.nn.parallel import _places
from torchlab.nn.parallel.parallel_apply import parallel_apply
from torchlab.nn.parallel.replicate import replicate
from torchlab.nn.parallel.scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Cuts the batch over the devices, calls a copy of the module on each, joins the results.

    module: its parameters and buffers lie on the first device.
    device_ids: the devices, by default all of the accelerator.
    output_device: where the results are joined, by default the first.
    dim: the dimension of the batch.
    """

    def __init__(
        self,
        module: Any,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        kind = _places.kind()
        if kind is None or device_ids == []:
            self.module = module
            self.device_ids: list[int] = []
            return
        ids = _places.all_indices() if device_ids is None else list(device_ids)
        if not ids:
            raise RuntimeError("no available devices were found")
        self.dim = dim
        self.module = module
        self.device_ids = [_index(d) for d in ids]
        self.output_device = self.device_ids[0] if output_device is None else _index(output_device)
        self.src_device_obj = devices.device(kind, self.device_ids[0])
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives for the whole batch."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for t in chain(self.module.parameters(), self.module.buffers()):
            if t.device != self.src_device_obj:
                raise RuntimeError(
                    "module must have its parameters and buffers on device"
                    f" {self.src_device_obj} (device_ids[0]) but found one of them on device:"
                    f" {t.device}"
                )
        split, named = self.scatter(inputs, kwargs, self.device_ids)
        if not split and not named:
            split, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*split[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(split)])
        return self.gather(self.parallel_apply(replicas, split, named), self.output_device)

    def replicate(self, module: Any, device_ids: Sequence[Any]) -> list[Any]:
        """The copies of the module."""
        return replicate(module, device_ids)

    def scatter(
        self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Any]
    ) -> Any:
        """The arguments of each copy."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Sequence[Any], inputs: Sequence[Any], kwargs: Any) -> Any:
        """What each copy gives."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The results, joined."""
        return gather(outputs, output_device, dim=self.dim)


def _index(d: Any) -> int:
    index = _places.place(d).index
    return 0 if index is None else index


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """As a call of `DataParallel(module, ...)`. RuntimeError if there is no accelerator."""
    if _places.kind() is None:
        raise RuntimeError(
            "device type could not be determined: there is no accelerator; call the module itself,"
            " or nn.DataParallel, which does"
        )
    arguments = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    wrapped = DataParallel(module, device_ids, output_device, dim)
    return wrapped(*arguments, **(module_kwargs or {}))
