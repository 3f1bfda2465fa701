"""torch.__version__ compares as a version."""

from __future__ import annotations

import pytest

import torchlab as torch
from torchlab.torch_version import TorchVersion


def test_the_version_is_that_of_the_pytorch_it_follows() -> None:
    version = torch.__version__
    assert isinstance(version, TorchVersion) and version.split("+")[0] == "2.13.0"
    assert version >= "2.0" and version >= (2, 13) and version < "2.14"
    assert torch.version.__version__ == version and torch.torch is torch


@pytest.mark.parametrize(
    ("a", "b", "less", "equal"),
    [
        ("2.13.0", "2.13", False, True),
        ("2.13.0", "2.9", False, False),
        ("2.9", "2.13.0", True, False),
        ("2.13.0+cpu", "2.13.0", False, False),
        ("2.13.0", "2.13.0+cpu", True, False),
        ("2.13.0a0+git123", "2.13.0", True, False),
        ("2.13.0.dev20240101", "2.13.0a0", True, False),
        ("2.13.0rc1", "2.13.0b2", False, False),
        ("2.13.0.post1", "2.13.0", False, False),
        ("2.13.0", "v2.13.0", False, True),
        ("2.13.0", (2, 13), False, True),
        ("2.13.0", [2, 14], True, False),
        ("2.13.0", "parrot", True, False),
    ],
)
def test_order(a: str, b: object, less: bool, equal: bool) -> None:
    v = TorchVersion(a)
    assert (v < b, v == b, v > b) == (less, equal, not less and not equal)
    assert (v <= b, v >= b) == (less or equal, not less)


def test_what_is_no_version() -> None:
    v = TorchVersion("2.13")
    assert not v == 3 and v != None  # noqa: E711
    with pytest.raises(TypeError):
        v > None  # noqa: B015
