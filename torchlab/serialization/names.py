"""The names of classes and functions in files: PyTorch's on disk, torchlab's in memory.

Files name `torch.nn.modules.linear.Linear`, so that PyTorch reads what torchlab wrote and the other
way round. `on_disk` gives PyTorch's name of an object, `find` the object of a PyTorch name.

What torchlab has and PyTorch has not keeps its own name. A class that is defined in another file
than PyTorch's is looked for upwards: `torch.nn.modules.linear.Linear` is found as
`torchlab.nn.Linear`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import sys
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.storages import StorageBase, TypedStorage, UntypedStorage

OURS, THEIRS = "torchlab", "torch"
_VISION = "vision"  # `torchlab.vision` is the library `torchvision` on disk

_KEEP = (
    "nn.parameter",
    "nn.functional",
    "nn.parallel",
    "nn.attention",
    "nn.init",
    "nn.utils",
    "nn.modules",
)
_SCHEDULERS = "optim.lr_scheduler"
# Files that torchvision has not; their names are public in the package above.
_OWN_FILES = ("vision.ops.regions", "vision.datasets.emnist", "vision.datasets.qmnist")

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


@functools.cache
def _of_modules() -> dict[str, str]:
    """The files of `nn.modules`, which lists everything where PyTorch has it, by class name."""
    package = importlib.import_module(f"{OURS}.nn.modules")
    found = {}
    for file in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{file.name}")
        found.update(dict.fromkeys(module.__all__, f"nn.modules.{file.name}"))
    return found


def _renamed(module: str, name: str) -> str:
    """PyTorch's module of what torchlab defines in `module` (without the package's name)."""
    own = module == "nn.parameter_containers" or not module.startswith(_KEEP)
    if module.startswith("nn.") and own:
        return _of_modules().get(name.partition(".")[0], "nn")
    if module.startswith("distributions._transforms"):
        return "distributions.transforms"
    if module == _SCHEDULERS or module.startswith(_SCHEDULERS + "."):
        return _SCHEDULERS
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
        # A private file's names are public in the package above, in torchvision too; or torchvision
        # has the private file.
        if rest in _OWN_FILES:
            rest = rest.rpartition(".")[0]
        above = rest.partition("._")[0]
        if hasattr(sys.modules.get(f"{OURS}.{above}"), name.partition(".")[0]):
            rest = above
        return THEIRS + rest, name
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
