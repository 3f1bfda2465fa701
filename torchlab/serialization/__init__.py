"""`torchlab.serialization`: `torch.save` and `torch.load` in PyTorch's own formats.

Files are interchangeable with PyTorch's. Loading is safe by default: see safe_unpickler.py.

    save      pickler.py (an object, its tensors taken apart by reduce.py), zip_writer.py
    load      zip_reader.py or legacy_reader.py, safe_unpickler.py, rebuild.py, locations.py
    names.py  what things are called in files

Source: https://docs.pytorch.org/docs/2.13/notes/serialization.html
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from torchlab._core import legacy
from torchlab._core.device import device
from torchlab.serialization.legacy_writer import (
    INT_SIZE,
    LONG_SIZE,
    MAGIC_NUMBER,
    PROTOCOL_VERSION,
    SHORT_SIZE,
)
from torchlab.serialization.loading import get_unsafe_globals_in_checkpoint, load
from torchlab.serialization.locations import (
    default_restore_location,
    location_tag,
    register_package,
    validate_cuda_device,
    validate_hpu_device,
)
from torchlab.serialization.options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from torchlab.serialization.rebuild import get_layout as _get_layout
from torchlab.serialization.safe_globals import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from torchlab.serialization.saving import DEFAULT_PROTOCOL, save
from torchlab.serialization.storage_classes import StorageType
from torchlab.types import Storage

__all__ = [
    "LoadEndianness",
    "MAP_LOCATION",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
    "validate_hpu_device",
]


MAP_LOCATION: TypeAlias = Callable[[Storage, str], Storage] | device | str | dict[str, str] | None
"""What `load` takes as `map_location`."""


class SourceChangeWarning(Warning):
    """A class in an old file has another source text now."""


@contextlib.contextmanager
def mkdtemp() -> Iterator[str]:
    """A temporary folder that is gone after the block."""
    with tempfile.TemporaryDirectory() as path:
        yield path


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Whether `module.__version__` is at least a version such as (1, 4).

    Raises:
        RuntimeError: the version cannot be read (with `error_if_malformed=False`: a warning, True).
    """
    try:
        parts = module.__version__.split(".")
        version = tuple(type(r)(p) for r, p in zip(req_version_tuple, parts, strict=False))
        return version >= req_version_tuple
    except (AttributeError, TypeError, ValueError) as e:
        message = (
            f"'{getattr(module, '__name__', module)}' module version string is malformed"
            f" '{getattr(module, '__version__', None)}' and cannot be compared with tuple"
            f" {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from e
        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True


def normalize_storage_type(storage_type: Any) -> Any:
    """The class of storages itself."""
    return getattr(sys.modules["torchlab"], storage_type.__name__)


def storage_to_tensor_type(storage: Any) -> Any:
    """The old class of tensors, torch.FloatTensor, that belongs to a typed storage."""
    return legacy.TYPED[f"{storage.dtype.scalar_name}Tensor"]
