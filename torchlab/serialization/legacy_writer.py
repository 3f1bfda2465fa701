"""The format from before PyTorch 1.6: pickles one after the other, then the storages.

    magic number, protocol, machine; the object; the list of storage keys      (pickles)
    for each key: the number of elements (8 bytes, little endian), the elements

Source: https://docs.pytorch.org/docs/2.13/generated/torch.save.html
"""

from __future__ import annotations

import pickle
import struct
import sys
from typing import Any

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001


def write(file: Any, data: bytes, storages: Any, pickle_module: Any, protocol: int) -> None:
    """Write the parts. data: the pickle of the object."""
    machine = {
        "protocol_version": PROTOCOL,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for part in (MAGIC, PROTOCOL, machine):
        file.write(pickle_module.dumps(part, protocol=protocol))
    file.write(data)
    found = sorted(storages.found.values(), key=lambda s: s.key)
    file.write(pickle.dumps([s.key for s in found], protocol=protocol))
    file.flush()
    for saved in found:
        raw = saved.storage.cpu()._storage.bytes
        file.write(struct.pack("<q", raw.size // saved.dtype.itemsize))
        file.write(memoryview(raw))
