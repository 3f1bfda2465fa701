"""Every aten schema of the installed PyTorch parses, prints back, and means what PyTorch says."""

from __future__ import annotations

import pytest

from torchlab._core.dispatch.schema import parse

torch = pytest.importorskip("torch")


def test_every_aten_schema() -> None:
    checked = 0
    for theirs in torch._C._jit_get_all_schemas():
        if not theirs.name.startswith("aten::"):
            continue
        text = str(theirs)
        ours = parse(text)
        assert str(ours) == text
        assert f"{ours.namespace}::{ours.name}" == theirs.name
        assert ours.overload == theirs.overload_name
        assert [r.name or "" for r in ours.returns] == [r.name for r in theirs.returns]
        assert len(ours.arguments) == len(theirs.arguments)
        for mine, other in zip(ours.arguments, theirs.arguments, strict=True):
            assert (mine.name, mine.kwarg_only) == (other.name, other.kwarg_only)
            assert mine.has_default == other.has_default_value()
            value = other.default_value
            expected = tuple(value) if isinstance(value, list) else value
            if mine.has_default and not isinstance(value, (torch.dtype, torch.device)):
                assert mine.default == expected, text
            info = other.alias_info
            assert (mine.alias is not None) == (info is not None)
            assert mine.write == (info is not None and info.is_write)
        checked += 1
    assert checked > 3000
