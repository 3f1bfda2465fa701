"""Attributes of tensor subclasses that override `__torch_function__`: reading one asks the class.

In PyTorch every method and property of a tensor asks (`x.shape` calls `__torch_function__` with
`torch.Tensor.shape.__get__`). So the classes that want to be asked get attributes of their own when
they are made: one small descriptor for each that Tensor has. Under `DisableTorchFunctionSubclass`,
and so in `super().__torch_function__`, they lead straight to Tensor's. Tensor's own attributes, and
all public functions, ask while somebody may answer: Note [Functions that ask] in watching.
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch import factories, modes, python_key, watching
from torchlab._core.dispatch.written import layout
from torchlab._core.tape import TLS
from torchlab._core.tensor import Parameter, Tensor

# Attributes that never ask: construction, the protocols themselves, what objects are made of.
_SILENT = frozenset(
    (
        "__class__", "__dict__", "__weakref__", "__slots__", "__module__", "__doc__", "__new__",
        "__init__", "__init_subclass__", "__torch_function__", "__torch_dispatch__", "__hash__",
        "__array_priority__", "__repr__", "__str__", "__annotations__", "__getattribute__",
        "__class_getitem__", "__static_attributes__", "__firstlineno__", "as_subclass",
        "_make_subclass", "_make_wrapper_subclass", "__iter__",
    )
)  # fmt: skip
_PRIVATE = frozenset(("_version", "_base", "_is_view", "_cdata"))
_ROOT = __name__.partition(".")[0]


class Asked:
    """Stands in a subclass for Tensor's attribute of that name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, cls: type) -> Any:
        if instance is None:
            return getattr(Tensor, self.name)
        attribute = Tensor.__dict__[self.name]
        if TLS.subclasses_off:
            if self.name in _MAKERS and python_key.dispatching(instance):
                return factories.Maker(self.name).__get__(instance, cls)
            return attribute.__get__(instance, cls)
        if isinstance(attribute, property):
            return modes.ask_functions(attribute.__get__, (instance,), (instance,), {})
        return Bound(instance, self.name)

    def __set__(self, instance: Any, value: Any) -> None:
        attribute = Tensor.__dict__[self.name]
        if not isinstance(attribute, property):
            instance.__dict__[self.name] = value
        elif TLS.subclasses_off:
            attribute.__set__(instance, value)
        else:
            modes.ask_functions(attribute.__set__, (instance,), (instance, value), {})

    def __delete__(self, instance: Any) -> None:
        attribute = Tensor.__dict__[self.name]
        if isinstance(attribute, property):
            attribute.__delete__(instance)
        else:
            del instance.__dict__[self.name]


class Bound:
    """A method of an instance: calling it asks the classes of the tensors given."""

    __slots__ = ("__self__", "name")

    def __init__(self, instance: Any, name: str) -> None:
        self.__self__ = instance
        self.name = name

    @property
    def __func__(self) -> Any:
        return getattr(Tensor, watching.OPERATORS.get(self.name, self.name))

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        every, func = (self.__self__, *args), self.__func__
        relevant = (*every, *kwargs.values())
        return modes.ask_functions(func, relevant, *watching.written(func, every, kwargs))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Bound) and other.__self__ is self.__self__ and other.name == self.name
        )

    def __hash__(self) -> int:
        return hash((id(self.__self__), self.name))


def of_parameters() -> None:
    """Results of operators on subclasses of Parameter are plain tensors, as PyTorch's."""
    Parameter.__torch_function__ = staticmethod(modes.disabled_function)  # type: ignore[attr-defined]


def watch_class() -> None:
    """Let the attributes of Tensor that are written out by hand ask (Note [Functions that ask] in
    watching)."""
    for name, attribute in list(Tensor.__dict__.items()):
        if name in _SILENT or (name[:1] == "_" and name[:2] != "__" and name not in _PRIVATE):
            if name != "__repr__":
                continue
        if isinstance(attribute, property):
            watching.watch(attribute.fget, attribute.__get__)
            watching.watch(attribute.fset, attribute.__set__)
        else:
            other = watching.OPERATORS.get(name)
            told = None if other is None else _named(other)
            watching.watch(attribute, told, layout=layout("Tensor", name))
            own = getattr(attribute, "__name__", name)
            if own != name and getattr(Tensor, own, None) is not attribute:  # handlers read it
                attribute.__name__, attribute.__qualname__ = name, f"Tensor.{name}"


def _named(name: str) -> Any:
    return lambda: getattr(Tensor, name)


def _asks(cls: type) -> bool:
    handler = getattr(cls, "__torch_function__", None)
    return (
        handler is not None
        and handler is not modes.disabled_function
        and getattr(handler, "__func__", None) is not modes._default_function
    )


def prepare(cls: type) -> None:
    """Let the attributes of a class that overrides `__torch_function__` ask it, and the methods of
    a class with `__torch_dispatch__` that make tensors tell it."""
    if getattr(cls, "_exotic", False):
        return
    if getattr(cls, "__torch_dispatch__", python_key.disabled) is not python_key.disabled:
        if not _MAKERS:
            _MAKERS.update(factories.maker_methods())
            modes.MAKERS.update((getattr(Tensor, n), n) for n in _MAKERS)
        for name in _MAKERS:
            _install(cls, name, factories.Maker(name))
    if not _asks(cls):
        return
    if cls.__module__.partition(".")[0] != _ROOT:
        watching.class_made()
    for name, attribute in list(Tensor.__dict__.items()):
        if name in _SILENT or (name.startswith("_") and not name.startswith("__")):
            if name not in _PRIVATE:
                continue
        if not hasattr(type(attribute), "__get__") or isinstance(
            attribute, (classmethod, staticmethod)
        ):
            continue
        _install(cls, name, Asked(name))


def _install(cls: type, name: str, descriptor: Any) -> None:
    """Put a descriptor where the class has Tensor's own attribute, or one of these already."""
    for c in cls.__mro__:
        found = c.__dict__.get(name)
        if found is not None:
            if c is Tensor or isinstance(found, (Asked, factories.Maker)):
                setattr(cls, name, descriptor)
            return


_MAKERS: set[str] = set()


__all__ = ["Asked", "Bound", "of_parameters", "prepare", "watch_class"]
