"""The files that TensorBoard's projector reads: vectors, their labels and pictures."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from google.protobuf import text_format
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo

from torchlab._core.lazy import lazy
from torchlab.utils.tensorboard.arrays import to_array
from torchlab.utils.tensorboard.images import bytes_of, in_grid

_ESCAPED = {c: f"%{ord(c):02x}" for c in "%/\\"}


def folder_name(tag: str) -> str:
    """`tag` as the name of a folder: without what separates paths."""
    return "".join(_ESCAPED.get(c, c) for c in tag)


def write(
    log_dir: str, folder: str, tag: str, vectors: Any, labels: Any, header: Any, pictures: Any
) -> EmbeddingInfo:
    """Write `vectors` (N, D), `labels` (N texts, or N rows under `header`) and `pictures`
    (N, 1 or 3, H, W) into log_dir/folder; returns what the list of embeddings says of them."""
    path = os.path.join(log_dir, folder)
    if os.path.isdir(path):
        print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
    else:
        os.makedirs(path)
    a = to_array(vectors)
    info = EmbeddingInfo()
    info.tensor_name = f"{tag}:{folder.partition('/')[0]}"
    info.tensor_path = f"{folder}/tensors.tsv"
    if labels is not None:
        if len(labels) != a.shape[0]:
            raise AssertionError("#labels should equal with #data points")
        info.metadata_path = f"{folder}/metadata.tsv"
        with open(os.path.join(path, "metadata.tsv"), "wb") as file:
            file.writelines(line.encode() + b"\n" for line in _lines(labels, header))
    if pictures is not None:
        p = to_array(pictures)
        if p.shape[0] != a.shape[0]:
            raise AssertionError("#images should equal with #data points")
        if p.shape[2] != p.shape[3]:
            raise AssertionError("Image should be square, see tensorflow/tensorboard#670")
        _sprite(p).save(os.path.join(path, "sprite.png"))
        info.sprite.image_path = f"{folder}/sprite.png"
        info.sprite.single_image_dim.extend([p.shape[3], p.shape[2]])
    if a.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    with open(os.path.join(path, "tensors.tsv"), "wb") as file:
        file.writelines("\t".join(map(str, row)).encode() + b"\n" for row in a.tolist())
    return info


def _lines(labels: Any, header: Any) -> list[str]:
    if not header:
        return [str(x) for x in labels]
    if len(header) != len(labels[0]):
        raise AssertionError("len of header must be equal to the number of columns in metadata")
    return ["\t".join(map(str, row)) for row in (header, *labels)]


def _sprite(pictures: np.ndarray) -> Any:
    """All pictures in a square grid; what is left over stays black."""
    side = math.ceil(math.sqrt(pictures.shape[0]))
    grid = in_grid(_bytes(pictures), side).transpose(1, 2, 0)
    height = side * pictures.shape[2]
    whole = np.zeros((height, grid.shape[1], grid.shape[2]), np.uint8)
    whole[: grid.shape[0]] = grid
    return lazy("PIL.Image").fromarray(whole)


def _bytes(pictures: np.ndarray) -> np.ndarray:
    return bytes_of(pictures.astype(np.float32))


def text(info: EmbeddingInfo) -> str:
    """The entry in projector_config.pbtxt."""
    inner = text_format.MessageToString(info)
    return "embeddings {\n" + "".join(f"  {line}\n" for line in inner.splitlines()) + "}\n"


__all__ = ["folder_name", "text", "write"]
