"""The public name space `torchlab.optim`. Source: https://docs.pytorch.org/docs/2.13/optim.html"""

from __future__ import annotations

from torchlab.optim import lr_scheduler
from torchlab.optim.adam import Adam
from torchlab.optim.adamw import AdamW
from torchlab.optim.optimizer import Optimizer
from torchlab.optim.sgd import SGD
