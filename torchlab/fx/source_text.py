"""Values and operators as Python source."""

from __future__ import annotations

from typing import Any

from torchlab._core.device import device
from torchlab._core.dtype import dtype
from torchlab._core.formats import layout, memory_format
from torchlab._core.tensor import Tensor
from torchlab.fx._naming import _get_qualified_name
from torchlab.fx.node import Node

BINARY = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}",
    "ge": "{} >= {}", "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}",
    "floordiv": "{} // {}", "truediv": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}",
    "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}",
    "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
UNARY = {"pos": "+{}", "neg": "-{}", "invert": "~{}"}
INPLACE = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}",
    "imod": "{} %= {}", "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}",
    "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}",
    "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip
REFLECTABLE = {
    name: form for name, form in BINARY.items() if name not in ("eq", "ne", "lt", "gt", "le", "ge")
}


def value_text(v: Any, writer: Any) -> str:
    """An argument as source. `writer.bind(name, object)` gives the name of a global, for what
    cannot be written down."""

    def text(x: Any) -> str:
        return value_text(x, writer)

    if isinstance(v, Node):
        return repr(v)
    if isinstance(v, tuple):
        inner = ", ".join(map(text, v))
        if hasattr(v, "_fields"):
            return f"{writer.bind(_get_qualified_name(type(v)), type(v))}({inner})"
        return f"({inner},)" if len(v) == 1 else f"({inner})"
    if isinstance(v, list):
        return f"[{', '.join(map(text, v))}]"
    if isinstance(v, dict):
        return "{" + ", ".join(f"{k!r}: {text(x)}" for k, x in v.items()) + "}"
    if isinstance(v, slice):
        return f"slice({text(v.start)}, {text(v.stop)}, {text(v.step)})"
    if isinstance(v, Tensor):
        return str(writer.bind("tensor", v))
    if isinstance(v, dtype):
        return f"torch.{str(v).rpartition('.')[2]}"
    if isinstance(v, (memory_format, layout)):
        return f"torch.{str(v).rpartition('.')[2]}"
    if isinstance(v, device):
        return repr(v)
    if v is None or v is Ellipsis or isinstance(v, (bool, int, float, complex, str, bytes, range)):
        return repr(v)
    if isinstance(v, (set, frozenset)):
        return repr(v)
    if callable(v):
        return str(writer.bind(_get_qualified_name(v), v))
    return str(writer.bind(type(v).__name__.lower(), v))
