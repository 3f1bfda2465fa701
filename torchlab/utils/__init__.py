"""The public name space `torchlab.utils`."""

from __future__ import annotations

from torchlab.utils import checkpoint, data, dlpack, hooks
