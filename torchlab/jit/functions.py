"""Scripted functions.

A script is checked when it is made: its source keeps to the language of `frontend`, every name in
it is known, and so for every Python function that it calls. Then it runs as the Python function it
is, so that it computes what Python computes, with the values that its global names had when it was
made. (PyTorch compiles to a language of its own, where `x ** 2` of an int is a float, and which it
has deprecated.) Arguments and results are checked against the annotations; a parameter without one
is a tensor.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.jit.script.html
"""

from __future__ import annotations

import ast
import functools
import inspect
import types
import typing
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.jit import _types
from torchlab.jit._overloads import declared
from torchlab.jit._state import STATE, mark_of, outside
from torchlab.jit.frontend import Source, check, names_of, value_of

_PACKAGE = __name__.partition(".")[0]


class Error(Exception):
    """What a script raised by `raise` or `assert`, with the place."""


class ScriptFunction:
    """A function as a script: call it as the function."""

    name: str
    qualified_name: str

    def __init__(self, fn: Any, known: dict[Any, ScriptFunction], owner: str = "") -> None:
        """known: the scripts that are being made; functions may call each other. owner: of a
        method, the name of its class."""
        known[fn] = self
        self._owner = owner
        source = Source(fn)
        check(source)
        self.name = fn.__name__
        self.qualified_name = f"__torch__.{fn.__qualname__.replace('.<locals>', '')}"
        self._source = source
        self._body = _bound_to_its_names(fn, source, known)
        self._signature = inspect.signature(fn)
        self._types = _types_of(fn, self._signature)
        functools.update_wrapper(self, fn)
        self._raising = [
            (source.first + n.lineno - 1, source.first + (n.end_lineno or n.lineno) - 1, n)
            for n in ast.walk(source.tree)
            if isinstance(n, (ast.Raise, ast.Assert))
        ]

    @property
    def schema(self) -> str:
        """The declaration: parameters with their types and defaults, and the type of the result."""
        shown = []
        for i, p in enumerate(self._signature.parameters.values()):
            default = "" if p.default is p.empty else f"={p.default}"
            t = _types.text(self._types.get(p.name, Tensor))
            t = f"__torch__.{self._owner}" if self._owner and i == 0 else t
            shown.append(f"{t} {p.name}{default}")
        return (
            f"{self.name}({', '.join(shown)}) -> {_types.text(self._types.get('return', Tensor))}"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = STATE.recorder
        if recorder is not None and not recorder.inside:  # a trace notes the call, not the body
            return recorder.record(self._call, args, kwargs, "", self)
        return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        given = self._bind(args, kwargs)
        STATE.scripts += 1
        try:
            result = self._body(**given)
        except Exception as e:
            self._explain(e)
            raise
        finally:
            STATE.scripts -= 1
        if "return" not in self._types:
            return result
        try:
            return _types.cast(result, self._types["return"])
        except _types.Mismatch:
            raise RuntimeError(
                f"{self.name}() was declared to return '{_types.text(self._types['return'])}' but"
                f" returned a value of type '{_types.told(result)}'. Declaration: {self.schema}"
            ) from None

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        parameters = self._signature.parameters
        n = len(args) + len(kwargs)
        if n > len(parameters):
            raise RuntimeError(
                f"{self.name}() expected at most {len(parameters)} argument(s) but received {n}"
                f" argument(s). Declaration: {self.schema}"
            )
        given = dict(zip(parameters, args, strict=False))
        for key, value in kwargs.items():
            if key not in parameters or key in given:
                fault = "Unknown keyword argument" if key not in parameters else "Two values for"
                raise RuntimeError(
                    f"{fault} '{key}' for operator '{self.name}'. Schema: {self.schema}"
                )
            given[key] = value
        for i, (key, p) in enumerate(parameters.items()):
            if key not in given:
                if p.default is p.empty:
                    raise RuntimeError(
                        f"{self.name}() is missing value for argument '{key}'. Declaration:"
                        f" {self.schema}"
                    )
                continue
            if i == 0 and self._owner:
                continue
            t = self._types.get(key, Tensor)
            try:
                given[key] = _types.cast(given[key], t)
            except _types.Mismatch:
                raise RuntimeError(self._mismatch(key, i, t, given[key])) from None
        return given

    def _mismatch(self, key: str, position: int, t: Any, value: Any) -> str:
        inferred = key not in self._types
        shown = "Tensor (inferred)" if inferred else _types.text(t)
        lines = [
            f"{self.name}() Expected a value of type '{shown}' for argument '{key}' but instead"
            f" found type '{_types.told(value)}'."
        ]
        if inferred:
            lines.append(
                f"Inferred '{key}' to be of type 'Tensor' because it was not annotated with an"
                " explicit type."
            )
        lines += [f"Position: {position}", f"Value: {value!r}", f"Declaration: {self.schema}"]
        return "\n".join(lines)

    def _explain(self, e: Exception) -> None:
        """Raise `Error` for what this script itself raises."""
        at = e.__traceback__
        last = None
        while at is not None:
            last, at = at, at.tb_next
        if last is None or last.tb_frame.f_code is not self._body.__code__:
            return
        for first, end, node in self._raising:
            if first <= last.tb_lineno <= end:
                kind = "RuntimeError: AssertionError" if type(e) is AssertionError else _name(e)
                raise Error(
                    "The following operation failed in the TorchScript interpreter.\nTraceback of"
                    f" TorchScript (most recent call last):\n{self._source.place(node)}{kind}: {e}"
                ) from e

    def __repr__(self) -> str:
        return f"<torch.jit.ScriptFunction {self.schema}>"


def _name(e: Exception) -> str:
    return f"{type(e).__module__}.{type(e).__qualname__}"


def _types_of(fn: Any, signature: inspect.Signature) -> dict[str, Any]:
    """The annotations as types."""
    try:
        forms = [typing.get_type_hints(f) for f in declared(fn)]
        found = typing.get_type_hints(fn)
    except NameError as e:
        raise RuntimeError(f"Unknown type name '{e.name}' in the annotations of {fn!r}") from e
    if forms:  # the body takes what any of them takes
        union: Any = typing.Union
        for name in (*signature.parameters, "return"):
            found[name] = union[tuple(form.get(name, Tensor) for form in forms)]
    return {k: v for k, v in found.items() if k in signature.parameters or k == "return"}


def _bound_to_its_names(fn: Any, source: Source, known: dict[Any, ScriptFunction]) -> Any:
    """The function with what its names stand for now; the Python functions among it as scripts."""
    # Also names that are not in the source, of those who rewrite code (as pytest does asserts).
    wanted = ("__builtins__", "__name__", *_global_names(fn.__code__))
    names = {n: fn.__globals__[n] for n in wanted if n in fn.__globals__}
    for name, attributes, node in names_of(source):
        value = value_of(fn, name, source, node)
        names[name] = scripted(value, known)
        for attribute in attributes:  # `helpers.f(x)`: the same is asked of it
            if not isinstance(value, types.ModuleType):
                break
            if not hasattr(value, attribute):
                raise RuntimeError(
                    f"\nmodule '{value.__name__}' has no attribute '{attribute}':\n"
                    + source.place(node)
                )
            value = getattr(value, attribute)
            scripted(value, known)
    closure = fn.__closure__
    if closure:
        closure = tuple(
            types.CellType(names[n]) if n in names else cell
            for n, cell in zip(fn.__code__.co_freevars, closure, strict=True)
        )
    body = types.FunctionType(fn.__code__, names, fn.__name__, fn.__defaults__, closure)
    body.__kwdefaults__ = fn.__kwdefaults__
    return body


def _global_names(code: types.CodeType) -> list[str]:
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]  # comprehensions
    return [*code.co_names, *(n for c in inner for n in _global_names(c))]


def scripted(value: Any, known: dict[Any, ScriptFunction]) -> Any:
    """What a script calls by a name: Python functions as scripts; all else, and what belongs to
    torchlab or is marked, as it is."""
    if not isinstance(value, types.FunctionType):
        return value
    mark = mark_of(value)
    if mark == "unused":
        return _never(value)
    if mark == "ignored":
        return outside(value)
    module = value.__module__ or ""
    if module.partition(".")[0] in (_PACKAGE, "torch", "math", "typing") or value in known:
        return known.get(value, value)
    return ScriptFunction(value, known)


def _never(fn: Any) -> Any:
    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        raise Error(
            f"{fn.__qualname__}: RuntimeError: This Python function is annotated to be ignored and"
            " cannot be run"
        )

    return call


__all__ = ["Error", "ScriptFunction", "scripted"]
