"""The names of classes and functions in files: PyTorch's on disk, torchlab's in memory.

Files name `torch.nn.modules.linear.Linear`, so that PyTorch reads what torchlab wrote and the other
way round. `on_disk` gives PyTorch's name of an object, `find` the object of a PyTorch name.

What torchlab has and PyTorch has not keeps its own name. A class that is defined in another file
than PyTorch's is looked for upwards: `torch.nn.modules.linear.Linear` is found as
`torchlab.nn.Linear`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.storages import StorageBase, TypedStorage, UntypedStorage

OURS, THEIRS = "torchlab", "torch"
_VISION = "vision"  # `torchlab.vision` is the library `torchvision` on disk

# Where PyTorch defines the classes of a torchlab file, if it is not the same path.
_MODULES = {
    f"nn.{name}": f"nn.modules.{name}"
    for name in (
        "activation", "adaptive", "batchnorm", "channelshuffle", "conv", "distance", "dropout",
        "flatten", "fold", "instancenorm", "linear", "loss", "module", "normalization", "padding",
        "pixelshuffle", "pooling", "rnn", "sparse", "transformer", "upsampling",
    )
}  # fmt: skip
_MODULES.update(
    {"nn.containers": "nn.modules.container", "nn.parameter_containers": "nn.modules.container"}
)
_KEEP = ("nn.parameter", "nn.functional", "nn.init", "nn.utils", "nn.modules")
_SCHEDULERS = "optim.lr_scheduler"

# torchlab objects that PyTorch knows by a name of their own: object → (module, name).
_special: dict[int, tuple[Any, str, str]] = {}
# PyTorch's names of functions that exist only for files.
_files_only: dict[tuple[str, str], Any] = {}


def enter(obj: Any, module: str, name: str) -> Any:
    """Let `obj` be `module.name` on disk, both ways. Returns it."""
    _special[id(obj)] = (obj, module, name)
    _files_only[module, name] = obj
    return obj


for _d in (*dt.ALL, *dt.QUANTIZED):
    enter(_d, THEIRS, _d.name)
enter(StorageBase, THEIRS, "StorageBase")
enter(UntypedStorage, "torch.storage", "UntypedStorage")
enter(TypedStorage, "torch.storage", "TypedStorage")


def _renamed(module: str, name: str) -> str:
    """PyTorch's module of what torchlab defines in `module` (without the package's name)."""
    found = _MODULES.get(module)
    if found is not None:
        return found
    if module == _SCHEDULERS or module.startswith(_SCHEDULERS + "."):
        return _SCHEDULERS
    if module.startswith("nn.") and not module.startswith(_KEEP):
        return "nn"
    return module


def on_disk(obj: Any, name: str | None = None) -> tuple[str, str] | None:
    """(module, qualified name) in PyTorch of a class, function or constant of torchlab; None for
    what belongs to others or has no counterpart."""
    found = _special.get(id(obj))
    if found is not None:
        return found[1], found[2]
    module = getattr(obj, "__module__", None)
    if not isinstance(module, str):
        return None
    if name is None:
        name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    if not isinstance(name, str) or "<" in name:
        return None
    if module != OURS and not module.startswith(OURS + "."):
        return None
    rest = module[len(OURS) + 1 :]
    if rest.startswith("_core"):
        # Private: it is PyTorch's only if it is the public name at the top.
        face = sys.modules[OURS]
        return (THEIRS, name) if face.__dict__.get(name) is obj else None
    if rest.partition(".")[0] == _VISION:
        # A private file's names are public in the package above, in torchvision too.
        return THEIRS + rest.partition("._")[0], name
    rest = _renamed(rest, name)
    return (f"{THEIRS}.{rest}" if rest else THEIRS), name


def _attribute(module: Any, name: str) -> Any:
    found = module
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _module(path: str) -> Any:
    """The module, or None if there is none of that name."""
    if path in sys.modules:
        return sys.modules[path]
    parent = path.rpartition(".")[0]
    if parent and (_module(parent) is None or not hasattr(sys.modules[parent], "__path__")):
        return None
    if importlib.util.find_spec(path) is None:
        return None
    return importlib.import_module(path)


def is_torch(module: str) -> bool:
    """Whether a name on disk is PyTorch's, or torchvision's."""
    return module.partition(".")[0] in (THEIRS, THEIRS + _VISION)


# What PyTorch's built-in functions and methods are attributes of.
_OWNERS = {
    ("torch._C", "_VariableFunctionsClass"): None,
    ("torch._C", "_VariableFunctions"): None,
    ("torch._C", "TensorBase"): "Tensor",
    ("torch._C", "_TensorBase"): "Tensor",
}


def find(module: str, name: str) -> Any:
    """torchlab's object of a PyTorch name.

    Raises:
        AttributeError: torchlab has no such object.
    """
    found = _files_only.get((module, name))
    if found is not None:
        return found
    if (module, name) in _OWNERS:
        face = sys.modules[OURS]
        owner = _OWNERS[module, name]
        return face if owner is None else getattr(face, owner)
    path = f"{OURS}.{module[len(THEIRS) :].removeprefix('.')}".removesuffix(".")
    while path:
        place = _module(path)
        if place is not None:
            try:
                return _attribute(place, name)
            except AttributeError:
                pass  # it may live further up: see the module's text
        path = path.rpartition(".")[0]
    raise AttributeError(
        f"torchlab has no '{module}.{name}', which this file names: the object in it needs a part"
        " of PyTorch that is missing from torchlab"
    )
