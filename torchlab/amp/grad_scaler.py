"""`torch.amp.GradScaler`: keep small gradients from vanishing in float16.

    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

The loss is multiplied by a scale, and with it all gradients; before the optimizer's step they are
divided by it. If one is inf or nan the step is skipped and the scale shrinks; after
`growth_interval` steps without, it grows.

Source: https://docs.pytorch.org/docs/2.13/amp.html#gradient-scaling
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core import settings
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.amp.autocast_mode import _has_cuda
from torchlab.autograd.grad_mode import no_grad

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """What has been done for an optimizer since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses, unscales gradients, skips steps with inf or nan, and adapts the scale.

    device: "cuda", "cpu" or "sim": where the scale lies at first.
    init_scale: the first scale.
    growth_factor, backoff_factor: what the scale is multiplied by after `growth_interval` steps in
        a row without inf or nan, and after a step with one.
    enabled: False makes all methods pass on what they are given.

    AssertionError for a growth factor of 1 or less, or a backoff factor of 1 or more.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not _has_cuda():
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available. Disabling."
                " On the CPU it is GradScaler('cpu').",
                stacklevel=2,
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError(f"The growth factor must be > 1.0, got {growth_factor}")
        if backoff_factor >= 1.0:
            raise AssertionError(f"The backoff factor must be < 1.0, got {backoff_factor}")
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(
            _refresh_per_optimizer_state
        )

    # ---- the scale -------------------------------------------------------------------------------

    def _lazy_init_scale_growth_tracker(self, dev: devices.device) -> None:
        self._scale = aten.full((), self._init_scale, dtype=dt.float32, device=dev)
        self._growth_tracker = aten.full((), self._init_growth_tracker, dtype=dt.int32, device=dev)

    def _ready(self, function: str) -> tuple[Tensor, Tensor]:
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(
                f"Attempted {function} but _scale is None.  This may indicate your script did not"
                " use scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale, self._growth_tracker

    def scale(self, outputs: Any) -> Any:
        """The outputs times the scale: a tensor, or an iterable of tensors, nested as they are."""
        if not self._enabled:
            return outputs
        scales: dict[devices.device, Tensor] = {}

        def apply(value: Any) -> Any:
            if isinstance(value, Tensor):
                dev = value.device
                if self._scale is None:
                    self._lazy_init_scale_growth_tracker(dev)
                if dev not in scales:
                    assert self._scale is not None
                    scales[dev] = self._scale.to(dev)
                return value * scales[dev]
            if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
                each = map(apply, value)
                return type(value)(each) if isinstance(value, (list, tuple)) else each
            raise ValueError(
                f"outputs must be a Tensor or an iterable of Tensors, not {type(value).__name__}"
            )

        return apply(outputs)

    def get_scale(self) -> float:
        """The scale as a number; 1.0 if the scaler is not enabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    # ---- the step --------------------------------------------------------------------------------

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[devices.device, Tensor]:
        """Multiply all gradients of the optimizer; {device: 1.0 if one was inf or nan}."""
        found: dict[devices.device, Tensor] = {}
        inverse: dict[devices.device, Tensor] = {}
        parameters = (p for group in optimizer.param_groups for p in group["params"])
        grads = [p.grad for p in parameters if p.grad is not None]
        if not allow_fp16 and any(g.dtype is dt.float16 for g in grads):
            raise ValueError(
                "Attempting to unscale FP16 gradients. Keep the parameters in float32 and use"
                " autocast for the forward pass"
            )
        with no_grad():
            for g in grads:
                dev = g.device
                if dev not in found:
                    found[dev], inverse[dev] = found_inf.to(dev, copy=True), inv_scale.to(dev)
                if g.is_sparse:
                    if g.dtype is dt.float16:  # a sum of duplicates may overflow
                        g = g.coalesce()
                    g = g._values()
                if not aten.isfinite(g).all():
                    found[dev].fill_(1.0)
                g.mul_(inverse[dev])
        return found

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of the optimizer's parameters by the scale, for instance to clip
        them. At most once per optimizer and update, before `step`."""
        if not self._enabled:
            return
        self._ready("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        assert self._scale is not None
        inv_scale = self._scale.double().reciprocal().float()
        found_inf = aten.full((), 0.0, dtype=dt.float32, device=self._scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inv_scale, found_inf, False)
        state["stage"] = OptState.UNSCALED

    def _found_inf_per_device(self, optimizer: Any) -> dict[devices.device, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def _check_inf_per_device(self, optimizer: Any) -> dict[devices.device, Tensor]:
        """Look for inf and nan without changing the gradients."""
        scale, _ = self._ready("_check_inf_per_device")
        one = aten.full((), 1.0, dtype=dt.float32, device=scale.device)
        found_inf = aten.full((), 0.0, dtype=dt.float32, device=scale.device)
        found = self._unscale_grads_(optimizer, one, found_inf, True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients if that has not been done, then `optimizer.step(*args, **kwargs)`
        unless a gradient is inf or nan. Returns what the step returns, None for a skipped one."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._ready("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._leave_to(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        found = state["found_inf_per_device"]
        if not found:
            raise AssertionError(
                "No inf checks were recorded for this optimizer: none of its parameters has a"
                " gradient."
            )
        result = None
        if any(f.item() for f in found.values()):
            settings.warn_once(
                "GradScaler.step",
                f"GradScaler: gradients of {type(optimizer).__name__} hold inf or nan; this step is"
                f" skipped, and update() lowers the scale, now {self.get_scale():g}. In the first"
                " steps that is normal. Further skipped steps are not told.",
            )
        else:
            result = optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _leave_to(self, optimizer: Any, state: dict[str, Any], args: Any, kwargs: Any) -> Any:
        """The step of an optimizer that unscales and skips by itself: it finds `grad_scale` and
        `found_inf` as attributes."""
        scale, _ = self._ready("step")
        ready = state["stage"] is OptState.READY
        if ready:
            self._check_inf_per_device(optimizer)
        found = list(state["found_inf_per_device"].values())
        if not found:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        total = sum((f.to(scale.device) for f in found[1:]), found[0].to(scale.device))
        optimizer.grad_scale = scale if ready else None
        optimizer.found_inf = total
        try:
            result = optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale to what the steps found, or set it. Once per iteration, at its end."""
        if not self._enabled:
            return
        scale, tracker = self._ready("update")
        if new_scale is not None:
            self._set_scale(scale, new_scale)
        else:
            found = [
                f
                for state in self._per_optimizer_states.values()
                for f in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._adapt(scale, tracker, any(f.item() for f in found))
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _set_scale(self, scale: Tensor, new_scale: Any) -> None:
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
            return
        fits = (
            isinstance(new_scale, Tensor)
            and new_scale.numel() == 1
            and not new_scale.requires_grad
            and new_scale.dtype.is_floating_point
        )
        if not fits:
            raise AssertionError(
                "new_scale should be a float or a 1-element torch.cuda.FloatTensor or"
                f" torch.FloatTensor with requires_grad=False, not {new_scale!r}"
            )
        scale.copy_(new_scale.reshape(()))

    def _adapt(self, scale: Tensor, tracker: Tensor, found_inf: bool) -> None:
        if found_inf:
            scale.mul_(self._backoff_factor)
            tracker.zero_()
            return
        good = int(tracker.item()) + 1
        if good == self._growth_interval:
            larger = scale * self._growth_factor
            if math.isfinite(larger.item()):
                scale.copy_(larger)
            good = 0
        tracker.fill_(good)

    # ---- settings and state ----------------------------------------------------------------------

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the scale is multiplied by when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after inf or nan."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the scale is multiplied by after inf or nan."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many good steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many good steps the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker.item())

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Scale, factors, interval and the number of good steps; {} if not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned; nothing if the scaler is not enabled."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled"
                " instance of GradScaler."
            )
        scale = state_dict["scale"]
        growth, backoff = state_dict["growth_factor"], state_dict["backoff_factor"]
        interval, good = state_dict["growth_interval"], state_dict["_growth_tracker"]
        self._init_scale, self._growth_factor, self._backoff_factor = scale, growth, backoff
        self._growth_interval, self._init_growth_tracker = interval, good
        if self._scale is not None:
            self._scale.fill_(scale)
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(good)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or"
                    " at the end after scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
