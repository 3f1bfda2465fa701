"""`Dim` and `dynamic_shapes`: which sizes of the inputs may change, and within what bounds.

Source: https://docs.pytorch.org/docs/2.13/export.html#torch.export.Dim
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab._dynamo.exc import UserError, UserErrorType
from torchlab.fx.experimental import _expressions as ex
from torchlab.fx.experimental._expressions import Expr, Symbol
from torchlab.fx.experimental._intervals import INF
from torchlab.fx.experimental._shape_env import ShapeEnv
from torchlab.fx.experimental._symbolic_numbers import of_expr
from torchlab.fx.experimental.symbolic_shapes import ConstraintViolationError
from torchlab.utils import _pytree as pytree

_CASE = "dynamic-shapes-validation"


class _DimHint:
    """`Dim.AUTO`, `Dim.DYNAMIC` and `Dim.STATIC`; calling one gives it bounds."""

    def __init__(
        self, kind: str, min: int | None = None, max: int | None = None, name: str | None = None
    ) -> None:
        self.kind = kind
        self.name = name  # how the size is called in an ONNX model
        self.min = min
        self.max = max

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        if self.kind == "STATIC":
            raise TypeError("'Dim.STATIC' object is not callable: a static size has no bounds")
        for name, n in (("min", min), ("max", max)):
            if n is not None and n < 0:
                raise AssertionError(f"{name} must be non-negative, got {n}")
        if min is not None and max is not None and min > max:
            raise AssertionError(f"min must be <= max, got min={min}, max={max}")
        return _DimHint(self.kind, min, max)

    def __repr__(self) -> str:
        bounds = "".join(
            f", {name}={n}" for name, n in (("min", self.min), ("max", self.max)) if n is not None
        )
        return f"DimHint({self.kind}{bounds})"


class Dim:
    """A size that may change, by its name: `Dim("batch", min=1, max=64)`. Sizes that are to be
    equal are given the same Dim; `2 * d` and `d + 1` are sizes that follow from another."""

    AUTO = _DimHint("AUTO")
    DYNAMIC = _DimHint("DYNAMIC")
    STATIC = _DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        low = 0 if min is None else min
        high: Any = INF if max is None else max
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        if high < low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        self.__name__ = name
        self.min = low
        self.max = high

    @property
    def root(self) -> Dim:
        """The Dim that it is computed from: itself."""
        return self

    @property
    def factors(self) -> tuple[int, int]:
        """(a, b) of `a * root + b`."""
        return 1, 0

    def _derive(self, a: int, b: int, operation: str, other: Any, least: int) -> Dim:
        if type(other) is not int or (operation == "multiply" and other < least):
            wanted = "a positive integer" if operation == "multiply" else "an integer"
            raise NotImplementedError(
                f"Attempted to {operation} {self!r} with {getattr(other, '__name__', other)}, where"
                f" {wanted} was expected. (Only increasing linear operations with integer"
                " coefficients are supported.)"
            )
        return _DerivedDim(self.root, a, b)

    def __add__(self, other: Any) -> Dim:
        a, b = self.factors
        return self._derive(a, b + other if type(other) is int else b, "add", other, 0)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dim:
        a, b = self.factors
        return self._derive(a, b - other if type(other) is int else b, "subtract", other, 0)

    def __rsub__(self, other: Any) -> Dim:
        raise NotImplementedError(
            f"Attempted to negate {self.__name__}. (Only increasing linear operations with integer"
            " coefficients are supported.)"
        )

    def __mul__(self, other: Any) -> Dim:
        a, b = self.factors
        n = other if type(other) is int else 1
        return self._derive(a * n, b * n, "multiply", other, 1)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        high = "" if self.max == INF else f", max={self.max}"
        return f"Dim('{self.__name__}', min={self.min}{high})"

    __str__ = __repr__


class _DerivedDim(Dim):
    """`a * root + b`."""

    def __init__(self, root: Dim, a: int, b: int) -> None:
        text = root.__name__ if a == 1 else f"{a}*{root.__name__}"
        if b:
            text += f" {'+' if b > 0 else '-'} {abs(b)}"
        self.__name__ = text
        self._root = root
        self._factors = (a, b)
        low, high = (a * n + b for n in (root.min, root.max))
        if low < 0:
            raise AssertionError(
                f"Expected derived min value of {text} to be >= 0. Please specify an appropriate"
                f" min value for {root.__name__} (currently {root.min})."
            )
        self.min, self.max = low, high

    @property
    def root(self) -> Dim:
        """The Dim that it is computed from."""
        return self._root

    @property
    def factors(self) -> tuple[int, int]:
        """(a, b) of `a * root + b`."""
        return self._factors

    def __repr__(self) -> str:
        return self.__name__

    __str__ = __repr__


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """A Dim for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """`dynamic_shapes` by tensor: `shapes[x] = {0: Dim("batch")}`, then
    `export(model, args, dynamic_shapes=shapes)`."""

    def __init__(self) -> None:
        self._shapes: dict[int, Any] = {}

    def __setitem__(self, t: Any, shape: Any) -> None:
        if not isinstance(t, Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor type {type(t)}")
        before = self._shapes.setdefault(id(t), shape)
        if before != shape:
            raise AssertionError(f"Shapes assigned to tensor do not match: {before}, {shape}")

    def __getitem__(self, t: Any) -> Any:
        return self._shapes[id(t)]

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: Any, kwargs: Any = None) -> Any:
        """The specification by argument name."""
        seen: set[int] = set()

        def find(t: Any) -> Any:
            if id(t) in self._shapes:
                seen.add(id(t))
            return self._shapes.get(id(t))

        made = pytree.tree_map(find, combined(m, args, kwargs or {}))
        if self._shapes.keys() - seen:
            raise ValueError("Some tensors that were assigned shapes were not found in args")
        return made


def combined(mod: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by the names of the parameters."""
    forward = getattr(mod, "forward", mod)
    return dict(inspect.signature(forward).bind(*args, **kwargs).arguments)


# ---- specifications of tensors -------------------------------------------------------------------


def specifications(
    mod: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> list[tuple[str, str, Any]]:
    """(source, name, specification of its dims) of every leaf of `(args, kwargs)`, in order.

    The source is how messages name it (`L['x'][0]`), the name is a placeholder's (`x_0`).
    """
    by_name = combined(mod, args, kwargs)
    names = list(by_name)
    given: dict[str, Any]
    if dynamic_shapes is None:
        given = dict.fromkeys(names)
    elif isinstance(dynamic_shapes, dict):
        given = dynamic_shapes
        if set(given) != set(names):
            _refuse(
                "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg"
                f" names {names} of `inputs`, but here they are {list(given)}. Alternatively, you"
                " could also ignore arg names entirely and specify `dynamic_shapes` as a list/tuple"
                " matching `inputs`."
            )
    else:
        shapes = list(dynamic_shapes)
        if len(shapes) != len(names):
            _refuse(
                "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs`"
                f" has {len(names)} elements, but `dynamic_shapes` has {len(shapes)} elements"
            )
        given = dict(zip(names, shapes, strict=True))
    where = "dynamic_shapes" if not isinstance(dynamic_shapes, dict) else "dynamic_shapes"
    found: dict[str, list[tuple[str, str, Any]]] = {}
    for i, name in enumerate(names):
        at = f"[{i}]" if not isinstance(dynamic_shapes, dict) else f"['{name}']"
        found[name] = _walk(
            by_name[name], given[name], f"L['{name}']", name, f"{where}{at}", f"inputs{at}"
        )
    return _in_call_order(mod, found, by_name, kwargs)


def _in_call_order(
    mod: Any, found: dict[str, Any], by_name: dict[str, Any], kwargs: dict[str, Any]
) -> list[tuple[str, str, Any]]:
    """The leaves of positional arguments first, then of keywords as they are written."""
    others = next((n for n in by_name if _kind(mod, n) is inspect.Parameter.VAR_KEYWORD), None)
    leaves = [leaf for n, some in found.items() if n not in kwargs and n != others for leaf in some]
    for k in kwargs:
        if k in found:
            leaves += found[k]
        elif others is not None:
            head = f"L['{others}'][{k!r}]"
            leaves += [
                (source, name.removeprefix(f"{others}_"), spec)
                for source, name, spec in found[others]
                if source == head or source.startswith(f"{head}[")
            ]
    return leaves


def _kind(mod: Any, name: str) -> Any:
    return inspect.signature(getattr(mod, "forward", mod)).parameters[name].kind


def _refuse(message: str) -> Any:
    raise UserError(UserErrorType.INVALID_INPUT, message, case_name=_CASE)


def _walk(
    value: Any, spec: Any, source: str, name: str, at: str, of: str
) -> list[tuple[str, str, Any]]:
    """The leaves of a value with their specifications."""
    if isinstance(value, Tensor):
        return [(source, name, _checked(value, spec, at))]
    children, context = _children(value)
    if children is None:
        if spec is not None and not (isinstance(spec, _DimHint) and type(value) is int):
            _refuse(
                f"Cannot associate shape {spec} specified at `{at}` to non-tensor type"
                f" {type(value)} at `{of}` (expected None)"
            )
        return [(source, name, spec)]
    specs: list[Any]
    if spec is None:
        specs = [None] * len(children)
    elif isinstance(value, dict):
        if not isinstance(spec, dict) or set(spec) != set(value):
            _refuse(
                f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `{of}`"
                f" has keys {list(value)}, but `{at}` has {_shown(spec)}"
            )
        specs = [spec[k] for k in context]
    else:
        specs = list(spec.values()) if isinstance(spec, dict) else list(spec)
        if len(specs) != len(children):
            _refuse(
                f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `{of}`"
                f" has {len(children)} elements, but `{at}` has {len(specs)} elements"
            )
    found = []
    for key, child, part in zip(context, children, specs, strict=True):
        shown = f"[{key!r}]"
        found += _walk(
            child, part, source + shown, f"{name}_{key}", at + shown, of + shown
        )  # fmt: skip
    return found


def _shown(spec: Any) -> str:
    return f"keys {list(spec)}" if isinstance(spec, dict) else f"{spec!r}"


def _children(value: Any) -> tuple[list[Any] | None, list[Any]]:
    """The parts of a container and their keys; (None, []) of a leaf."""
    if isinstance(value, dict):
        return list(value.values()), list(value)
    if isinstance(value, (list, tuple)):
        return list(value), list(range(len(value)))
    leaves, spec = pytree.tree_flatten(value)
    if spec.is_leaf():
        return None, []
    return leaves, list(range(len(leaves)))


def _checked(t: Tensor, spec: Any, at: str) -> dict[int, Any]:
    """The specification of a tensor as dim → Dim, hint, int or None."""
    if spec is None:
        return {}
    if isinstance(spec, dict):
        found = dict(spec)
        for i in found:
            if type(i) is not int or not 0 <= i < t.dim():
                _refuse(
                    f"Expected the dims of {spec} specified at `{at}` to be those of a tensor of"
                    f" shape {t.shape}, 0 to {t.dim() - 1}, but got {i!r}"
                )
    elif isinstance(spec, (list, tuple)):
        if len(spec) != t.dim():
            _refuse(
                f"Expected dynamic shape spec {spec} specified at `{at}` to have the same length as"
                f" the actual tensor shape {t.shape} (expected {t.dim()}, but got {len(spec)}"
                " instead)"
            )
        found = dict(enumerate(spec))
    else:
        _refuse(
            f"Unexpected dynamic shape spec {spec!r} specified at `{at}` (expected a dict, a list"
            " or tuple of one entry per dim, or None)"
        )
    for i, d in found.items():
        if d is not None and type(d) is not int and not isinstance(d, (Dim, _DimHint)):
            _refuse(
                f"Unexpected dimension mapped to index {i} in input tensor shape {spec} specified"
                f" at `{at}` (expected None, an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC, "
                f" but got {d!r} instead)"
            )
    return found


# ---- symbols -------------------------------------------------------------------------------------


class Symbols:
    """The symbols of an export: one for each Dim by its name, one for each size with a hint.

    declared: symbol → (its name in messages, the Dim or hint). sources: symbol → where its sizes
    are. derived: expressions of Dims that follow from others.
    """

    def __init__(self, env: ShapeEnv) -> None:
        self.env = env
        self.declared: dict[Symbol, tuple[str, Any]] = {}
        self.sources: dict[Symbol, list[str]] = {}
        self.derived: dict[Expr, Dim] = {}
        self.roots: dict[str, tuple[Dim, Symbol, str]] = {}

    def sizes_of(self, t: Tensor, spec: dict[int, Any], source: str) -> list[Any]:
        """The shape of a tensor in symbols."""
        return [self._size(n, spec.get(i), f"{source}.size()[{i}]") for i, n in enumerate(t.shape)]

    def name_of(self, symbol: Symbol) -> str:
        """The name of a symbol for messages."""
        if symbol in self.env.divided:
            return "_" + self.name_of(self.env.divided[symbol][0])
        return self.declared[symbol][0]

    def _size(self, n: int, d: Any, source: str) -> Any:
        if d is None or (isinstance(d, _DimHint) and d.kind == "STATIC"):
            return n
        if type(d) is int:
            if d != n:
                raise ConstraintViolationError(
                    f"Static shape constraint of {d} does not match input size of {n}, for {source}"
                )
            return n
        if isinstance(d, _DimHint):
            return self._hinted(n, d, source)
        return self._named(n, d, source)

    def _hinted(self, n: int, d: _DimHint, source: str) -> Any:
        if n in (0, 1):
            if d.kind == "AUTO":
                return n
            raise UserError(UserErrorType.CONSTRAINT_VIOLATION, _constant(source, source, n, None))
        low, high = d.min or 0, INF if d.max is None else d.max
        _check_in(n, low, high)
        symbol = self.env.create_symbol(n, source, low, high)
        if d.kind == "AUTO":
            self.env.soft.add(symbol)
        self.declared[symbol] = (source, d)
        self.sources[symbol] = [source]
        return of_expr(ex.of(symbol), self.env)

    def _named(self, n: int, d: Dim, source: str) -> Any:
        root = d.root
        a, b = d.factors
        if (n - b) % a or n < b:
            raise UserError(
                UserErrorType.CONSTRAINT_VIOLATION,
                f"Expected shape[{source.rpartition('[')[2][:-1]}] = {n} of input Tensor to be of"
                f" the form {d.__name__}, where {root.__name__} is an integer",
            )
        value = (n - b) // a
        name = root.__name__
        known = self.roots.get(name)
        if known is None:
            _check_in(value, root.min, root.max)
            if value in (0, 1) and a == 1 and b == 0:
                raise UserError(
                    UserErrorType.CONSTRAINT_VIOLATION, _constant(name, source, value, name)
                )
            symbol = self.env.create_symbol(value, source, root.min, root.max)
            if value < 2:  # the root of a derived size may be 1
                self.env.var_to_range[symbol] = (root.min, root.max)
            self.roots[name] = known = (root, symbol, source)
            self.declared[symbol] = (name, root)
            self.sources[symbol] = []
        before, symbol, first = known
        if (before.min, before.max) != (root.min, root.max):
            raise UserError(
                UserErrorType.INVALID_INPUT,
                f"Found different definitions {before!r} and {root!r} for the same symbolic"
                f" dimension {name}!",
            )
        if self.env.var_to_val[symbol] != value:
            shown = first if a == 1 and b == 0 else f"{name} of {first}"
            raise UserError(
                UserErrorType.CONSTRAINT_VIOLATION,
                f"{source} = {n} is not equal to {shown} = {a * self.env.var_to_val[symbol] + b}",
            )
        self.sources[symbol].append(source)
        e = ex.of(symbol).times(a) + ex.number(b)
        if (a, b) != (1, 0):
            self.derived[e] = d
        return of_expr(e, self.env)


def _check_in(n: int, low: ex.Number, high: ex.Number) -> None:
    if not low <= n <= high:
        shown = "int_oo" if high == INF else high
        raise ConstraintViolationError(f"{n} not in range [{low}, {shown}]")


def _constant(name: str, source: str, n: int, suggested: str | None) -> str:
    """The message about a size that varies by its declaration and is one number in fact."""
    text = (
        f'Constraints violated ({name})! For more information, run with TORCH_LOGS="+dynamic".\n'
        f"  - You marked {name} as dynamic but your code specialized it to be a constant ({n})."
        f" The example's {source} is {n}: sizes 0 and 1 are special to broadcasting; give an"
        " example of 2 or more"
    )
    return text + (f"\nSuggested fixes:\n  {suggested} = {n}" if suggested else "")


Constraint = Callable[..., Any]

__all__ = ["Dim", "ShapesCollection", "Symbols", "combined", "dims", "specifications"]
