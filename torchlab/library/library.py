"""`Library`, `define` and `impl`: operators by schema, with kernels that come one by one.

    lib = torchlab.library.Library("mylib", "DEF")
    lib.define("scale(Tensor x, float by) -> Tensor")
    lib.impl("scale", lambda x, by: x * by, "CompositeExplicitAutograd")
    torchlab.ops.mylib.scale(x, 2.0)

Source: https://docs.pytorch.org/docs/2.13/library.html#low-level-apis
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from torchlab._core.dispatch.op import Op
from torchlab._core.dispatch.overload import OpOverload
from torchlab._ops import CUSTOM, OpOverloadPacket
from torchlab.library.custom_op import CustomOpDef, definition_of, undefine

_RESERVED = ("prim", "prims", "aten", "profiler")
_DEVICES = {"CPU": "cpu", "CUDA": "cuda", "PrivateUse1": "sim", "SIM": "sim"}
_KEYS = (*_DEVICES, "Meta", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
_DEFINED: dict[str, Library] = {}  # namespace → its library of kind DEF


class Library:
    """A handle on a namespace. kind: "DEF" (the namespace's one library), "FRAGMENT" (more
    operators for it), "IMPL" (kernels only). ValueError for other kinds and reserved namespaces,
    RuntimeError for a second DEF."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError("Unsupported kind: ", kind)
        if ns in _RESERVED and (kind in ("DEF", "FRAGMENT") or ns != "aten"):
            raise ValueError(
                ns,
                " is a reserved namespace. Please try creating a library with another name.",
            )
        if ns == "aten":
            raise NotImplementedError(
                "Library('aten', 'IMPL'): torchlab's own operators keep their kernels; take their"
                " calls over with torch.utils._python_dispatch.TorchDispatchMode"
            )
        if kind == "DEF":
            if ns in _DEFINED:
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns};"
                    " please put all of your definitions in a single TORCH_LIBRARY block. If you"
                    " were trying to specify implementations, consider using 'IMPL', or 'FRAGMENT'"
                    " for more operators."
                )
            _DEFINED[ns] = self
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._made: list[CustomOpDef] = []
        self._kernels: set[tuple[str, str]] = set()

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Make an operator of the schema "name(Tensor x) -> Tensor"; gives its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError(
                f"{self}.define: a library of kind IMPL defines nothing; use DEF or FRAGMENT"
            )
        head, paren, rest = schema.partition("(")
        name, _, overload = head.strip().partition(".")
        if not paren or not name.isidentifier():
            raise RuntimeError(f"define: expected 'name(...) -> ...', but got '{schema}'")
        which = overload or "default"
        if which in CUSTOM.get(self.ns, {}).get(name, {}):
            raise RuntimeError(
                f"Tried to register an operator ({self.ns}::{schema}) with the same name and"
                " overload name multiple times. Each overload's schema should only be registered"
                " with a single call to define()."
            )
        self._made.append(CustomOpDef(self.ns, name, "(" + rest, None, overload=which))
        return f"{name}.{overload}" if overload else name

    def impl(
        self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *,
        with_keyset: bool = False, allow_override: bool = True,
    ) -> None:  # fmt: skip
        """Register the kernel `fn` of an operator of this namespace.

        dispatch_key: "CPU", "CUDA", "PrivateUse1" (torchlab's `sim`), "Meta" (the fake rule),
        "CompositeExplicitAutograd" (all devices), or "CompositeImplicitAutograd" (all devices, and
        the gradient follows from what it calls).
        """
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if with_keyset or key not in _KEYS:
            what = "with_keyset=True" if with_keyset else f"dispatch key '{key}'"
            raise NotImplementedError(
                f"{self}.impl: {what} is not there; there are {list(_KEYS)}. For gradients use"
                " torchlab.library.register_autograd."
            )
        name = _local_name(op_name, self.ns)
        if (name, key) in self._kernels and not allow_override:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python"
                f" overriding {name}'s behavior for {key} dispatch key and {self.ns} namespace."
            )
        d = definition_of(f"{self.ns}::{name}")
        self._kernels.add((name, key))
        if key == "Meta":
            d.register_fake(fn)
        elif key in _DEVICES:
            d.register_kernel(_DEVICES[key], fn)
        else:
            d.register_kernel(None, fn)
            d.implicit = key == "CompositeImplicitAutograd"

    def _destroy(self) -> None:
        """Take back what this library defined."""
        for d in self._made:
            undefine(d)
        self._made.clear()
        self._kernels.clear()
        if _DEFINED.get(self.ns) is self:
            del _DEFINED[self.ns]


def _local_name(op_name: Any, ns: str) -> str:
    """The name without its namespace, from a name, an overload or a packet."""
    if isinstance(op_name, OpOverload):
        op_name = op_name.name()
    elif isinstance(op_name, OpOverloadPacket):
        op_name = op_name._qualified_op_name
    elif isinstance(op_name, Op):
        op_name = f"{op_name.namespace}::{op_name.name}.{op_name.overload}"
    elif not isinstance(op_name, str):
        raise RuntimeError(
            "impl should be passed either a name or an OpOverload object as the first argument,"
            f" not {type(op_name).__name__}"
        )
    given, sep, name = op_name.rpartition("::")
    if sep and given != ns:
        raise RuntimeError(f"impl: the operator '{op_name}' is not in the namespace '{ns}'")
    return name.removesuffix(".default")


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A Library for the time of a `with`; what it defined is gone afterwards."""
    lib = Library(*args, **kwargs)
    try:
        yield lib
    finally:
        lib._destroy()


_FRAGMENTS: dict[str, Library] = {}


def _fragment(ns: str) -> Library:
    found = _FRAGMENTS.get(ns)
    if found is None:
        found = _FRAGMENTS[ns] = Library(ns, "FRAGMENT")
    return found


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Make an operator: `define("mylib::scale", "(Tensor x, float by) -> Tensor")`."""
    if not isinstance(qualname, str):
        raise ValueError(
            f"define(qualname, schema): expected qualname to be instance of str, got"
            f" {type(qualname)}"
        )
    ns, sep, name = qualname.partition("::")
    if not sep:
        raise ValueError(f"define: expected 'namespace::name', but got '{qualname}'")
    if not schema.lstrip().startswith("("):
        raise ValueError(
            f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) ->'
            f' Tensor" but got "{schema}"'
        )
    (lib or _fragment(ns)).define(name + schema.lstrip(), tags=tags)


def _impl_of(library: Library, name: Any, dispatch_key: str) -> Callable[[Any], Any]:
    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        library.impl(name, fn, dispatch_key)
        return fn

    return register


def impl(
    qualname: Any, types: str | Sequence[str], func: Callable[..., Any] | None = None, *,
    lib: Library | None = None,
) -> Any:  # fmt: skip
    """Register a kernel for device types ("cpu", "cuda", "sim", or "default": all). A decorator
    without `func`. The older `impl(lib, name, dispatch_key)` is `lib.impl` as a decorator."""
    if isinstance(qualname, Library):
        return _impl_of(qualname, types, func if isinstance(func, str) else "")

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        d = definition_of(qualname)
        for t in (types,) if isinstance(types, str) else types:
            d.register_kernel(None if t == "default" else t, fn)
            if t == "default":
                d.implicit = False
        return fn

    return register if func is None else register(func)


def fallthrough_kernel() -> NoReturn:
    """A kernel that is none: PyTorch passes such a key over. It must never be called."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


__all__ = ["Library", "_scoped_library", "define", "fallthrough_kernel", "impl"]
