"""`torch.utils.tensorboard`: what TensorBoard shows of a training, written to event files.

It needs the package tensorboard (`pip install "torchlab[tensorboard]"`), whose file writer and
message classes are used; `tensorboard --logdir runs` shows the files.

Source: https://docs.pytorch.org/docs/2.13/tensorboard.html
"""

from __future__ import annotations

from tensorboard.summary.writer.record_writer import RecordWriter

from torchlab.utils.tensorboard.files import FileWriter
from torchlab.utils.tensorboard.writer import SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
