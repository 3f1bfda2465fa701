"""Ahead of time: the backward of a captured graph, traced by the tape's own formulas, cut from its
forward.
"""

from torchlab.compiler.aot.budget import BudgetError, region_budget
from torchlab.compiler.aot.function import CompiledFunctionBackward, differentiable
from torchlab.compiler.aot.joint import Joint, joint
from torchlab.compiler.aot.partition import Parts, partition

__all__ = [
    "BudgetError",
    "CompiledFunctionBackward",
    "Joint",
    "Parts",
    "differentiable",
    "joint",
    "partition",
    "region_budget",
]
