"""The public functions, methods and properties, and how they ask `__torch_function__`.

Note [Functions that ask]
~~~~~~~~~~~~~~~~~~~~~~~~~
In PyTorch every public call asks two questions before it does anything: is a function mode on, and
has the class of an argument a `__torch_function__`? Hardly any call has to: so here a function asks
only while the answer can be yes. Every public function is entered in a table when somebody first
gets hold of it (`registry.function`, the first look at a method, the ends of the modules that write
functions out by hand). When a function mode is entered, all functions of the table get another body
(`__code__`), one that asks and then runs a twin with the function's own body; when the last mode
ends, they get their own back. As long as no mode is on, a call does nothing more than without this
file; and a function stays the same object, so that handlers may compare (`func is torch.add`) and a
name that was imported long ago asks, too.

Operators see by themselves that an argument is no plain tensor: their generated calls have to look
at the type anyway. Functions that are written in Python look at their first argument at most. So
these get their asking body, for good, when the program makes the first class of tensors that
overrides `__torch_function__`, or the first proxy of `torch.fx` outside of a trace. (A class that
is no tensor's shows only by its instances. As long as there is no other, it is asked where an
operator, or a function in its first argument, meets one.)

Source: https://docs.pytorch.org/docs/2.13/notes/extending.html#extending-torch-python-api
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from threading import RLock
from types import CodeType, FunctionType
from typing import Any

from torchlab._core.dispatch.written import AS_WRITTEN, Layout
from torchlab._core.grad_state import TLS

answer: list[Callable[[Any, Any, Any], Any]] = []  # torchlab._core.dispatch.modes: who is asked

OPERATORS = {
    "__add__": "add", "__radd__": "add", "__mul__": "mul", "__rmul__": "mul", "__sub__": "sub",
    "__truediv__": "div", "__mod__": "remainder", "__pow__": "pow", "__neg__": "neg",
    "__abs__": "abs", "__matmul__": "matmul", "__ne__": "ne", "__lt__": "lt", "__le__": "le",
    "__gt__": "gt", "__ge__": "ge", "__iadd__": "add_", "__imul__": "mul_", "__isub__": "sub_",
    "__itruediv__": "div_", "__div__": "div", "nelement": "numel", "ndimension": "dim",
}  # fmt: skip
"""The method that a handler gets, where it has another name."""

UNASKED = frozenset(
    """
    assert_int_or_pair boolean_dispatch broadcast_shapes compiled_with_cxx11_abi from_dlpack
    from_numpy frombuffer get_rng_state initial_seed is_storage is_tensor manual_seed range seed
    set_rng_state to_dlpack
    """.split()
)
"""Functions of torch and nn.functional about which PyTorch asks nobody."""

OF_ANYTHING = frozenset(
    """
    as_tensor asarray new_tensor sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor
    sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor
    """.split()
)
"""Those that take any object, other libraries' tensors too: they ask modes, but no class of what
they take."""


class Watched:
    """A public function: its own body, and the one that asks."""

    __slots__ = ("function", "told", "by_type", "layout", "whole", "twin", "own", "asking")

    def __init__(self, function: FunctionType, told: Any, by_type: bool, layout: int) -> None:
        self.function = function
        self.told = told  # what a handler gets, or a function that finds it
        self.by_type = by_type  # it asks the classes of its arguments by itself, or none
        self.layout = layout  # see `written`
        self.whole: Layout | None = None
        self.own = function.__code__
        self.twin: Any = None
        self.asking: CodeType | None = None

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call, by the asking body."""
        if TLS.function_modes or (
            not self.by_type and not TLS.subclasses_off and not _plain(args, kwargs)
        ):
            given = answer[0](self, args, kwargs)
            if given is not NotImplemented:
                return given[0]
        return self.twin(*args, **kwargs)

    @property
    def func(self) -> Any:
        """What a handler gets."""
        return self.told() if type(self.told) is FunctionType else self.told or self.function

    @property
    def of_property(self) -> bool:
        """Whether it is the getter or setter of a property."""
        return self.told is not None and type(self.told) is not FunctionType

    def written(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call as a handler gets them."""
        if self.layout == AS_WRITTEN:
            return args, kwargs
        if self.whole is None:
            self.whole = Layout(self.layout, inspect.signature(self.twin or self.function))
        return self.whole.of(args, kwargs)

    def ask(self) -> None:
        """Put the asking body in place."""
        f = self.function
        if self.asking is None:
            self.own = f.__code__
            self.twin = FunctionType(
                self.own, f.__globals__, f.__name__, f.__defaults__, f.__closure__
            )
            self.twin.__kwdefaults__ = f.__kwdefaults__
            self.asking = _asking(self)
            self.twin.__dict__.update(f.__dict__)
            if "__signature__" not in f.__dict__:  # the asking body has other parameters
                f.__signature__ = inspect.signature(f)  # type: ignore[attr-defined]
        f.__code__ = self.asking

    def rest(self) -> None:
        """Put the function's own body back."""
        self.function.__code__ = self.own


_TABLE: dict[FunctionType, Watched] = {}
_lock = RLock()


class _State:
    """What may be asked."""

    __slots__ = ("modes", "classes")

    def __init__(self) -> None:
        self.modes = 0  # how many function modes are on, in all threads
        self.classes = False  # whether the program has made a class of tensors that asks


_state = _State()


def watch(function: Any, told: Any = None, by_type: bool = False, layout: int = AS_WRITTEN) -> None:
    """Enter a public function. `told`: what handlers get in its place; a plain function: one that
    finds it. `by_type`: the function asks the classes of its arguments by itself. `layout`: how
    its calls are handed on, see `written`."""
    if type(function) is not FunctionType or function in _TABLE:
        return
    with _lock:
        found = _TABLE[function] = Watched(function, told, by_type, layout)
        if _asks(found):
            found.ask()


def watched(function: Any) -> bool:
    """Whether a function is one that asks."""
    return type(function) is FunctionType and function in _TABLE


def written(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call of a public function as a handler gets them."""
    found = _TABLE.get(function)
    return (args, kwargs) if found is None else found.written(args, kwargs)


def in_python(function: Any) -> bool:
    """Whether PyTorch has the function in Python."""
    found = _TABLE.get(function)
    return found is not None and found.layout != AS_WRITTEN


def name_of(function: Any) -> str:
    """The public name of a function as messages have it: "torch.nn.functional.pad"."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, property) and owner.fget is not None:
        return f"torch.Tensor.{owner.fget.__name__}.{function.__name__}"
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__qualname__", None) or str(function)
    space = module.removeprefix("torchlab").removeprefix("._core").removeprefix(".tensor")
    return f"{module}.{name}" if not module.startswith("torchlab") else f"torch{space}.{name}"


def code_of(function: Any) -> Any:
    """A function's own code, whichever it runs now."""
    found = _TABLE.get(function)
    return function.__code__ if found is None else found.own


def mode_on() -> None:
    """A function mode is entered."""
    with _lock:
        _state.modes += 1
        if _state.modes == 1:
            for w in [*_TABLE.values()]:
                w.ask()


def mode_off() -> None:
    """A function mode ends."""
    with _lock:
        _state.modes -= 1
        if not _state.modes:
            for w in [*_TABLE.values()]:
                if not _asks(w):
                    w.rest()


def class_made() -> None:
    """The program has made a class of tensors that overrides `__torch_function__`, or the like."""
    if not _state.classes:
        with _lock:
            _state.classes = True
            for w in [*_TABLE.values()]:
                if _asks(w):
                    w.ask()


def _asks(w: Watched) -> bool:
    return _state.modes > 0 or (_state.classes and not w.by_type)


PLAIN: set[type] = {int, float, bool, str, type(None)}
"""Types of arguments that never ask; Tensor and Parameter are added in `modes`."""


def _plain(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return PLAIN.issuperset(map(type, args)) and PLAIN.issuperset(map(type, kwargs.values()))


# The asking body: a call of plain arguments goes on at once while no mode is on. What it needs are
# constants, as it sees the globals of the function that it is put into; and it is one line, which
# stands for the function's first in tracebacks and debuggers.
_PUT = "def made({cells}):\n    def asking({head}): {body}; {cells}\n    return asking.__code__\n"
_MANY = (
    "return 'twin'(*args) if not 'state'.modes and not kwargs"
    " and 'types'.issuperset('map'('type', args)) else 'watched'(args, kwargs)"
)
_ONE = (
    "return 'twin'({name}) if not 'state'.modes and 'type'({name}) in 'types'"
    " else 'watched'(({name},), {{}})"
)


@functools.cache
def _template(head: str, body: str, cells: tuple[str, ...]) -> CodeType:
    """The code of an asking body with these free variables; words stand for its constants."""
    text = _PUT.format(head=head, body=body, cells=", ".join(cells) or "pass")
    scope: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # words are called
        exec(compile(text.replace("made(pass)", "made()"), "<asking>", "exec"), scope)
    code: CodeType = scope["made"](*cells)
    return code


def _asking(w: Watched) -> CodeType:
    """The asking body of a function."""
    own = w.own
    simple = own.co_argcount == 1 and not own.co_posonlyargcount and not own.co_kwonlyargcount
    cells = tuple(f"cell_{i}" for i in range(len(own.co_freevars)))
    if simple and not own.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        name = own.co_varnames[0]
        code = _template(name, _ONE.format(name=name), cells)
    else:
        code = _template("*args, **kwargs", _MANY, cells)
    meant = {
        "state": _state, "types": frozenset(PLAIN), "map": map, "type": type, "twin": w.twin,
        "watched": w,
    }  # fmt: skip
    return code.replace(
        co_consts=tuple(meant.get(c, c) if type(c) is str else c for c in code.co_consts),
        co_name=own.co_name,
        co_filename=own.co_filename,
        co_firstlineno=own.co_firstlineno,
    )


__all__ = [
    "OF_ANYTHING", "OPERATORS", "PLAIN", "UNASKED", "Watched", "answer", "class_made", "code_of",
    "in_python", "mode_off", "mode_on", "name_of", "watch", "watched", "written",
]  # fmt: skip
