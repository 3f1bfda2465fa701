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

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
SHORT_SIZE, INT_SIZE, LONG_SIZE = 2, 4, 4


def write(file: Any, data: bytes, storages: Any, pickle_module: Any, protocol: int) -> None:
    """Write the parts. data: the pickle of the object."""
    machine = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": SHORT_SIZE, "int": INT_SIZE, "long": LONG_SIZE},
    }
    for part in (MAGIC_NUMBER, PROTOCOL_VERSION, machine):
        file.write(pickle_module.dumps(part, protocol=protocol))
    file.write(data)
    found = sorted(storages.found.values(), key=lambda s: s.key)
    file.write(pickle.dumps([s.key for s in found], protocol=protocol))
    file.flush()
    for saved in found:
        raw = saved.storage.cpu()._storage.bytes
        file.write(struct.pack("<q", raw.size // saved.dtype.itemsize))
        file.write(memoryview(raw))
