"""The `torch` alias: after `install()`, `import torch` and `import torch.x.y` mean torchlab.

    from torchlab import compat
    compat.install()
    import torch                       # is torchlab
    import torch.nn.functional as F    # is torchlab.nn.functional

`torchlab run script.py` does this for a script that was written for PyTorch. The modules are the
same objects under two names, so `isinstance`, `is` and module state agree. What torchlab does not
have raises ModuleNotFoundError (an ImportError) that names the missing part; it never falls back on
a PyTorch that happens to be installed.

Processes of `multiprocessing` have the alias too, forked or spawned; those of a fork server, and
programs started with `subprocess`, do not.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from multiprocessing import spawn
from types import ModuleType
from typing import Any

ALIAS = "torch"
REAL = __name__.partition(".")[0]


def _covers(name: str) -> bool:
    return name == ALIAS or name.startswith(ALIAS + ".")


def _real_name(name: str) -> str:
    return REAL + name[len(ALIAS) :]


def _exists(real: str) -> bool:
    return real in sys.modules or importlib.util.find_spec(real) is not None


class _AliasLoader(Loader):
    """Hands out the torchlab module that `real` names, unchanged."""

    def __init__(self, real: str) -> None:
        self.real = real
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.real)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just written the alias's spec into the module; it keeps its own, or
        # reloading and relative imports inside it would go astray.
        module.__spec__ = self._spec


class TorchAlias(MetaPathFinder):
    """The import hook. It answers for `torch` and everything below it, and for nothing else."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The spec of the torchlab module behind `fullname`; None for names not under `torch`.

        Raises:
            ModuleNotFoundError: torchlab has no such module.
        """
        if not _covers(fullname):
            return None
        real = _real_name(fullname)
        if not _exists(real):
            raise ModuleNotFoundError(
                f"torchlab has no '{real}', which this program imports as '{fullname}': that part "
                "of PyTorch is missing from torchlab. `import torch` means torchlab here (the "
                f"alias of {__name__}); run the program with python itself to use PyTorch",
                name=fullname,
            )
        # Not marked as a package, or the import system would give plain modules a `__path__`;
        # packages bring their own, which is what an import below them reads.
        return ModuleSpec(fullname, _AliasLoader(real), origin=real)


_IN_CHILDREN = f"from {__name__} import install; install(); "
_command_line = spawn.get_command_line


def _command_line_of_children(**kwargs: Any) -> list[str]:
    """The command that starts a spawned process, which first installs the alias: it imports the
    main script, and so `torch`, before it gets anything from here."""
    command = _command_line(**kwargs)
    if "-c" in command:  # a frozen program starts itself, and `install` in it
        at = command.index("-c") + 1
        command[at] = _IN_CHILDREN + command[at]
    return command


def _installed() -> TorchAlias | None:
    return next((f for f in sys.meta_path if isinstance(f, TorchAlias)), None)


def install() -> None:
    """Make `import torch` mean torchlab in this process. Calling it again does nothing.

    Raises:
        ImportError: PyTorch itself is imported already; two frameworks under one name would mix.
    """
    if _installed() is not None:
        return
    loaded = sys.modules.get(ALIAS)
    if loaded is not None and loaded is not sys.modules.get(REAL):
        raise ImportError(
            "the name 'torch' is taken: PyTorch is already imported in this process "
            f"({getattr(loaded, '__file__', 'no file')}). Install the alias before anything "
            "imports torch, or run the script with `torchlab run`",
            name=ALIAS,
        )
    sys.meta_path.insert(0, TorchAlias())
    spawn.get_command_line = _command_line_of_children


def uninstall() -> None:
    """Take the alias back: `import torch` means PyTorch again, or fails where there is none."""
    finder = _installed()
    if finder is None:
        return
    sys.meta_path.remove(finder)
    spawn.get_command_line = _command_line
    for name in [name for name in sys.modules if _covers(name)]:
        del sys.modules[name]


@contextlib.contextmanager
def torch_alias() -> Iterator[None]:
    """`with torch_alias(): import torch` — the alias for a block; nested blocks are one."""
    before = _installed()
    install()
    try:
        yield
    finally:
        if before is None:
            uninstall()
