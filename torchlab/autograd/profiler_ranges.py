"""`emit_nvtx` and `emit_itt`: operators, nodes of backward and blocks as ranges that the vendors'
profilers show.

    nsys profile python script.py        with torch.autograd.profiler.emit_nvtx(): …

NVTX comes with CuPy, ITT with the package `ittapi`.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.autograd.profiler.emit_nvtx.html
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from torchlab._core import events
from torchlab._core.backends import cuda as _gpus
from torchlab._core.blocks import LISTENERS
from torchlab._core.dispatch import python_key
from torchlab._core.lazy import lazy
from torchlab._core.tape import next_seq
from torchlab.autograd.profiler_watch import Inputs

_nvtx = lazy("cupy.cuda.nvtx")
_itt = lazy("ittapi")


class _Mode:
    below_autograd = True
    looks_on = True

    def __init__(self, owner: _Ranges) -> None:
        self.owner = owner

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.owner.push(self.owner.named(func._schema.name, next_seq() + 1, args))
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.owner.pop()


class _Ranges:
    """What both have in common. `push(name)` opens a range of this thread, `pop()` ends it."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes
        self.entered = False

    def __enter__(self) -> _Ranges:
        if self.entered:
            raise RuntimeError(f"{type(self).__name__} context manager is not reentrant")
        self.entered = True
        if self.enabled:
            self.ready()
            self._mode = _Mode(self)
            self._listening = events.backward_step.subscribe(self._stepped)
            LISTENERS.append(self)
            python_key.on(self._mode)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.entered = False
        if self.enabled:
            python_key.off(self._mode)
            LISTENERS.remove(self)
            self._listening.close()

    def named(self, name: str, seq: int, args: Any) -> str:
        """What a range is called: PyTorch's name, the sequence number, the sizes."""
        sizes = f", sizes = {Inputs(args).shapes}" if self.record_shapes else ""
        return f"{name}, seq = {seq}{sizes}"

    def _stepped(self, node: Any, grad_outputs: Any, grad_inputs: Any) -> None:
        self.push(self.named(f"{node.name()} done", node._sequence_nr(), grad_outputs or ()))
        self.pop()

    def block_begins(self, name: str) -> None:
        """A block (torchlab._core.blocks) begins."""
        self.push(name)

    def block_ends(self, token: None) -> None:
        """It ends."""
        self.pop()

    def ready(self) -> None:
        """Raise if it cannot be used here."""
        raise NotImplementedError

    def push(self, name: str) -> None:
        raise NotImplementedError

    def pop(self) -> None:
        raise NotImplementedError


class emit_nvtx(_Ranges):
    """Every operator that runs inside is an NVTX range. record_shapes: its name has the sizes of
    the inputs, too. A node of backward is a mark when it is done. AssertionError without a GPU."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        super().__init__(enabled, record_shapes)

    def ready(self) -> None:
        _gpus.require()

    def push(self, name: str) -> None:
        _nvtx.RangePush(name)

    def pop(self) -> None:
        _nvtx.RangePop()


class emit_itt(_Ranges):
    """Every operator that runs inside is an ITT task, as Intel's VTune shows them. record_shapes:
    its name has the sizes of the inputs, too. RuntimeError without the package `ittapi`."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        super().__init__(enabled, record_shapes)

    def ready(self) -> None:
        try:
            self._domain = _itt.domain("PyTorch")
        except ModuleNotFoundError as e:
            raise RuntimeError(
                "ITT functions not installed. Are you sure you have a ITT build? (torchlab:"
                " pip install ittapi)"
            ) from e

    def push(self, name: str) -> None:
        _itt.task_begin(self._domain, name)

    def pop(self) -> None:
        _itt.task_end(self._domain)


__all__ = ["emit_itt", "emit_nvtx"]
