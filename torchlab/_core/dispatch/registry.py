"""All operators by name, and `aten`, through which operators call each other."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from torchlab._core.dispatch import watching
from torchlab._core.dispatch.written import AS_WRITTEN, layout

OPS: dict[str, dict[str, Any]] = {}  # "add" → {"Tensor": Op}
FACES: dict[str, Any] = {}  # the public Python call of a name: an Op or a Face
SPACE_FACES: dict[
    tuple[str, str], Any
] = {}  # faces of other name spaces than torch: ("fft", "fft")
WEAK: set[str] = set()  # names whose face in FACES belongs to another name space than torch
METHODS: dict[str, tuple[Any, str]] = {}  # name of a tensor's method → (Op or Face, form)
FUNCTIONS: dict[str, set[str]] = {}  # namespace ("torch", "nn.functional", "linalg", …) → names
# Writes in place that PyTorch has as methods only: there is `x.add_(y)`, but no `torch.add_`.
METHOD_ONLY = frozenset("""
    absolute_ add_ addbmm_ addcdiv_ addcmul_ addmm_ addr_ arctan2_ atan2_ baddbmm_ bitwise_and_
    bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ copysign_
    cumprod_ cumsum_ digamma_ div_ divide_ eq_ erfinv_ floor_divide_ fmod_ ge_ greater_
    greater_equal_ gt_ hypot_ igamma_ igammac_ index_add_ index_copy_ index_reduce_ le_ lerp_ less_
    less_equal_ lgamma_ logical_and_ logical_not_ logical_or_ logical_xor_ lt_ masked_fill_
    masked_scatter_ mul_ multiply_ ne_ nextafter_ not_equal_ pow_ put_ remainder_ renorm_
    scatter_add_ scatter_reduce_ sgn_ sign_ sub_ subtract_ tril_ triu_ true_divide_
    """.split())  # fmt: skip


def register(op: Any) -> None:
    """Enter an operator; its name becomes a face unless a Face speaks for it."""
    overloads = OPS.setdefault(op.name, {})
    if op.overload in overloads:
        raise RuntimeError(f"{op.qualname} is declared twice")
    overloads[op.overload] = op
    if op.public and "torch" not in op.spaces and not op.method:
        for space in op.spaces:
            SPACE_FACES[space, op.name] = op
    elif op.public and op.name in WEAK:
        FACES[op.name] = op
        WEAK.discard(op.name)
    if op.public and op.name not in FACES:
        FACES[op.name] = op


def alias(new: str, old: str) -> None:
    """Let `new` be another public name of `old`, in-place form included."""
    FACES[new] = FACES[old]
    for names in FUNCTIONS.values():
        names.update({new + x for x in ("", "_") if old + x in names} - METHOD_ONLY)
    for suffix in ("", "_"):
        if old + suffix in METHODS:
            METHODS[new + suffix] = METHODS[old + suffix]
            if old + suffix in FACES:
                FACES[new + suffix] = FACES[old + suffix]


def alias_in(space: str, new: str, old: str) -> None:
    """Let `new` be a name of `old` in this name space alone: `special.psi` of `digamma`."""
    FUNCTIONS.setdefault(space, set()).add(new)
    if new != old:
        FACES[f"{space.replace('.', '_')}_{new}"] = FACES[old]


class _Aten:
    """`aten.add(x, y)`: the generated call of that name. Resolved at call time, so that operator
    families need not import each other."""

    def __getattr__(self, name: str) -> Any:
        face = FACES.get(name)
        if face is None and name.endswith("_") and name in METHODS:
            owner, form = METHODS[name]
            call = self.__dict__[name] = owner.form(form)
            return call
        if face is None:
            overloads = OPS.get(name)
            if not overloads:
                raise AttributeError(f"there is no operator '{name}'")
            face = next(iter(overloads.values()))
        call = face.function
        self.__dict__[name] = call
        return call


aten = _Aten()
vjp_helpers: dict[str, Callable[..., Any]] = {}  # names that vjp formulas may use beside operators


def vjp_helper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Let the vjp formulas of all families use `fn` by its name, which they share."""
    other = vjp_helpers.setdefault(fn.__name__, fn)
    if other is not fn:
        raise RuntimeError(
            f"two helpers of formulas are called '{fn.__name__}': in {other.__module__} and"
            f" {fn.__module__}"
        )
    return fn


class LazyMethod:
    """Stands in a class for a method until it is first looked up; then it is generated."""

    __slots__ = ("name", "owner", "form")

    def __init__(self, name: str, owner: Any, form: str) -> None:
        self.name = name
        self.owner = owner
        self.form = form

    def __get__(self, instance: Any, cls: type) -> Any:
        fn = self.owner.form(self.form)
        for c in cls.__mro__:
            if c.__dict__.get(self.name) is self:
                setattr(c, self.name, fn)
                _watch_method(c, self.name, fn)
                break
        return fn if instance is None else fn.__get__(instance, cls)


def _watch_method(cls: type, name: str, fn: Any) -> None:
    """Note [Functions that ask]: operators ask classes by themselves, about the method."""
    other = watching.OPERATORS.get(name)
    op = getattr(fn, "op", None)
    by_type = op is not None and not op.instead and (name[:2] != "__" or other is not None)
    by_type = by_type or name in watching.OF_ANYTHING
    told = None if other is None else lambda: getattr(cls, other)
    watching.watch(fn, told, by_type, layout("Tensor", name))


def install_methods(cls: type) -> None:
    """Give `cls` all declared methods that it has not got by hand."""
    for name, (owner, form) in METHODS.items():
        if name not in cls.__dict__ or name == "__abs__":
            setattr(cls, name, LazyMethod(name, owner, form))


def function(name: str, space: str = "torch") -> Any:
    """The public function `name` of a name space, generated if need be; AttributeError if none."""
    found = _found(name, space)
    if isinstance(found, FunctionType) and "home" not in found.__dict__:
        found.home = space  # where pickles and other people's messages find it  # type: ignore
        found.__module__ = "torchlab" if space == "torch" else f"torchlab.{space}"
        found.__qualname__ = name
    if name not in watching.UNASKED:  # Note [Functions that ask]
        op, how = getattr(found, "op", None), layout(space, name)
        by_type = op is not None and found is op.function and how == AS_WRITTEN
        by_type = by_type or name in watching.OF_ANYTHING
        watching.watch(found, by_type=by_type, layout=how)
    return found


def is_generated(fn: Any) -> bool:
    """Whether a function is one of torchlab's generated calls."""
    return isinstance(fn, FunctionType) and ("home" in fn.__dict__ or fn.__module__ == "torchlab")


def _found(name: str, space: str) -> Any:
    if name not in FUNCTIONS.get(space, ()):
        raise AttributeError(name)
    own = f"{space.replace('.', '_')}_{name}"  # where two spaces mean different things: linalg.norm
    if own in FACES:
        return getattr(aten, own)
    face = SPACE_FACES.get((space, name))  # torch may have another of that name
    if face is None or FACES.get(name) is face:
        call = getattr(aten, name)
        if name in FACES or not name.endswith("_"):
            return _named(call, name) if space == "torch" else call
        return _with_input(call)
    return face.function


def _named(call: Any, name: str) -> Any:
    """A function of its own for an alias, as PyTorch has them: `torch.arctan` is called so, in the
    graphs of `torch.fx` too."""
    if not isinstance(call, FunctionType) or call.__name__ == name:
        return call
    if name not in _ALIASES:
        made = FunctionType(
            watching.code_of(call), call.__globals__, name, call.__defaults__, call.__closure__
        )
        made.__kwdefaults__ = call.__kwdefaults__
        made.__doc__, made.__module__ = call.__doc__, call.__module__
        made.__dict__.update(call.__dict__)
        made.__qualname__ = name
        _ALIASES[name] = made
    return _ALIASES[name]


_ALIASES: dict[str, Any] = {}


def _with_input(method: Any) -> Any:
    """The in-place method as a function, whose first parameter PyTorch calls `input`."""
    code = watching.code_of(method)
    if code.co_varnames[:1] != ("self",):
        return method
    renamed = code.replace(co_varnames=("input", *code.co_varnames[1:]))
    function = FunctionType(
        renamed, method.__globals__, code.co_name, method.__defaults__, method.__closure__
    )
    function.__kwdefaults__ = method.__kwdefaults__
    function.__doc__, function.__module__ = method.__doc__, method.__module__
    return function
