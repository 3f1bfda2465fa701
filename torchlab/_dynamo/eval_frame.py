"""`torch._dynamo.eval_frame`: where programs import the class of compiled modules from.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.compile.html
"""

from torchlab.compiler import OptimizedModule

__all__ = ["OptimizedModule"]
