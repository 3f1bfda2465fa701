"""The declaration of an operator, and the decorators that make one.

    @op("mm(Tensor self, Tensor mat2) -> Tensor", vjp={"self": "g @ mat2.mH", "mat2": …})
    def mm(xp, self, mat2, out=None): return xp.matmul(self, mat2, out=out)

declares the schema, the kernel (on arrays of NumPy or CuPy: `xp`) and the gradient. Everything else
(the call, the method, the function, in-place and out= forms, the node of the tape, stubs, fake
tensors, the compiler's rules, generated tests) is derived from the declaration when first needed.

vjp: a formula for each differentiable argument, in Python over operators. `g` is the incoming
gradient (`g0`, `g1` … for several outputs; `grads` for all), `result` (`result0` …) the outputs,
other names are arguments or operators. Values that a formula names are saved by the call, and
only if that formula can be needed. Formulas are operators again: double backward needs no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch import generate, registry
from torchlab._core.dispatch.schema import Schema, parse


class Op:
    """One operator overload. `family` names the template of its generated call:
    unary, binary, pointwise (element by element), view, general (a kernel), composite (Python over
    other operators)."""

    __slots__ = (
        "name",
        "overload",
        "text",
        "family",
        "kernel",
        "vjp",
        "meta",
        "expr",
        "decompose",
        "py",
        "method",
        "inplace_form",
        "out_form",
        "spaces",
        "tags",
        "doc",
        "promote",
        "public",
        "varargs",
        "instead",
        "autocast",
        "grad_name",
        "namespace",
        "inline",
        "half",
        "differentiable",
        "numbers",
        "write_vjp",
        "spare",
        "_schema",
        "_cache",
    )

    def __init__(
        self,
        text: str,
        *,
        family: str,
        kernel: Any = None,
        vjp: Any = None,
        meta: Any = None,
        expr: str | None = None,
        decompose: Any = None,
        py: tuple[str, ...] = (),
        method: bool = True,
        inplace: bool = False,
        out: bool = False,
        spaces: tuple[str, ...] = ("torch",),
        tags: tuple[str, ...] = (),
        doc: str = "",
        promote: str = "default",
        public: bool = True,
        varargs: bool = False,
        instead: Any = None,
        autocast: str | None = None,
        grad_name: str | None = None,
        namespace: str = "aten",
        half: Any = True,
        differentiable: bool | None = None,
        numbers: Any = None,
        inline: tuple[str, str, str] | None = None,
        write_vjp: Any = None,
        spare: tuple[str, ...] = (),
    ) -> None:
        head = text[: text.index("(")]
        self.name, _, self.overload = head.partition(".")
        self.overload = self.overload or "default"
        self.text = text
        self.family = family
        self.kernel = kernel
        self.vjp = vjp
        self.meta = meta
        self.expr = expr
        self.decompose = decompose
        self.py = py
        self.method = method
        self.inplace_form = inplace
        self.out_form = out
        self.spaces = spaces
        self.tags = tags
        self.doc = doc or (getattr(kernel, "__doc__", None) if callable(kernel) else None) or ""
        self.promote = promote
        self.public = public
        self.varargs = varargs
        # the method's other meaning: (name of a keyword, its type, what a call with it does)
        self.instead = instead
        self.autocast = autocast
        self.grad_name = grad_name
        self.namespace = namespace
        # 16-bit floats: the kernel gets them in float32 (a function given here does, in its place);
        # if False, it takes them as they are.
        self.half = half
        # Views: (condition, expression, kind of the result) for the host array `a_`. Operators on
        # one list of tensors: the same for `arrays`, contiguous and of one kind, as the result is.
        self.inline = inline
        self.differentiable = differentiable
        # The vjp of the in-place form where the operator itself has none: `x.ge_(y)` keeps x's type
        self.write_vjp = write_vjp
        # Saved tensors that the vjp can do without: None to it once they are overwritten.
        self.spare = spare
        # pointwise: the arguments that may be numbers. None: any, but not all; "all": even all
        self.numbers = numbers if numbers is not None or family != "unary" else ()
        self._schema: Schema | None = None
        self._cache: dict[str, Any] = {}
        if namespace == "aten":
            registry.register(self)
        if public:
            if method:
                registry.METHODS[self.name] = (self, "method")
                for dunder in py:
                    registry.METHODS[dunder] = (
                        self,
                        (
                            "inplace"
                            if dunder.startswith("__i") and inplace and dunder != "__invert__"
                            else "dunder"
                        ),
                    )
                if inplace:
                    registry.METHODS[self.name + "_"] = (self, "inplace")
            for space in spaces:
                names = registry.FUNCTIONS.setdefault(space, set())
                names.add(self.name)
                if inplace and space == "torch" and self.name + "_" not in registry.METHOD_ONLY:
                    names.add(self.name + "_")

    @property
    def qualname(self) -> str:
        return f"{self.namespace}::{self.name}.{self.overload}"

    @property
    def schema(self) -> Schema:
        """Parsed when first asked for: importing torchlab parses nothing."""
        if self._schema is None:
            self._schema = parse(self.text)
        return self._schema

    def form(self, what: str) -> Any:
        """The generated callable: method, dunder, function, core, inplace, out, node."""
        found = self._cache.get(what)
        if found is None:
            found = self._cache[what] = generate.build(self, what)
        return found

    @property
    def call(self) -> Any:
        """The generated method: first parameter `self`."""
        return self.form("method")

    @property
    def function(self) -> Any:
        """The generated function of torchlab's name space: first parameter `input`, takes
        `out=`."""
        return self.form("function")

    @property
    def core(self) -> Any:
        """The same without looking at modes: what the slow path calls in the end."""
        return self.form("core")

    @property
    def inplace(self) -> Any:
        return self.form("inplace")

    @property
    def out(self) -> Any:
        return self.form("out")

    @property
    def node_class(self) -> Any:
        """The class of the tape's node, or None if nothing is differentiable."""
        return self.form("node") if self.vjp or self.write_vjp else None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<torchlab op {self.qualname}>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}.{self.overload}"


def op(text: str, *, family: str = "general", **facts: Any) -> Callable[[Any], Op]:
    """Declare an operator whose kernel is the decorated function `(xp, *arrays_and_values)`."""

    def declare(kernel: Any) -> Op:
        return Op(text, family=family, kernel=kernel, **facts)

    return declare


def view(text: str, **facts: Any) -> Callable[[Any], Op]:
    """Declare a view: the kernel returns an array over the same memory; `meta` tells the layout."""
    return op(text, family="view", **facts)


def composite(text: str, **facts: Any) -> Callable[[Any], Op]:
    """Declare an operator as Python over other operators: derivative and meta rule follow."""

    def declare(body: Any) -> Op:
        return Op(text, family="composite", decompose=body, doc=body.__doc__ or "", **facts)

    return declare


def unary(text_name: str, kernel: Any, **facts: Any) -> Op:
    """Declare a pointwise operator of one tensor: `kernel` names a ufunc or is `f(xp, x,
    out=None)`."""
    text = text_name if "(" in text_name else f"{text_name}(Tensor self) -> Tensor"
    facts.setdefault("inplace", True)
    facts.setdefault("out", True)
    facts.setdefault("tags", ("pointwise",))
    return Op(text, family="unary", kernel=kernel, **facts)


def binary(text_name: str, kernel: Any, **facts: Any) -> Op:
    """Declare a pointwise operator of two tensors or a tensor and a number."""
    text = (
        text_name
        if "(" in text_name
        else f"{text_name}.Tensor(Tensor self, Tensor other) -> Tensor"
    )
    facts.setdefault("inplace", True)
    facts.setdefault("out", True)
    facts.setdefault("tags", ("pointwise",))
    return Op(text, family="binary", kernel=kernel, **facts)


def pointwise(text: str, **facts: Any) -> Callable[[Any], Op]:
    """Declare a pointwise operator of any tensors and values; kernel `(xp, *arrays, values…,
    out=None)`."""
    facts.setdefault("inplace", True)
    facts.setdefault("out", True)
    facts.setdefault("tags", ("pointwise",))
    return op(text, family="pointwise", **facts)


class Face:
    """The public Python call of a name with several overloads: a function that chooses."""

    __slots__ = ("name", "body", "method", "out", "autocast", "tags", "doc", "_cache")

    def __init__(
        self,
        name: str,
        body: Any,
        method: Any,
        out: bool = False,
        autocast: str | None = None,
        tags: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.body = body
        self.method = method
        self.out = out
        self.autocast = autocast
        self.tags = tags
        self.doc = body.__doc__ or ""
        self._cache: dict[str, Any] = {}

    def form(self, what: str) -> Any:
        found = self._cache.get(what)
        if found is None:
            found = self._cache[what] = generate.face(self, what)
        return found

    @property
    def call(self) -> Any:
        return self.form("method")

    @property
    def function(self) -> Any:
        return self.form("function")


def face(
    name: str,
    *,
    method: Any = True,
    spaces: tuple[str, ...] = ("torch",),
    py: tuple[str, ...] = (),
    out: bool = False,
    autocast: str | None = None,
    tags: tuple[str, ...] = (),
    kind: type[Face] = Face,
) -> Callable[[Any], Face]:
    """Let the decorated function be what users call under `name`; it picks among operators.
    `method` says whether tensors have it, or is the method where its parameters come in another
    order. `out` gives the function (not the method) an `out=` into which the result is copied.
    `autocast`: torchlab.amp casts what the body gets, as it does with operators. `tags`: about that
    `out=`, as those of operators (Note [Histories of out=] in `dispatch.writes`). `kind`: the class
    of the declaration."""

    def declare(body: Any) -> Face:
        f = kind(name, body, method, out, autocast, tags)
        elsewhere = bool(spaces) and "torch" not in spaces and not method
        for n in (name, *py):
            if elsewhere:
                for space in spaces:
                    registry.SPACE_FACES[space, n] = f
                if n in registry.FACES:
                    continue  # `aten.<name>` is torch's
                registry.WEAK.add(n)
            else:
                registry.WEAK.discard(n)
            registry.FACES[n] = f
            if method:
                registry.METHODS[n] = (f, "method")
        for space in spaces:
            registry.FUNCTIONS.setdefault(space, set()).update({name} - registry.METHOD_ONLY)
        return f

    return declare
