"""`torch.distributed.optim`: an optimizer whose state is spread over the processes of a group, here
of one.

Source: https://docs.pytorch.org/docs/2.13/distributed.optim.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.distributed.groups import get_rank, get_world_size, group_of
from torchlab.optim import Optimizer

_NAME = "ZeroRedundancyOptimizer"


class ZeroRedundancyOptimizer(Optimizer):
    """`ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=0.01)`.

    Every process keeps the state of its share of the parameters and steps those: the one process
    of a group all of them. parameters_as_bucket_view, overlap_with_ddp: how processes send
    parameters to one another; without others there is nothing to arrange.

    `consolidate_state_dict` comes before `state_dict`, which gives what a plain optimizer of that
    class gives. ValueError without a process group (`init_process_group`), for an empty list and
    for parameters of several dtypes; TypeError for what are no parameters.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        self.process_group = group_of(process_group)
        params = _checked(params)
        self.optim: Optimizer
        self._consolidated = False
        super().__init__(params, defaults)
        self.world_size = get_world_size(self.process_group)
        self.rank = self.global_rank = get_rank(self.process_group)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self.optim = optimizer_class([dict(group) for group in self.param_groups], **defaults)
        self._take(self.optim, self)
        self.state = self.optim.state

    @staticmethod
    def _take(source: Optimizer, target: Optimizer) -> None:
        """Give the groups of `target` the options of those of `source`."""
        for group, options in zip(target.param_groups, source.param_groups, strict=True):
            group.update({k: v for k, v in options.items() if k != "params"})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optimize more parameters."""
        super().add_param_group(param_group)
        if hasattr(self, "optim"):
            self.optim.add_param_group(dict(self.param_groups[-1]))
            self._take(self.optim, self)

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Change the parameters; returns what `closure` returns."""
        self._take(self, self.optim)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure, **kwargs)
        self._take(self.optim, self)
        self._consolidated = False
        return loss

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the state together in the process `to`."""
        self._take(self, self.optim)
        self._consolidated = to == self.rank

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters. RuntimeError if it has not been brought together since the
        last step."""
        if not self._consolidated:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call"
                f" `consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant"
                " to save the global state."
            )
        self._take(self, self.optim)
        return self.optim.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over state and options."""
        self.optim.load_state_dict(state_dict)
        self.state = self.optim.state
        self._take(self.optim, self)
        self._consolidated = False


def _checked(params: Any) -> list[Any]:
    if isinstance(params, Tensor):
        raise TypeError(
            f"`params` argument should be an iterable of Tensors, but got {params.type()}"
        )
    wanted = "`params` argument should be an iterable of Tensors or dicts"
    try:
        params = list(params)
    except TypeError:
        raise TypeError(f"{wanted}, but got {type(params).__name__}") from None
    if not params:
        raise ValueError(f"{_NAME} got an empty parameter list")
    if not all(isinstance(p, (Tensor, dict)) for p in params):
        raise TypeError(wanted)
    groups = [p["params"] if isinstance(p, dict) else [p] for p in params]
    flat = [p for group in groups for p in ([group] if isinstance(group, Tensor) else [*group])]
    for p in flat:
        if isinstance(p, Tensor) and p.type() != flat[0].type():
            raise ValueError(
                f"{_NAME} only supports using the same dense type for all parameters but got both"
                f" {flat[0].type()} and {p.type()}"
            )
    return [
        p | {"params": group if isinstance(group, Tensor) else [*group]}
        if isinstance(p, dict)
        else p
        for p, group in zip(params, groups, strict=True)
    ]


__all__ = ["ZeroRedundancyOptimizer"]
