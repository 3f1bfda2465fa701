"""The slow path: what a call does while some thread is not at its defaults.

The generated calls read one global list, `SLOW`. It is empty unless a thread is in inference mode,
autocast or a Python mode, or somebody listens to operator calls; only then is anything here run.
"""

from __future__ import annotations

from typing import Any

from torchlab._core import events
from torchlab._core.device import device
from torchlab._core.dispatch import watching
from torchlab._core.dispatch.arguments import MISSING, taken
from torchlab._core.dtype import dtype
from torchlab._core.tape import NOGRAD, TLS, AccumulateGrad, Node, Out
from torchlab._core.tensor import Parameter, Tensor

SLOW: list[Any] = []


def _listened(topic: events.Topic) -> None:
    while topic in SLOW:
        SLOW.remove(topic)
    if topic.listeners:
        SLOW.append(topic)


events.op_call.on_change = _listened
events.node_created.on_change = _listened

# torchlab._core.dispatch.python_key puts its functions here: a call, a write, a call with out=, an
# overload that no declaration stands for, and the search for handlers.
python_key: list[Any] = []
python_write: list[Any] = []
python_out: list[Any] = []
python_ask: list[Any] = []
dispatch_handlers: list[Any] = []
maker_told: list[Any] = []  # torchlab._core.dispatch.factories: a maker called on a wrapper
innermost: list[Any] = []  # torchlab._core.dispatch.levels: the innermost transform's wrapper
composed: list[Any] = []  # torchlab._core.dispatch.composed: calls in PyTorch's operators


def dispatched() -> bool:
    """Whether a mode with `__torch_dispatch__` is on that is told calls below autograd."""
    stack = TLS.dispatch_modes
    return bool(stack) and hasattr(stack[-1], "below_autograd")


def ask_functions(
    func: Any,
    relevant: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    types: tuple[type, ...] | None = None,
    python: bool | None = None,
    found: list[Any] | None = None,
) -> Any:
    """Ask the thread's function mode, then the classes of the relevant arguments, for the result of
    `func(*args, **kwargs)`. `types`: what handlers get as such, where these are not the classes
    that are asked; `python`: whether PyTorch has, or would have, the function in Python; `found`:
    the arguments whose classes are asked, where somebody knows them. TypeError if all return
    NotImplemented."""
    handlers = overriding(relevant) if found is None else found
    if types is None:
        types = tuple({type(x): None for x in handlers})
    mode = None
    if TLS.function_modes:
        mode = TLS.function_modes.pop()
        try:
            result = mode.__torch_function__(func, types, args, kwargs)
        finally:
            TLS.function_modes.append(mode)
        if result is not NotImplemented:
            return result
    for x in handlers:
        result = type(x).__torch_function__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise unanswered(func, handlers, mode, python)


def unanswered(
    func: Any, handlers: list[Any], mode: Any = None, python: bool | None = None
) -> TypeError:
    """The error for a call that nobody takes. PyTorch has two texts: one for its functions in
    Python, one for those in C++."""
    name = watching.name_of(func)
    if watching.in_python(func) if python is None else python:
        text = (
            f"no implementation found for '{name}' on types that implement __torch_function__:"
            f" {[type(x) for x in handlers]}"
        )
        return TypeError(text if mode is None else f"{text} nor in mode {mode}")
    asked = [] if mode is None else [f"mode object {mode}"]
    asked += [f"tensor subclass {type(x)}" for x in handlers]
    lines = "".join(f"\n  - {x}" for x in asked)
    return TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned"
        f" NotImplemented:\n{lines}"
    )


def _answer(watched: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the mode or a class makes of a call of a public function, in a tuple; NotImplemented
    where there is nobody to ask."""
    every = (*args, *kwargs.values())
    handlers = [x for x in overriding(every) if not is_exotic(x)]
    if not handlers and not TLS.function_modes:
        return NotImplemented
    types = _all_types(every) if watched.layout or watched.of_property else None
    args, kwargs = watched.written(args, kwargs)
    return (ask_functions(watched.func, handlers, args, kwargs, types),)


def out_told(op: Any, args: tuple[Any, ...], out: Any) -> Any:
    """What the classes of operands and of `out` make of a call with `out=`; NotImplemented if
    nobody asks to be told."""
    handlers = [x for x in overriding((*args, out)) if not is_exotic(x)]
    if not handlers:
        return NotImplemented
    plain, named = as_written(op, args)
    return ask_functions(op.function, handlers, plain, {**named, "out": out})


def _all_types(args: tuple[Any, ...]) -> tuple[type, ...]:
    """The classes of all tensors among the arguments, as PyTorch's functions in Python tell them:
    Tensor itself among them."""
    flat = [y for x in args for y in (x if type(x) in (list, tuple) else (x,))]
    classes = [type(x) for x in flat if hasattr(type(x), "__torch_function__")]
    hidden = [Tensor if issubclass(c, Tensor) and (c._exotic or c._level) else c for c in classes]
    return tuple(sorted(dict.fromkeys(hidden), key=lambda c: -len(c.__mro__)))


watching.answer.append(_answer)
watching.PLAIN.update((Tensor, Parameter, dtype, device))


def slow(op: Any, args: tuple[Any, ...], method: bool = False) -> Any:
    """Run `op` with everything the thread has switched on. `method`: it was called as one."""
    state = TLS
    if len(SLOW) == 1 and state.inference:  # inference mode and nothing else
        quick = op._cache.get("inference")
        if quick is None:
            quick = op.form("inference")
        if quick:
            result = quick(*args)
            if result is not None:
                return result
    if state.autocast is not None and op.autocast is not None:  # a Caster of torchlab.amp
        result = state.autocast(op, args)  # comes back here with autocast off
        if result is not NotImplemented:
            return result
    stack = state.dispatch_modes
    if stack and op.family != "composite" and not hasattr(stack[-1], "below_autograd"):
        mode = stack.pop()  # the compiler's: it wants the call as it is, above autograd
        try:
            return mode.__torch_dispatch__(op, _types(args), args, {})
        finally:
            stack.append(mode)
    if stack and hasattr(stack[-1], "below_autograd"):
        if overriding(args):
            return odd(op, args, method)
        check_types(op, args)
        whole = getattr(stack[-1], "pre_dispatch", False)
        if not (whole(op) if callable(whole) else whole):  # else: composites arrive as they are
            result = composed[0](op, args)
            if result is not NotImplemented:
                return result
            if op.family == "composite":
                around = getattr(stack[-1], "around", None)  # a profiler's: it times these, too
                return op.core(*args) if around is None else around(op, args)
        result = python_key[0](op, args)
        return result if state.subclasses_off else rewrap(result, args)
    result = op.core(*args)
    if op.family == "composite":
        return result
    if state.inference and op.family != "view":
        _mark_inference(result)
    if events.node_created.listeners:
        for node, outputs in new_nodes(op, result):
            events.node_created.emit(node=node, op=op, inputs=args, outputs=outputs)
    if events.op_call.listeners:
        events.op_call.emit(op=op, args=args, result=result)
    return result


def as_written(op: Any, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The call as one would write it. The generated code hands on every argument by position,
    defaults included; here those drop out and keyword-only ones get their names back."""
    kept: list[Any] = []
    named: dict[str, Any] = {}
    skipped = False
    for a, v in zip(op.schema.arguments, args, strict=False):
        is_default = a.has_default and type(v) is type(a.default) and v == a.default
        if a.kwarg_only or skipped:
            if not is_default:
                named[a.name] = v
        elif is_default:
            skipped = True
        else:
            kept.append(v)
    return tuple(kept), named


def _types(args: tuple[Any, ...]) -> tuple[type, ...]:
    return tuple({type(x): None for x in tensors_in(args) if type(x) not in (Tensor, Parameter)})


def tensors_in(args: Any) -> list[Tensor]:
    """The tensors among arguments, those in lists included."""
    found: list[Tensor] = []
    for x in args:
        if isinstance(x, Tensor):
            found.append(x)
        elif type(x) in (list, tuple):
            found += [y for y in x if isinstance(y, Tensor)]
    return found


def _mark_inference(result: Any) -> None:
    for t in tensors_in(result if isinstance(result, (list, tuple)) else (result,)):
        t._k = t._k.i


def new_nodes(op: Any, result: Any) -> list[tuple[Node, tuple[Tensor, ...]]]:
    """The tape nodes that made these results (one, or none)."""
    outputs = tensors_in(result if isinstance(result, (list, tuple)) else (result,))
    for t in outputs:
        e = t._e
        if e is not None and type(e) is not AccumulateGrad:
            node = e.node if type(e) is Out else e
            if type(node).op is op:
                return [(node, tuple(outputs))]
    return []


def method_of(op: Any) -> Any:
    """What PyTorch hands a handler for `x.add(y)` and `x + y`: `torch.Tensor.add`."""
    found = getattr(Tensor, op.name, None)
    return op.function if found is None else found


def odd_method(op: Any, args: tuple[Any, ...]) -> Any:
    """`odd` for a call as a method or by one of Python's operators."""
    return odd(op, args, True)


def odd(op: Any, args: tuple[Any, ...], method: bool = False) -> Any:
    """A call with something else than a plain tensor in a tensor's place: subclasses with
    `__torch_function__`, or an argument of the wrong type."""
    handlers = overriding(args)
    if handlers:
        for x in sorted(handlers, key=is_exotic):
            if is_exotic(x):  # Note [Exotic tensors]
                return exotic_call[0](op, args)
            func = method_of(op) if method else op.function
            r = type(x).__torch_function__(
                func, tuple({type(y): None for y in handlers}), *as_written(op, args)
            )
            if r is not NotImplemented:
                return r
        raise unanswered(method_of(op) if method else op.function, handlers)
    check_types(op, args)
    if not TLS.subclasses_off:
        _check_related(op, args)
    if dispatch_handlers[0](args):
        result = _without_functions(op, args)
    else:
        result = op.core(*(unwrap(x) for x in args))
    return result if TLS.subclasses_off else rewrap(result, args)


def _check_related(op: Any, args: tuple[Any, ...]) -> None:
    """TypeError where classes meet of which none derives from all others: PyTorch's default
    `__torch_function__` of neither takes the other."""
    classes = {type(x): None for x in tensors_in(args) if not x._is_param and not x._exotic}
    if len(classes) > 1:
        found = [c for c in classes if c is not Tensor and not _is_disabled(c)]
        if found and not any(all(issubclass(c, d) for d in found) for c in found):
            raise TypeError(
                f"no implementation found for 'torch.{op.name}' on types that implement"
                f" __torch_function__: {[c.__name__ for c in found]}"
            )


def _is_disabled(cls: type) -> bool:
    return getattr(cls, "__torch_function__", None) is disabled_function


def _without_functions(op: Any, args: tuple[Any, ...]) -> Any:
    """Below `__torch_function__`: composites run their body on the tensors as they are."""
    TLS.subclasses_off += 1
    try:
        inner = innermost[0](args)
        if inner is not None and type(inner).whole(op):  # Note [Levels]
            return python_key[0](op, args)
        result = NotImplemented if inner is not None else composed[0](op, args)
        if result is not NotImplemented:
            return result
        return op.decompose(*args) if op.family == "composite" else python_key[0](op, args)
    finally:
        TLS.subclasses_off -= 1


def face_odd(face: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of Python's own with no plain tensor in the first place: ask the handlers of the
    arguments' classes. NotImplemented if there are none."""
    handlers = [x for x in overriding(args) if not is_exotic(x)]
    if not handlers:
        if args and is_exotic(args[0]) and not face.out:
            return exotic_call[1](face.name, args, kwargs)
        return maker_told[0](face, args, kwargs)
    types = tuple({type(y): None for y in handlers})
    for x in handlers:
        r = type(x).__torch_function__(face.function, types, args, kwargs)
        if r is not NotImplemented:
            return r
    raise unanswered(face.function, handlers)


exotic_call: list[Any] = []  # torchlab._core.dispatch.exotic puts its functions here


def is_exotic(x: Any) -> bool:
    return getattr(type(x), "_exotic", False)


def odd_self(op: Any, args: tuple[Any, ...]) -> Any:
    """A method that was taken from the class and called on something else: `Tensor.add(1, t)`."""
    if not isinstance(args[0], Tensor) and not overriding(args):
        raise TypeError(
            f"descriptor '{op.name}' for 'torch._C.TensorBase' objects doesn't apply to a"
            f" '{type(args[0]).__name__}' object"
        )
    return odd(op, args, True)


def overriding(args: Any, every: bool = False) -> list[Any]:
    """Arguments whose class overrides `__torch_function__`, subclasses first. `every`: also those
    of subclasses of Tensor that have Tensor's."""
    found: list[Any] = []
    for x in args:
        for y in x if type(x) in (list, tuple) else (x,):
            handler = getattr(type(y), "__torch_function__", None)
            if handler is None or type(y) is type:
                continue
            if getattr(handler, "__func__", None) is _default_function:
                if not every or type(y) is Tensor or type(y) is Parameter or is_exotic(y):
                    continue
            if handler is disabled_function:
                continue
            if TLS.subclasses_off and not is_exotic(y):
                continue
            if all(type(y) is not type(z) for z in found):
                at = next(
                    (i for i, z in enumerate(found) if issubclass(type(y), type(z))), len(found)
                )
                found.insert(at, y)
    return found


def unwrap(x: Any) -> Any:
    """A plain tensor on the same memory and tape for an instance of a subclass."""
    t = type(x)
    if t is list or t is tuple:
        return [unwrap(y) for y in x]
    if isinstance(x, Tensor) and t is not Tensor and t is not Parameter and not t._exotic:
        p = object.__new__(Tensor)
        p._a, p._k, p._e, p._s, p._v, p._g = x._a, x._k, x._e, x._s, x._v, None
        return p
    return x


def rewrap(result: Any, args: Any) -> Any:
    """Results of the most derived subclass among the arguments, as PyTorch's default does."""
    cls: type = Tensor
    for x in tensors_in(args):
        if type(x) is not Parameter and issubclass(type(x), cls):
            cls = type(x)
    if cls is Tensor or cls.__torch_function__ is disabled_function:  # type: ignore[attr-defined]
        return result
    if is_exotic(result) and result.strided:  # no class has both bits and a user's methods
        result = result.plain()
    if type(result) is Tensor:
        return as_subclass(result, cls)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*(rewrap(r, args) for r in result))
    if type(result) in (list, tuple):
        return type(result)(rewrap(r, args) for r in result)
    return result


def as_subclass(t: Tensor, cls: type) -> Tensor:
    """The same memory and tape in an object of class `cls`."""
    if t._exotic and not cls._exotic and t.strided:  # type: ignore[attr-defined]
        t = t.plain()
    r = object.__new__(cls)
    r._a, r._k, r._e, r._s, r._v, r._g = t._a, t._k, t._e, t._s, t._v, t._g
    return r


def _default_function(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`Tensor.__torch_function__`: run `func` with no class asked, and give what comes the class
    `cls`. NotImplemented if a class is concerned that is no base of `cls`."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    TLS.subclasses_off += 1
    try:
        result = direct(func, args, kwargs or {})
    finally:
        TLS.subclasses_off -= 1
    if func in NOWRAP:
        return result
    return converted(result, cls)


def disabled_function(*args: Any, **kwargs: Any) -> Any:
    """A class with this as its `__torch_function__` asks nobody and its results stay as they are:
    `torch._C._disabled_torch_function_impl`."""
    func, given = args[0], args[2] if len(args) > 2 else ()
    named = args[3] if len(args) > 3 else kwargs.get("kwargs")
    TLS.subclasses_off += 1
    try:
        return direct(func, given, named or {})
    finally:
        TLS.subclasses_off -= 1


def direct(func: Any, args: Any, kwargs: Any) -> Any:
    """Call what a handler was given. Makers that are methods have no declaration in which a wrapper
    would be noticed: its class has attributes of their names that notice."""
    name = MAKERS.get(func) if dispatch_handlers[0](args[:1]) else None
    return func(*args, **kwargs) if name is None else getattr(args[0], name)(*args[1:], **kwargs)


MAKERS: dict[Any, str] = {}  # methods that make tensors, see factories


NOWRAP: set[Any] = set()  # getters whose tensors stay as they are: `grad`, `_base`


def converted(result: Any, cls: type) -> Any:
    """Tensors in `result` as instances of `cls`."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return as_subclass(result, cls)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*(converted(r, cls) for r in result))
    if isinstance(result, (list, tuple)) and type(result) in (list, tuple):
        return type(result)(converted(r, cls) for r in result)
    return result


def check_types(op: Any, args: tuple[Any, ...]) -> None:
    """Raise PyTorch's TypeError for the first argument that is not what the schema says."""
    if any(x is MISSING for x in args):
        taken(op, args)  # which says what is missing
    for i, (a, x) in enumerate(zip(op.schema.arguments, args, strict=False)):
        kind = a.type
        if kind.base != "Tensor":
            continue
        values = x if kind.list and isinstance(x, (list, tuple)) else (x,)
        alone = kind.list and isinstance(x, Tensor)  # a tensor is no list of tensors
        for v in values:
            if (isinstance(v, Tensor) and not alone) or (
                v is None and (kind.optional or kind.elem_optional)
            ):
                continue
            if op.family in ("binary", "pointwise") and isinstance(v, (int, float, complex)):
                if type(op.numbers) is not tuple or a.name in op.numbers:
                    continue
            wanted = "tuple of Tensors" if kind.list else "Tensor"
            name = "input" if a.name == "self" else a.name
            raise TypeError(
                f"{op.name}(): argument '{name}' (position {i + 1}) must be {wanted}, not"
                f" {type(v).__name__}"
            )


def grad_enabled() -> bool:
    return not NOGRAD or TLS.grad
