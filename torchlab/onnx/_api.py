"""`torch.onnx.export`.

Source: https://docs.pytorch.org/docs/2.13/onnx_export.html
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from torchlab._core.lazy import lazy
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import no_grad
from torchlab.export import ExportedProgram
from torchlab.export import export as export_program
from torchlab.nn.module import Module
from torchlab.onnx._builder import onnx
from torchlab.onnx._export import IR, translated
from torchlab.onnx._program import ONNXProgram
from torchlab.onnx._shapes import from_axes, with_names
from torchlab.onnx.errors import OnnxExporterError
from torchlab.utils import _pytree as pytree

version_converter = lazy("onnx.version_converter", "pip install torchlab[onnx]")

OPSET = 20  # PyTorch's default
LOWEST = 18  # reductions take their axes as an input from there on; below, onnx converts the model
OLDEST = 9

_exporting: list[bool] = []


def is_in_onnx_export() -> bool:
    """Whether a model is being exported."""
    return bool(_exporting)


def export(
    model: Module | ExportedProgram,
    args: tuple[Any, ...] = (),
    f: str | os.PathLike[str] | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    custom_translation_table: Mapping[Callable[..., Any], Callable[..., Any]] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Any] | None = None,
    training: Any = None,
    operator_export_type: Any = None,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: Any = False,
    autograd_inlining: bool = True,
) -> ONNXProgram:
    """The model as ONNX; written to `f` if given.

    model: a module (in eval mode, mostly), which runs once on tensors without data, or a program of
    `torch.export`. dynamic_shapes: as `torch.export.export` takes them, or names in the places of
    Dims; the names become those of the sizes. dynamic_axes: the older form, by input name.
    opset_version: 20 by default; for those below 18 the model is converted by `onnx`.
    external_data: parameters go to a file of their own, `<f>.data`, where the model is larger than
    2 GB. verify: run the model by onnx's reference evaluator and compare with the module's results.

    Raises:
        ImportError: the package `onnx` is not installed: `pip install torchlab[onnx]`.
        torch.onnx.errors.UnsupportedOperatorError: operators without a counterpart, all at once.
        torch.onnx.OnnxExporterError: `verify` found another result.
        NotImplementedError: the TorchScript exporter (dynamo=False), or what only it has.
    """
    if not dynamo:
        raise NotImplementedError(
            "torch.onnx.export: torchlab exports through torch.export only (dynamo=True)"
        )
    absent = {
        "custom_translation_table": custom_translation_table, "report": report,
        "profile": profile, "dump_exported_program": dump_exported_program,
        "keep_initializers_as_inputs": keep_initializers_as_inputs, "custom_opsets": custom_opsets,
        "export_params=False": not export_params, "training": training,
        "operator_export_type": operator_export_type,
        "export_modules_as_functions": export_modules_as_functions,
    }  # fmt: skip
    said = [name for name, value in absent.items() if value]
    if said:
        raise NotImplementedError(
            f"torch.onnx.export: torchlab has no {', '.join(said)}; leave it out"
        )
    opset = _checked(OPSET if opset_version is None else opset_version)
    if isinstance(args, Tensor):
        args = (args,)
    args, kwargs = tuple(args), dict(kwargs or {})
    _exporting.append(True)
    try:
        program = (
            model
            if isinstance(model, ExportedProgram)
            else export_program(
                model, args, kwargs,
                dynamic_shapes=_shapes(
                    model, args, kwargs, dynamic_shapes, dynamic_axes, input_names, output_names
                ),
            )
        )  # fmt: skip
        made = translated(program, max(opset, LOWEST), input_names, output_names)
    finally:
        _exporting.pop()
    if opset < LOWEST:
        made = ONNXProgram(_converted(made.model_proto, opset), program)
    if verify and isinstance(model, Module):
        _verify(made, model, args, kwargs)
    if verbose:
        print(onnx.printer.to_text(made.model_proto))
    if f is not None:
        made.save(f, external_data=external_data and made.is_large())
    return made


def _checked(opset: int) -> int:
    newest = min(max(IR), onnx.defs.onnx_opset_version())
    if not OLDEST <= opset <= newest:
        raise ValueError(
            f"torch.onnx.export: opset_version {opset} is not one of {OLDEST} to {newest}"
        )
    return opset


def _shapes(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, axes: Any,
    input_names: Sequence[str] | None, output_names: Sequence[str] | None,
) -> Any:  # fmt: skip
    if getattr(model, "training", False):
        warnings.warn(
            "Exporting a model while it is in training mode. Please ensure that this is intended,"
            " as it may lead to different behavior during inference. Calling model.eval() before"
            " export is recommended.",
            stacklevel=4,
        )
    if shapes is not None or not axes:
        return with_names(shapes)
    return from_axes(model, args, kwargs, axes, input_names, output_names)


def _converted(model: Any, opset: int) -> Any:
    """The model for an older opset, by onnx's own converter."""
    try:
        made = version_converter.convert_version(model, opset)
        onnx.checker.check_model(made)
    except (RuntimeError, onnx.checker.ValidationError) as error:
        raise OnnxExporterError(
            f"onnx cannot convert the model to opset {opset}: {error}. Use opset_version={LOWEST}"
            " or later"
        ) from error
    return made


def _verify(
    made: ONNXProgram, model: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """OnnxExporterError unless the model gives what the module gives."""
    with no_grad():
        wanted = model(*args, **kwargs)
    leaves = [x for x in pytree.tree_leaves(wanted) if x is not None]
    for i, (a, b) in enumerate(zip(made(*args, **kwargs), leaves, strict=True)):
        x, y = (np.asarray(t._a if isinstance(t, Tensor) else t) for t in (a, b))
        if x.shape != y.shape or not np.allclose(x, y, rtol=1e-3, atol=1e-4, equal_nan=True):
            far = np.abs(x - y).max() if x.shape == y.shape else f"{x.shape} for {y.shape}"
            raise OnnxExporterError(
                f"output {i} of the ONNX model is not the module's: the difference is {far}"
            )


__all__ = ["export", "is_in_onnx_export"]
