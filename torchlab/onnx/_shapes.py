"""What `torch.onnx.export` takes for sizes that vary, as `torch.export` takes it.

Source: https://docs.pytorch.org/docs/2.13/onnx_export.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.export.dynamic_shapes import _DimHint, combined


def with_names(spec: Any) -> Any:
    """`dynamic_shapes` with a hint in the place of each name: `{0: "batch"}`."""
    if isinstance(spec, str):
        return _DimHint("DYNAMIC", name=spec)
    if isinstance(spec, dict):
        return {k: with_names(v) for k, v in spec.items()}
    if isinstance(spec, (list, tuple)):
        return type(spec)(with_names(v) for v in spec)
    return spec


def from_axes(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    axes: Mapping[str, Any],
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> Any:
    """`dynamic_shapes` of the older `dynamic_axes`: input name → {dim: name} or [dim, …]. What is
    said of outputs follows from the inputs. ValueError for a name that is no input's."""
    given = combined(model, args, kwargs)
    if not all(x is None or isinstance(x, (Tensor, int, float, str)) for x in given.values()):
        raise ValueError(
            "torch.onnx.export: dynamic_axes speak of tensors that are arguments themselves; use"
            " dynamic_shapes where arguments are nested"
        )
    tensors = [n for n, x in given.items() if isinstance(x, Tensor)]
    called = dict(zip(input_names or (), tensors, strict=False))
    found: dict[str, Any] = dict.fromkeys(given)
    for name, dims in axes.items():
        target = called.get(name, name)
        if target in found:
            named = dims if isinstance(dims, Mapping) else dict.fromkeys(dims)
            found[target] = {d: _DimHint("DYNAMIC", name=n) for d, n in named.items()}
        elif name not in (output_names or ()):
            raise ValueError(
                f"torch.onnx.export: dynamic_axes name '{name}', which is no input"
                f" ({', '.join(input_names or tensors)}) and none of output_names"
            )
    return found


__all__ = ["from_axes", "with_names"]
