"""A module that runs another one compiled."""

from __future__ import annotations

from typing import Any

from torchlab.compiler.function import CompiledFunction
from torchlab.nn.module import Module


class OptimizedModule(Module):
    """`compile(module)`: the same parameters, buffers and mode, under `_orig_mod`; calls run
    compiled.

    Attributes come from the module inside; `state_dict` has its keys behind "_orig_mod.", as
    PyTorch's.
    """

    def __init__(self, mod: Module, **settings: Any) -> None:
        super().__init__()
        self.__dict__["training"] = mod.training
        self._modules["_orig_mod"] = mod
        self.__dict__["_compiled"] = CompiledFunction(mod.__call__, mod, **settings)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["_compiled"](*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["_compiled"](*args, **kwargs)

    @property
    def compiled_programs(self) -> list[Any]:
        return self.__dict__["_compiled"].compiled_programs

    @property
    def segments(self) -> list[Any]:
        return self.__dict__["_compiled"].segments

    @property
    def breaks(self) -> list[tuple[str, str]]:
        return self.__dict__["_compiled"].breaks

    def train(self, mode: bool = True) -> OptimizedModule:
        """Training mode for the module inside."""
        super().train(mode)
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "training":
            self.__dict__["training"] = value
            return
        setattr(self._modules["_orig_mod"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._modules["_orig_mod"], name)

    def __len__(self) -> int:
        return len(self._modules["_orig_mod"])  # type: ignore[arg-type]
