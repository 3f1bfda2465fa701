"""Archives with exchanged parts, for the tests of files that are damaged or hostile."""

from __future__ import annotations

import io
import zipfile

import torchlab as torch


def saved(obj, **options) -> bytes:
    """The bytes that torch.save writes."""
    out = io.BytesIO()
    torch.save(obj, out, **options)
    return out.getvalue()


def parts(data: bytes) -> dict[str, bytes]:
    """The records of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(records, compression=zipfile.ZIP_STORED) -> io.BytesIO:
    """An archive of records: a dict or a list of pairs."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in records.items() if isinstance(records, dict) else records:
            archive.writestr(name, data)
    out.seek(0)
    return out


def with_pickle(data: bytes, storages: dict[str, bytes] | None = None) -> io.BytesIO:
    """An archive with that pickle as its object."""
    records = {"archive/data.pkl": data, "archive/version": b"3\n", "archive/byteorder": b"little"}
    for key, raw in (storages or {}).items():
        records[f"archive/data/{key}"] = raw
    return packed(records)
