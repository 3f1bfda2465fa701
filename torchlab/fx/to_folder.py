"""A GraphModule as a package in a folder.

Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.GraphModule.to_folder
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

from torchlab.fx._evaluation import _format_import_block
from torchlab.nn.module import Module

_PACKAGE = __name__.partition(".")[0]


def write_folder(module: Module, folder: Path, module_name: str) -> None:
    """Write `module.py` (the class), `__init__.py`, `state_dict.pt`, and a file for each submodule
    that cannot be written as its constructor's call."""
    torch = sys.modules[_PACKAGE]  # saving is the business of a higher layer
    folder.mkdir(exist_ok=True)
    torch.save(module.state_dict(), folder / "state_dict.pt")
    tab = " " * 4
    code = module.graph.python_code("self")  # type: ignore[union-attr, operator]
    text = f"\n{_format_import_block(code.globals)}\n\nfrom torchlab.nn import *\n"
    text += f"class {module_name}(torch.nn.Module):\n{tab}def __init__(self):\n"
    text += f"{tab * 2}super().__init__()\n"
    pickled: list[str] = []
    for name, child in module.named_children():
        made = _constructor(child)
        if made is None:
            file = folder / f"{name}.pt"
            torch.save(child, file)
            pickled.append(name)
            comment = repr(child).replace("\r", " ").replace("\n", " ")
            made = f"torch.load(r'{file}', weights_only=False)) # {comment}"
        else:
            made += ")"
        text += f"{tab * 2}setattr(self, '{name}', {made}\n"
    for name, buffer in module._buffers.items():
        if buffer is not None:
            text += f"{tab * 2}self.register_buffer('{name}', {_empty(buffer)})\n"
    for name, p in module._parameters.items():
        if p is not None:
            text += f"{tab * 2}setattr(self, '{name}', torch.nn.Parameter({_empty(p)}))\n"
    text += f"{tab * 2}self.load_state_dict(torch.load(r'{folder / 'state_dict.pt'}'))\n"
    text += "\n".join((tab + line).rstrip() for line in code.src.split("\n")) + "\n"
    (folder / "module.py").write_text(text)
    (folder / "__init__.py").write_text("from .module import *\n")
    if pickled:
        warnings.warn(
            "Was not able to save the following children modules as reprs -saved as pickled files "
            f"instead: {pickled}",
            stacklevel=3,
        )


_BY_REPR = (
    "Linear", "Conv1d", "Conv2d", "Conv3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "ReLU",
)  # fmt: skip


def _constructor(child: Module) -> str | None:
    """The call that makes a module anew, where its repr is one."""
    ours = type(child).__module__.startswith(f"{_PACKAGE}.nn.")
    return repr(child) if ours and type(child).__name__ in _BY_REPR else None


def _empty(t: Any) -> str:
    name = str(t.dtype).rpartition(".")[2]
    return f"torch.empty({list(t.shape)}, dtype=torch.{name})"
