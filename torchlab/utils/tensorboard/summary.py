"""The messages (`Summary`) that an event file holds, one function for each kind.

The names are those of `torch.utils.tensorboard.summary`.
"""

from __future__ import annotations

import io
import json
import wave
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

from torchlab._core.dtype import int16
from torchlab.utils.tensorboard import histograms, images
from torchlab.utils.tensorboard.arrays import to_array

# dtype → (TensorBoard's name, the field of the values, the type they have in it)
_TYPES: dict[str, tuple[str, str, type]] = {
    "float16": ("DT_HALF", "half_val", int),  # as their bits
    "bfloat16": ("DT_BFLOAT16", "half_val", int),
    "float32": ("DT_FLOAT", "float_val", float),
    "float64": ("DT_DOUBLE", "double_val", float),
    "int8": ("DT_INT8", "int_val", int),
    "uint8": ("DT_UINT8", "int_val", int),
    "int16": ("DT_INT16", "int_val", int),
    "int32": ("DT_INT32", "int_val", int),
    "int64": ("DT_INT64", "int64_val", int),
    "bool": ("DT_BOOL", "bool_val", bool),
    "complex64": ("DT_COMPLEX64", "scomplex_val", float),
    "complex128": ("DT_COMPLEX128", "dcomplex_val", float),
}


def _shape(dims: Any) -> TensorShapeProto:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in dims])


def _metadata(plugin: str, content: bytes = b"") -> SummaryMetadata:
    data = SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    return SummaryMetadata(plugin_data=data)


def _value(tag: str, tensor: TensorProto, metadata: SummaryMetadata) -> Summary:
    return Summary(value=[Summary.Value(tag=tag, tensor=tensor, metadata=metadata)])


def _floats(a: np.ndarray) -> TensorProto:
    values = a.reshape(-1).tolist()
    return TensorProto(dtype="DT_FLOAT", float_val=values, tensor_shape=_shape(a.shape))


def scalar(
    tag: str, value: Any, collections: Any = None, new_style: bool = False,
    double_precision: bool = False,
) -> Summary:  # fmt: skip
    """One number; AssertionError for several. `new_style`: as a tensor, in float32 or, with
    `double_precision`, in float64. `collections` means nothing."""
    a = to_array(value).squeeze()
    if a.ndim != 0:
        raise AssertionError(
            "Tensor should contain one element (0 dimensions). Was given size:"
            f" {a.size} and {a.ndim} dimensions."
        )
    number = float(a)
    if not new_style:
        return Summary(value=[Summary.Value(tag=tag, simple_value=number)])
    if double_precision:
        tensor = TensorProto(double_val=[number], dtype="DT_DOUBLE")
    else:
        tensor = TensorProto(float_val=[number], dtype="DT_FLOAT")
    return _value(tag, tensor, _metadata("scalars"))


def tensor_proto(tag: str, tensor: Any) -> Summary:
    """A tensor as it is. ValueError for a dtype that TensorBoard has not."""
    kind = str(tensor.dtype).rpartition(".")[2]
    if kind not in _TYPES:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    name, field, number = _TYPES[kind]
    host = tensor.detach().cpu()
    if field == "half_val":
        a = host.view(int16).numpy().view(np.uint16)
    else:
        a = host.numpy()
    if kind.startswith("complex"):
        a = a.view(a.real.dtype)
    values = [number(x) for x in a.reshape(-1).tolist()]
    proto = TensorProto(dtype=name, tensor_shape=_shape(tensor.shape), **{field: values})
    return _value(tag, proto, _metadata("tensor"))


def histogram_raw(
    name: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any,
    bucket_counts: Any,
) -> Summary:  # fmt: skip
    """A histogram that was made elsewhere."""
    made = HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits,
        bucket=bucket_counts,
    )  # fmt: skip
    return Summary(value=[Summary.Value(tag=name, histo=made)])


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Summary:
    """The histogram of `values`, which are taken as float64."""
    made = histograms.histogram(to_array(values).astype(float), bins, max_bins)
    return Summary(value=[Summary.Value(tag=name, histo=made)])


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Summary:
    """A picture, or several in a grid; floats of 0 to 1, or bytes."""
    a = images.channels_last(to_array(tensor), dataformats)
    return Summary(value=[Summary.Value(tag=tag, image=images.png(images.bytes_of(a), rescale))])


def image_boxes(
    tag: str, tensor_image: Any, tensor_boxes: Any, rescale: float = 1, dataformats: str = "CHW",
    labels: Any = None,
) -> Summary:  # fmt: skip
    """A picture with boxes (N, 4)."""
    a = images.channels_last(to_array(tensor_image), dataformats)
    made = images.png(images.bytes_of(a), rescale, to_array(tensor_boxes), labels)
    return Summary(value=[Summary.Value(tag=tag, image=made)])


def video(tag: str, tensor: Any, fps: float = 4) -> Summary:
    """Films (N, T, C, H, W) beside each other, as a GIF."""
    a = images.bytes_of(images.film(to_array(tensor)))
    return Summary(value=[Summary.Value(tag=tag, image=images.gif(a, fps))])


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Summary:
    """A sound (samples of -1 to 1; one channel) as 16-bit WAV."""
    a = to_array(tensor).squeeze()
    if abs(a).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        a = a.clip(-1, 1)
    if a.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    coded = io.BytesIO()
    with wave.open(coded, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes((a * np.iinfo(np.int16).max).astype("<i2").tobytes())
    made = Summary.Audio(
        sample_rate=sample_rate, num_channels=1, length_frames=a.shape[-1],
        encoded_audio_string=coded.getvalue(), content_type="audio/wav",
    )  # fmt: skip
    return Summary(value=[Summary.Value(tag=tag, audio=made)])


def text(tag: str, text: str) -> Summary:
    """A text in Markdown."""
    content = TextPluginData(version=0).SerializeToString()
    tensor = TensorProto(
        dtype="DT_STRING", string_val=[text.encode("utf_8")], tensor_shape=_shape([1])
    )
    return _value(tag + "/text_summary", tensor, _metadata("text", content))


def pr_curve_raw(
    tag: str, tp: Any, fp: Any, tn: Any, fn: Any, precision: Any, recall: Any,
    num_thresholds: int = 127, weights: Any = None,
) -> Summary:  # fmt: skip
    """A curve of precision over recall from its six rows. At most 127 thresholds: protobuf's
    limit."""
    n = min(num_thresholds, 127)
    content = PrCurvePluginData(version=0, num_thresholds=n).SerializeToString()
    rows = np.stack((tp, fp, tn, fn, precision, recall))
    return _value(tag, _floats(rows), _metadata("pr_curves", content))


def pr_curve(
    tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None
) -> Summary:
    """A curve of precision over recall."""
    n = min(num_thresholds, 127)
    rows = histograms.precision_recall(labels, predictions, n, weights)
    content = PrCurvePluginData(version=0, num_thresholds=n).SerializeToString()
    return _value(tag, _floats(rows), _metadata("pr_curves", content))


def custom_scalars(layout: Any) -> Summary:
    """Charts of several scalars: {category: {chart: ("Multiline" or "Margin", tags)}}."""
    categories = []
    for category, charts in layout.items():
        made = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError(f"a margin chart has 3 tags, not {len(tags)}")
                series = layout_pb2.MarginChartContent.Series(
                    value=tags[0], lower=tags[1], upper=tags[2]
                )
                margin = layout_pb2.MarginChartContent(series=[series])
                made.append(layout_pb2.Chart(title=title, margin=margin))
            else:
                lines = layout_pb2.MultilineChartContent(tag=tags)
                made.append(layout_pb2.Chart(title=title, multiline=lines))
        categories.append(layout_pb2.Category(title=category, chart=made))
    whole = layout_pb2.Layout(category=categories)
    tensor = TensorProto(
        dtype="DT_STRING", string_val=[whole.SerializeToString()], tensor_shape=_shape([])
    )
    return _value("custom_scalars__config__", tensor, _metadata("custom_scalars"))


def mesh(
    tag: str, vertices: Any, colors: Any, faces: Any, config_dict: Any, display_name: Any = None,
    description: Any = None,
) -> Summary:  # fmt: skip
    """Points and triangles in space: `vertices` (B, N, 3), `faces` (B, F, 3) of their numbers,
    `colors` (B, N, 3) of bytes; `config_dict` is for the drawing library."""
    kinds = MeshPluginData
    parts = [
        (tensor, kind)
        for tensor, kind in ((vertices, kinds.VERTEX), (faces, kinds.FACE), (colors, kinds.COLOR))
        if tensor is not None
    ]
    components = mesh_metadata.get_components_bitmask([kind for _, kind in parts])
    config = json.dumps({} if config_dict is None else config_dict, sort_keys=True)
    values = []
    for tensor, kind in parts:
        metadata = mesh_metadata.create_summary_metadata(
            tag, display_name, kind, components, tuple(tensor.shape), description,
            json_config=config,
        )  # fmt: skip
        name = mesh_metadata.get_instance_name(tag, kind)
        proto = _floats(to_array(tensor))
        values.append(Summary.Value(tag=name, tensor=proto, metadata=metadata))
    return Summary(value=values)


__all__ = [
    "audio", "custom_scalars", "histogram", "histogram_raw", "image", "image_boxes", "mesh",
    "pr_curve", "pr_curve_raw", "scalar", "tensor_proto", "text", "video",
]  # fmt: skip
