"""A pickle machine that can build weights and nothing else.

Note [What a file can do]
~~~~~~~~~~~~~~~~~~~~~~~~~
A pickle is a program for a small stack machine. Three of its instructions run code: REDUCE and
NEWOBJ call something, BUILD sets an object's state. `pickle.Unpickler` with a restricted
`find_class` leaves gaps there (a state can replace methods, calls take any arguments), so this
machine knows only the instructions that `torch.save` writes, and of these

- GLOBAL looks a name up in a table (safe_globals.py). It imports nothing.
- REDUCE and NEWOBJ call an object only if it *is* (identity) one of the table: its guarded form, or
  what the user added with `add_safe_globals`.
- BUILD sets attributes of OrderedDicts (new names only) and of objects whose class the user added.

Memory and time stay in proportion to the file: lengths are checked against what is left of it,
numbers of the memo are keys of a dict and not places of a list, nothing is recursive, and keys are
checked before they are hashed (a tuple of tuples can take exponential time, or the C stack).
Tensors are made by functions that check every argument against the storage (rebuild.py).

Source: https://docs.pytorch.org/docs/2.13/notes/serialization.html#weights-only
        https://docs.python.org/3/library/pickletools.html
"""

from __future__ import annotations

import io
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError, decode_long
from typing import Any

from torchlab.serialization import safe_globals
from torchlab.serialization.names import is_torch

_LONGEST_NAME = 1000
_READ_FREELY = 1 << 16


class Mark:
    """Stands on the stack where MARK was."""


def _builtin_name(module: str, name: str) -> str:
    return f"builtins.{name}" if module == "__builtin__" else f"{module}.{name}"


class SafeUnpickler:
    """`SafeUnpickler(file).load()`.

    persistent_load: called with the tuple that stands for a storage.
    encoding: of the byte strings that Python 2 wrote.
    """

    def __init__(
        self, file: Any, *, encoding: str = "ASCII",
        persistent_load: Callable[[Any], Any] | None = None, **unknown: Any,
    ) -> None:  # fmt: skip
        if unknown:
            raise TypeError(
                f"Unpickler.__init__() got an unexpected keyword argument '{next(iter(unknown))}'"
            )
        self._file = file
        self._encoding = encoding
        self._persistent = persistent_load
        start = file.tell()
        file.seek(0, io.SEEK_END)
        self._end = file.tell()
        file.seek(start)
        self._user = safe_globals.user_globals()
        self._callable = dict(safe_globals.GUARDED)
        self._callable.update(
            {id(x): (x, x) for x in self._user.values() if id(x) not in safe_globals.GUARDED}
        )
        self._classes = {id(x) for x in self._user.values() if isinstance(x, type)}

    # ---- the machine -------------------------------------------------------------------------

    def load(self) -> Any:
        """The object of the pickle that begins here; the file stands behind it afterwards.

        Raises:
            UnpicklingError: it holds something that is not allowed, or is damaged.
            EOFError: it ends too early.
        """
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        read, run = self._file.read, _RUN
        while True:
            key = read(1)
            if not key:
                raise EOFError("the pickle in the file ends too early: the file is truncated")
            code = key[0]
            if code == 46:  # STOP
                return self._pop()
            step = run.get(code)
            if step is None:
                raise UnpicklingError(f"Unsupported operand {code}")
            step(self)

    def _pop(self) -> Any:
        if not self.stack:
            raise UnpicklingError("the pickle takes more from its stack than there is")
        return self.stack.pop()

    def _top(self) -> Any:
        if not self.stack:
            raise UnpicklingError("the pickle looks at an empty stack")
        return self.stack[-1]

    def _marked(self) -> list[Any]:
        if not self.marks:
            raise UnpicklingError("the pickle looks for a mark that is not there")
        items = self.stack
        self.stack = self.marks.pop()
        return items

    def _bytes(self, n: int) -> bytes:
        if n > _READ_FREELY and n > self._end - self._file.tell():
            raise EOFError(f"the pickle in the file ends too early: {n} more bytes were expected")
        data = self._file.read(n)
        if len(data) < n:
            raise EOFError(f"the pickle in the file ends too early: {n} bytes were expected")
        return data

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))[0]

    def _line(self) -> str:
        line = self._file.readline(_LONGEST_NAME)
        if not line.endswith(b"\n"):
            raise UnpicklingError("a name in the pickle has no end")
        return line[:-1].decode("utf-8")

    # ---- names and calls ---------------------------------------------------------------------

    def find_global(self, module: str, name: str) -> Any:
        """The object of a name, from the tables."""
        if module in safe_globals.BLOCKED_MODULES or (
            module.partition(".")[0] in safe_globals.BLOCKED_MODULES
        ):
            raise UnpicklingError(
                f"Trying to load unsupported GLOBAL {module}.{name} whose module {module} is"
                " blocked."
            )
        full = _builtin_name(module, name)
        found = self._user.get(full)
        if found is None:
            found = safe_globals.DEFAULTS.get(full)
        if found is not None:
            return found
        shown = name if full.startswith("builtins.") else full
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {shown} was not an allowed global by default. Please use"
            f" `torch.serialization.add_safe_globals([{shown}])` or the"
            f" `torch.serialization.safe_globals([{shown}])` context manager to allowlist this"
            " global if you trust this class/function."
            + (_MISSING if is_torch(module) and module in _TENSOR_MODULES else "")
        )

    def _call(self, function: Any, args: Any) -> Any:
        found = self._callable.get(id(function))
        if found is None or found[0] is not function:
            raise UnpicklingError(
                f"Trying to call reduce for unrecognized function of type {type(function).__name__}"
            )
        if not isinstance(args, tuple):
            raise UnpicklingError(f"a call with {type(args).__name__} instead of a tuple")
        return found[1](*args)

    def _global(self) -> None:
        module = self._line()
        self.stack.append(self.find_global(module, self._line()))

    def _reduce(self) -> None:
        args = self._pop()
        function = self._pop()
        self.stack.append(self._call(function, args))

    def _newobj(self) -> None:
        args = self._pop()
        cls = self._pop()
        if id(cls) in self._classes and isinstance(args, tuple):
            self.stack.append(cls.__new__(cls, *args))
            return
        if not isinstance(cls, type):
            raise UnpicklingError(f"an object of a {type(cls).__name__}, which is no class")
        self.stack.append(self._call(cls, args))

    def _build(self) -> None:
        state = self._pop()
        target = self._top()
        cls = type(target)
        if cls is OrderedDict:
            if type(state) is not dict:
                raise UnpicklingError(f"the state of an OrderedDict is a {type(state).__name__}")
            for name in state:
                if type(name) is not str or hasattr(OrderedDict, name):
                    raise UnpicklingError("the state of an OrderedDict would replace a method")
            target.__dict__.update(state)
        elif id(cls) in self._classes:
            _set_state(target, state)
        else:
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via"
                f" `add_safe_globals`, but got {cls}"
            )

    def _persistent_id(self) -> None:
        pid = self._pop()
        if type(pid) is not tuple or not pid:
            raise UnpicklingError(f"saved_id must be a tuple, got {type(pid).__name__}")
        if type(pid[0]) is not str or pid[0] != "storage":
            got = pid[0][:60] if type(pid[0]) is str else type(pid[0])
            raise UnpicklingError(f"Only persistent_load of storage is allowed, but got {got}")
        if self._persistent is None:
            raise UnpicklingError("a storage in a pickle that has no storages")
        self.stack.append(self._persistent(pid))

    # ---- containers --------------------------------------------------------------------------

    def _mark(self) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def _append(self) -> None:
        item = self._pop()
        self._list().append(item)

    def _appends(self) -> None:
        items = self._marked()
        self._list().extend(items)

    def _list(self) -> Any:
        target = self._top()
        if type(target) is not list:
            raise UnpicklingError(f"Can only append to lists, but got {type(target)}")
        return target

    def _setitem(self) -> None:
        value = self._pop()
        key = self._pop()
        self._dict()[safe_globals.check_key(key)] = value

    def _setitems(self) -> None:
        items = self._marked()
        if len(items) % 2:
            raise UnpicklingError("a dict in the pickle has a key without a value")
        target, check = self._dict(), safe_globals.check_key
        for i in range(0, len(items), 2):
            target[check(items[i])] = items[i + 1]

    def _dict(self) -> Any:
        target = self._top()
        if type(target) not in (dict, OrderedDict, Counter):
            raise UnpicklingError(
                "Can only SETITEM for dict, collections.OrderedDict, collections.Counter, but got"
                f" {type(target)}"
            )
        return target

    def _tuple(self) -> None:
        items = self._marked()
        self.stack.append(tuple(items))

    def _tuple_of(self, n: int) -> None:
        if len(self.stack) < n:
            raise UnpicklingError("the pickle takes more from its stack than there is")
        self.stack[-n:] = [tuple(self.stack[-n:])]

    # ---- plain values ------------------------------------------------------------------------

    def _unicode(self) -> None:
        text = self._bytes(self._number("<I"))
        self.stack.append(str(text, "utf-8", "surrogatepass"))

    def _short_string(self) -> None:
        data = self._bytes(self._number("<B"))
        self.stack.append(data if self._encoding == "bytes" else data.decode(self._encoding))

    def _long(self) -> None:
        self.stack.append(decode_long(self._bytes(self._number("<B"))))

    def _get(self, form: str) -> None:
        i = self._number(form)
        if i not in self.memo:
            raise UnpicklingError(f"the pickle's memo has no entry {i}")
        self.stack.append(self.memo[i])

    def _put(self, form: str) -> None:
        self.memo[self._number(form)] = self._top()

    def _protocol(self) -> None:
        version = self._bytes(1)[0]
        if version > 5:
            raise UnpicklingError(f"pickle protocol {version} is not known")


_TENSOR_MODULES = ("torch", "torch._utils", "torch._tensor", "torch.cuda", "torch.sparse")
_MISSING = " torchlab has no tensors of that kind in files yet."


def _set_state(target: Any, state: Any) -> None:
    """BUILD for an object of a class that the user allowed, as pickle does it."""
    own = getattr(target, "__setstate__", None)
    if own is not None:
        own(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        target.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


_SIMPLE: dict[str, Callable[[SafeUnpickler], Any]] = {
    "N": lambda m: m.stack.append(None),
    "\x88": lambda m: m.stack.append(True),
    "\x89": lambda m: m.stack.append(False),
    ")": lambda m: m.stack.append(()),
    "]": lambda m: m.stack.append([]),
    "}": lambda m: m.stack.append({}),
    "\x8f": lambda m: m.stack.append(set()),
    "J": lambda m: m.stack.append(m._number("<i")),
    "K": lambda m: m.stack.append(m._bytes(1)[0]),
    "M": lambda m: m.stack.append(m._number("<H")),
    "G": lambda m: m.stack.append(m._number(">d")),
    "\x85": lambda m: m._tuple_of(1),
    "\x86": lambda m: m._tuple_of(2),
    "\x87": lambda m: m._tuple_of(3),
    "h": lambda m: m._get("<B"),
    "j": lambda m: m._get("<I"),
    "q": lambda m: m._put("<B"),
    "r": lambda m: m._put("<I"),
    "\x80": SafeUnpickler._protocol,
    "c": SafeUnpickler._global,
    "R": SafeUnpickler._reduce,
    "\x81": SafeUnpickler._newobj,
    "b": SafeUnpickler._build,
    "Q": SafeUnpickler._persistent_id,
    "(": SafeUnpickler._mark,
    "a": SafeUnpickler._append,
    "e": SafeUnpickler._appends,
    "s": SafeUnpickler._setitem,
    "u": SafeUnpickler._setitems,
    "t": SafeUnpickler._tuple,
    "X": SafeUnpickler._unicode,
    "U": SafeUnpickler._short_string,
    "\x8a": SafeUnpickler._long,
}
_RUN = {ord(c): f for c, f in _SIMPLE.items()}


# ---- errors -------------------------------------------------------------------------------------

_CHANGED = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load`"
    " from `False` to `True`. Re-running `torch.load` with `weights_only` set to `False` will"
    " likely succeed, but it can result in arbitrary code execution. Do it only if you got the file"
    " from a trusted source."
)
_CHECK = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with"
    " weights_only https://pytorch.org/docs/stable/generated/torch.load.html."
)
SCRIPT_ARCHIVE = (
    "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``."
    f" {_CHANGED}"
)


def explain(message: str) -> str:
    """PyTorch's text around what went wrong with `weights_only=True`."""
    if "was not an allowed global" in message:
        return (
            "Weights only load failed. This file can still be loaded, to do so you have two"
            " options, \033[1mdo those steps only if you trust the source of the checkpoint\033[0m."
            f" \n\t(1) {_CHANGED}\n\t(2) Alternatively, to load with `weights_only=True` please"
            " check the recommended steps in the following error message.\n\tWeightsUnpickler"
            f" error: {message}{_CHECK}"
        )
    if "is blocked" in message:
        return f"Weights only load failed. {_CHANGED}\n\n\n{message}{_CHECK}"
    return f"Weights only load failed. {_CHANGED}\nWeightsUnpickler error: \n\n{message}{_CHECK}"
