"""`torch._dynamo._trace_wrapped_higher_order_op`: where programs that make masks for attention
import `TransformGetItemToIndex` from.

Source: https://docs.pytorch.org/docs/2.13/nn.attention.flex_attention.html
"""

from torchlab.nn.attention.indexing import TransformGetItemToIndex

__all__ = ["TransformGetItemToIndex"]
