"""`torchlab.utils.dlpack`: tensors of other libraries over the same memory.

Source: https://docs.pytorch.org/docs/2.13/dlpack.html
"""

from torchlab._core.dlpack import DLDeviceType, from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
