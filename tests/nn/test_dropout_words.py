"""What dropout of whole channels says of inputs without them, in PyTorch's words."""

from __future__ import annotations

import pytest

import torchlab as tl
import torchlab.nn.functional as F


def test_dropout2d_warns():
    with pytest.warns(UserWarning, match=r"Received a 2-D input to dropout2d, .*use dropout inst"):
        F.dropout2d(tl.ones(2, 2), 0.5)
    with pytest.warns(UserWarning, match=r"Received a 3D input to dropout2d and assuming"):
        F.dropout2d(tl.ones(2, 2, 2), 0.5)


def test_dropout3d_warns():
    with pytest.warns(UserWarning, match=r"with 3 spatial dimensions, .*\(i.e. 4D or 5D inputs\)"):
        F.dropout3d(tl.ones(2, 2, 2, 2, 2, 2), 0.5)


def test_dropout1d():
    with pytest.raises(RuntimeError, match=r"received a 1D input\. .*with 1 spatial dimension, a"):
        F.dropout1d(tl.ones(2), 0.5)
    x = tl.ones(4, 3)
    y = F.dropout1d(x, 0.5, inplace=True)  # whole rows, and x is written
    assert y is x or y.data_ptr() == x.data_ptr()
    assert all(row in ([0, 0, 0], [2, 2, 2]) for row in x.tolist())
