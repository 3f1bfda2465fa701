"""Where torchvision keeps data sets and weights, and what loads them. Libraries take these names
from here.

Source: https://docs.pytorch.org/vision/0.28/models.html
"""

from __future__ import annotations

import os

from torchlab.hub import _get_torch_home, load_state_dict_from_url

_HOME = os.path.join(_get_torch_home(), "datasets", "vision")
_USE_SHARDED_DATASETS = False
IN_FBCODE = False

__all__ = ["load_state_dict_from_url"]
