"""The public name space `torchlab.optim`. Source: https://docs.pytorch.org/docs/2.13/optim.html"""

from __future__ import annotations

from torchlab.optim import lr_scheduler, swa_utils
from torchlab.optim.adadelta import Adadelta
from torchlab.optim.adafactor import Adafactor
from torchlab.optim.adagrad import Adagrad
from torchlab.optim.adam import Adam
from torchlab.optim.adamax import Adamax
from torchlab.optim.adamw import AdamW
from torchlab.optim.asgd import ASGD
from torchlab.optim.lbfgs import LBFGS
from torchlab.optim.muon import Muon
from torchlab.optim.nadam import NAdam
from torchlab.optim.optimizer import Optimizer
from torchlab.optim.radam import RAdam
from torchlab.optim.rmsprop import RMSprop
from torchlab.optim.rprop import Rprop
from torchlab.optim.sgd import SGD
from torchlab.optim.sparse_adam import SparseAdam
from torchlab.optim.swap_in import swap_in_optimizer_params_and_state
