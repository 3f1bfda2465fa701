"""`torchlab.storage`: the memory of tensors as objects.

Source: https://docs.pytorch.org/docs/2.13/storage.html
"""

from torchlab._core.storages import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
