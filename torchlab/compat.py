"""The aliases: after `install()`, `import torch` means torchlab and `import torchvision`
torchlab.vision, with all that is below them.

    from torchlab import compat
    compat.install()
    import torch                                # is torchlab
    import torch.nn.functional as F             # is torchlab.nn.functional
    from torchvision import transforms          # is torchlab.vision.transforms

`torchlab run script.py` does this for a script that was written for PyTorch. The modules are the
same objects under two names, so `isinstance`, `is` and module state agree; each is loaded when it
is imported. `torch.__name__` is "torch" then, and torchvision's "torchvision": programs compare
them. What torchlab does not have raises ModuleNotFoundError (an ImportError) that names the missing
part; it never falls back on a PyTorch that happens to be installed.

Processes of `multiprocessing` have the aliases too, forked, spawned or from a fork server that was
not yet running; programs started with `subprocess` do not.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from multiprocessing import spawn, util
from types import ModuleType
from typing import Any

_PACKAGE = __name__.partition(".")[0]
ALIASES = {
    "torch": _PACKAGE,
    "torchvision": f"{_PACKAGE}.vision",
    "functorch": f"{_PACKAGE}._functorch.deprecated",
}
"""What programs import, and what they get."""

_LIBRARIES = {"torch": "PyTorch", "torchvision": "torchvision", "functorch": "PyTorch"}


def _covers(name: str) -> bool:
    return name.partition(".")[0] in ALIASES


def _real_name(name: str) -> str:
    alias, dot, rest = name.partition(".")
    return ALIASES[alias] + dot + rest


def _exists(real: str) -> bool:
    return real in sys.modules or importlib.util.find_spec(real) is not None


class _AliasLoader(Loader):
    """Hands out the torchlab module that `real` names, unchanged."""

    def __init__(self, alias: str, real: str) -> None:
        self.alias = alias
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
        for alias, real in ALIASES.items():
            if real == self.real:
                module.__name__ = alias  # which programs compare
        if hasattr(module, "__path__"):
            self._keep_names(module)

    def _keep_names(self, package: ModuleType) -> None:
        """Enter the package's loaded modules whose names in it are something else's: importing
        `torchvision.models.googlenet` would set the name to the module, and the function of this
        name would be gone."""
        for name, module in list(sys.modules.items()):
            parent, _, child = name.rpartition(".")
            if parent == self.real and vars(package).get(child, module) is not module:
                sys.modules.setdefault(f"{self.alias}.{child}", module)


class TorchAlias(MetaPathFinder):
    """The import hook. It answers for the ALIASES and everything below them, and for nothing
    else."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The spec of the torchlab module behind `fullname`; None for names under no alias.

        Raises:
            ModuleNotFoundError: torchlab has no such module.
        """
        if not _covers(fullname):
            return None
        real = _real_name(fullname)
        if not _exists(real):
            alias = fullname.partition(".")[0]
            raise ModuleNotFoundError(
                f"torchlab has no '{real}', which this program imports as '{fullname}': that part "
                f"of {_LIBRARIES[alias]} is missing from torchlab. `import {alias}` means "
                f"{ALIASES[alias]} here (the alias of {__name__}); run the program with python "
                "itself to use PyTorch",
                name=fullname,
            )
        # Not marked as a package, or the import system would give plain modules a `__path__`;
        # packages bring their own, which is what an import below them reads.
        return ModuleSpec(fullname, _AliasLoader(fullname, real), origin=real)

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """What `importlib.metadata` shall find under the aliases: libraries ask it which version of
        torch is installed before they import it."""
        stand_in = importlib.import_module(f"{_PACKAGE}._metadata").StandIn  # (stdlib's is slow)
        wanted = getattr(context, "name", None)
        for alias in ("torch", "torchvision"):
            real = ALIASES[alias]
            if wanted is None or wanted.lower() == alias:
                yield stand_in(alias, importlib.import_module(f"{real}.version").__version__)


_IN_CHILDREN = f"from {__name__} import install; install(); "
_command_line = spawn.get_command_line
_start: Any = util.spawnv_passfds


def _command_line_of_children(**kwargs: Any) -> list[str]:
    """The command that starts a spawned process, which first installs the alias: it imports the
    main script, and so `torch`, before it gets anything from here."""
    command = _command_line(**kwargs)
    if "-c" in command:  # a frozen program starts itself, and `install` in it
        at = command.index("-c") + 1
        command[at] = _IN_CHILDREN + command[at]
    return command


def _start_of_helpers(path: Any, args: Any, passfds: Any) -> Any:
    """Starts a fork server with the alias, which all its children inherit; else as it is."""
    if len(args) > 1 and args[-2] == "-c" and "multiprocessing.forkserver" in args[-1]:
        args = [*args[:-1], _IN_CHILDREN + args[-1]]
    return _start(path, args, passfds)


def _installed() -> TorchAlias | None:
    return next((f for f in sys.meta_path if isinstance(f, TorchAlias)), None)


def install() -> None:
    """Make `import torch` and `import torchvision` mean torchlab in this process. Calling it again
    does nothing.

    Raises:
        ImportError: one of them is imported already; two libraries under one name would mix.
    """
    if _installed() is not None:
        return
    for alias, real in ALIASES.items():
        loaded = sys.modules.get(alias)
        if loaded is not None and loaded is not sys.modules.get(real):
            raise ImportError(
                f"the name '{alias}' is taken: {_LIBRARIES[alias]} is already imported in this "
                f"process ({getattr(loaded, '__file__', 'no file')}). Install the alias before "
                f"anything imports {alias}, or run the script with `torchlab run`",
                name=alias,
            )
    sys.meta_path.insert(0, TorchAlias())
    spawn.get_command_line = _command_line_of_children
    util.spawnv_passfds = _start_of_helpers  # type: ignore[attr-defined]


def uninstall() -> None:
    """Take the aliases back: `import torch` means PyTorch again, or fails where there is none."""
    finder = _installed()
    if finder is None:
        return
    sys.meta_path.remove(finder)
    spawn.get_command_line = _command_line
    util.spawnv_passfds = _start  # type: ignore[attr-defined]
    for name in [name for name in sys.modules if _covers(name)]:
        module = sys.modules.pop(name)
        if name in ALIASES:
            module.__name__ = ALIASES[name]


@contextlib.contextmanager
def torch_alias() -> Iterator[None]:
    """`with torch_alias(): import torch` — the aliases for a block; nested blocks are one."""
    before = _installed()
    install()
    try:
        yield
    finally:
        if before is None:
            uninstall()
