"""One model in several processes: `DistributedDataParallel`.

The processes are those of `torch.distributed`; torchlab's groups have one process, so the gradients
are the average already.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torchlab._core.lazy import lazy
from torchlab.nn.module import Module

distributed = lazy("torchlab.distributed")

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Calls `module`; after backward the gradients are the average over the processes of the group.

    device_ids: for a module on one accelerator, that device; None for the CPU.
    process_group: by default that of `init_process_group`. ValueError if there is none.
    The rest: how the averaging goes about its work, for which there is nothing to decide in a
        group of one process. NotImplementedError for mixed_precision and device_mesh.
    """

    def __init__(
        self,
        module: Any,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: int | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        for name, given in (
            ("mixed_precision", mixed_precision),
            ("device_mesh", device_mesh),
            ("delay_all_reduce_named_params", delay_all_reduce_named_params),
            ("param_to_hook_all_reduce", param_to_hook_all_reduce),
        ):
            if given is not None:
                raise NotImplementedError(
                    f"DistributedDataParallel: torchlab knows no {name}; leave it None"
                )
        group = distributed.group_of(process_group)
        trained = [p for p in module.parameters() if p.requires_grad]
        if not trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter"
                " that requires a gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        places = {p.device for p in module.parameters()}
        types = {p.type for p in places}
        if (device_ids or output_device is not None) and (types == {"cpu"} or len(places) > 1):
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with"
                " single-device/multiple-device GPU modules or CPU modules, but got device_ids"
                f" {device_ids}, output_device {output_device}, and module parameters {places}."
            )
        self.process_group = group
        self.module = module
        self.device = trained[0].device
        self.device_type = self.device.type
        self.device_ids = list(device_ids) if device_ids else None
        self.output_device = output_device if output_device is not None or not device_ids else (
            device_ids[0]
        )  # fmt: skip
        self.dim = dim
        self.broadcast_buffers = True if broadcast_buffers is None else broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.skip_all_reduce_unused_params = skip_all_reduce_unused_params
        self.batched_grad_copy = batched_grad_copy

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, backward adds gradients up without averaging them."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before
