"""`torchlab.utils.data.datapipes`: datasets that are chains of small steps.

Source: https://github.com/pytorch/pytorch/tree/v2.13.0/torch/utils/data/datapipes
"""

from __future__ import annotations

from torchlab.utils.data.datapipes import iter, map
