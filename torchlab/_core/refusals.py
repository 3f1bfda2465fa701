"""What the tape says when it refuses a write in place, or a backward after one.

Source: https://docs.pytorch.org/docs/2.13/notes/autograd.html#in-place-correctness-checks
"""

from __future__ import annotations

import linecache
from typing import Any

# How a view was made.
NORMAL, NO_GRAD, MULTI_OUTPUT, CUSTOM, INFERENCE = range(5)


def modified(node: Any, a: Any, k: Any, s: Any, version: int) -> str:
    """The text of the in-place error. Unlike PyTorch's it names the line that wrote."""
    where = ""
    if s.writer is not None:
        code, instruction = s.writer
        line = code.co_firstlineno
        for start, end, number in code.co_lines():
            if start <= instruction < end and number is not None:
                line = number
        text = linecache.getline(code.co_filename, line).strip()
        where = f" It was written in {code.co_filename}:{line}, in {code.co_name}" + (
            f": `{text}`." if text else "."
        )
    maker = node.name()
    return (
        "one of the variables needed for gradient computation has been modified by an inplace"
        f" operation: [torch.{k.dtype.scalar_name}Tensor {list(a.shape)}], which {maker} saved, is"
        f" at version {s.version}; expected version {version} instead.{where} Hint: clone() the"
        " tensor before writing, or use the operation that returns a new tensor."
    )


def forbidden_write(maker: tuple[str, int] | None, creation: int, indirect: bool) -> str:
    """Why a view that was made in this way may not be written to; `indirect`: its base was, or
    another view of it. `maker`: the operator that made it and the number of the output."""
    how = "its base or another view of its base has been modified" if indirect else None
    if creation in (NO_GRAD, INFERENCE) or maker is None:
        mode, normal = "no_grad mode", "with grad mode enabled"
        if creation == INFERENCE:
            mode, normal = "inference mode", "in normal mode"
        text = f"A view was created in {mode} and {how or 'is being modified'} inplace {normal}."
    else:
        name, nr = maker
        text = f"Output {nr} of {name} is a view and {how or 'is being modified'} inplace."
    if creation in (NO_GRAD, INFERENCE):
        block = "inference_mode" if creation == INFERENCE else "no_grad"
        return (
            f"{text} Given that this use case is ambiguous and error-prone, it is forbidden. You"
            " can clarify your code by moving both the view and the inplace either both inside the"
            f" {block} block (if you don't want the inplace to be tracked) or both outside (if you"
            " want the inplace to be tracked)."
        )
    if creation == MULTI_OUTPUT:
        return (
            f"{text} This view is the output of a function that returns multiple views. Such"
            " functions do not allow the output views to be modified inplace. You should replace"
            " the inplace operation by an out-of-place one."
        )
    return (
        f"{text} This view was created inside a custom Function (or because an input was returned"
        " as-is) and the autograd logic to handle view+inplace would override the custom backward"
        " associated with the custom Function, leading to incorrect gradients. This behavior is"
        " forbidden. You can fix this by cloning the output of the custom Function."
    )
