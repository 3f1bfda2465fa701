"""`ONNXProgram`: an ONNX model with the program that it was made of.

Source: https://docs.pytorch.org/docs/2.13/onnx_export.html
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.lazy import lazy
from torchlab._core.tensor import Tensor
from torchlab.export import ExportedProgram
from torchlab.onnx._builder import onnx
from torchlab.utils import _pytree as pytree

reference = lazy("onnx.reference", "pip install torchlab[onnx]")

_LIMIT = (1 << 31) - 1  # bytes of a protobuf message


class ONNXProgram:
    """An ONNX model. `program(*args)` runs it with onnx's reference evaluator."""

    def __init__(self, model_proto: Any, exported_program: ExportedProgram) -> None:
        self._model_proto = model_proto
        self.exported_program = exported_program
        self._evaluator: Any = None

    @property
    def model_proto(self) -> Any:
        """The model as an `onnx.ModelProto`."""
        return self._model_proto

    @property
    def model(self) -> Any:
        """The same as `model_proto`: torchlab keeps no other form of a model."""
        return self._model_proto

    def is_large(self) -> bool:
        """Whether it does not fit into one file of protobuf's."""
        return bool(self._model_proto.ByteSize() > _LIMIT)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        """The outputs for the arguments of the module, flat, as tensors."""
        names = [i.name for i in self._model_proto.graph.input]
        leaves = [
            x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, (Tensor, int, float))
        ]
        signature = self.exported_program.inputs
        if len(leaves) != len(names) and len(leaves) == len(signature):
            fixed = [not isinstance(known, tuple) for _, known in signature]
            leaves = [x for x, f in zip(leaves, fixed, strict=True) if not f]
        if len(leaves) != len(names):
            raise ValueError(
                f"the model has {len(names)} inputs ({', '.join(names)}), {len(leaves)} are given"
            )
        feeds = dict(zip(names, (_array(x) for x in leaves), strict=True))
        return self.call_reference(feeds)

    def call_reference(self, feeds: dict[str, Any]) -> tuple[Tensor, ...]:
        """The outputs for arrays by input name, by onnx's reference evaluator."""
        if self._evaluator is None:
            self._evaluator = reference.ReferenceEvaluator(self._model_proto)
        found = self._evaluator.run(None, feeds)
        return tuple(_tensor(np.asarray(x)) for x in found)

    def save(
        self,
        destination: str | os.PathLike[str],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Write the model to a file; with `external_data`, or where it is larger than 2 GB, its
        parameters to `<destination>.data`."""
        if not include_initializers or keep_initializers_as_inputs:
            raise NotImplementedError(
                "ONNXProgram.save: the model is written with its parameters as initializers"
            )
        apart = self.is_large() if external_data is None else external_data
        path = Path(destination)
        if not apart:
            onnx.save(self._model_proto, str(path))
            return
        copy = onnx.ModelProto()
        copy.CopyFrom(self._model_proto)
        onnx.save(
            copy, str(path), save_as_external_data=True, all_tensors_to_one_file=True,
            location=f"{path.name}.data",
        )  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"ONNXProgram(\n    model=\n{onnx.printer.to_text(self._model_proto)}\n    ,\n"
            f"    exported_program=\n{self.exported_program}\n)"
        )


def _array(x: Any) -> np.ndarray:
    if isinstance(x, Tensor):
        return np.asarray(x.detach().cpu()._a)  # type: ignore[attr-defined]
    return np.asarray(x)


def _tensor(a: np.ndarray) -> Tensor:
    return aten.from_numpy(a.copy())  # type: ignore[no-any-return]


__all__ = ["ONNXProgram"]
