"""Steps of random programs: each is a line of Python that runs in torchlab and in PyTorch alike.

A `Maker` looks at the tensors that PyTorch has so far and writes the next line, so that most lines
are valid and some are not. What it never writes, because the answer is not PyTorch's to define:

- Floating point to integer of NaN, infinity or a value out of range: undefined in C++.
- `topk`, `kthvalue`, `median`, `mode`, unstable `sort` among equal values: any of their places.
- Writing through a tensor of which several elements share memory (expanded, unfolded), or reading
  in the same call another part of the memory written: PyTorch promises nothing where it does not
  refuse. See `undefined` in `programs.py`, which ends such a program.
- A dimension out of range where there are no elements: PyTorch does not always look.
- A matrix product whose `out` is an operand: PyTorch 2.13 crashes.
- The bytes of computed floating point values: their last digits are nobody's promise.
- Bytes read as `bool`: any but 0 and 1 mean nothing.
- Errors whose class PyTorch chooses by the order of its checks where two things are wrong.
- An `out` that is an operand: PyTorch resizes it before it reads it.
- Strides and offset of a tensor without elements, and so what `resize_`, `view_as_complex` and a
  view of another type make of one: torchlab's NumPy arrays do not keep them.
- The sign of NaN, which `copysign` and `signbit` show.
- How often `matmul(out=)` counts as a write.
- Strides that follow from those of dimensions of size 1 where contiguous tensors are broadcast.
- `var` of a real tensor into a complex `out`, and the gradient of a real tensor that `lerp` weighs
  by a complex one: PyTorch refuses by an accident of its build.
- An integer tensor that says that it requires gradients, after `masked_fill_` by one that does.
- complex32, which torchlab does not have: `float16 - 1j`, `view_as_complex` of float16.
- The sign of infinity in `gelu` of float32: PyTorch gives NaN or infinity as the size decides.
- Which of several largest complex numbers gets the gradient of `norm(inf)`: rounding decides.
- `.data = …` of a tensor that a node has saved, and `resize_` of what it saved through `.data`:
  PyTorch's node then sees the new memory.
- Strides and offset of `slice_scatter` and its like, which copy the whole storage.
- What is saved of a uint8 condition of `where`, which PyTorch deprecates.
- Shifts by a negative number or by the type's width or more: undefined in C++.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.conformance.program_names import (
    BINARY,
    DTYPES,
    FLOATS,
    NO_INPLACE,
    NO_OUT,
    NUMBERS,
    OPERATORS,
    REDUCTIONS,
    SCANS,
    SIZES,
    SPECIAL,
    TENSOR_ONLY,
    UNARY,
)


class Step(NamedTuple):
    code: str
    writes: str | None = None  # the tensor written in place, if any
    moves: bool = False  # only moves values: they must be equal to the bit


class Maker:
    """Writes steps. `integer(lo, hi)` gives the choices; `env` holds PyTorch's tensors so far."""

    def __init__(self, integer: Callable[[int, int], int], env: dict[str, Any], torch: Any) -> None:
        self.integer = integer
        self.env = env
        self.torch = torch
        self.count = 0

    # ---- choices ---------------------------------------------------------------------------------

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent

    def new(self) -> str:
        self.count += 1
        return f"t{self.count}"

    @property
    def names(self) -> list[str]:
        return [n for n, v in self.env.items() if isinstance(v, self.torch.Tensor)]

    def tensor(self, want: Callable[[Any], bool] | None = None) -> str:
        """A tensor's name; mostly one that `want` accepts."""
        names = self.names
        if want is not None and not self.chance(4):
            names = [n for n in names if want(self.env[n])] or names
        return self.pick(names)

    def floating(self) -> str:
        return self.tensor(lambda t: t.dtype.is_floating_point)

    def partner(self, x: str) -> str:
        """A tensor that broadcasts with `x`, mostly."""
        shape = self.env[x].shape

        def fits(t: Any) -> bool:
            return all(
                a == b or a == 1 or b == 1
                for a, b in zip(reversed(t.shape), reversed(shape), strict=False)
            )

        return self.tensor(fits)

    def number(self) -> str:
        return self.pick(SPECIAL + ("1j", "300")) if self.chance(8) else self.pick(NUMBERS)

    def operand(self, x: str) -> str:
        return self.number() if self.chance(35) else self.partner(x)

    def dim(self, x: str) -> int:
        n = max(self.env[x].ndim, 1)
        if self.chance(3) and self.env[x].numel():
            return self.pick((n, -n - 1))
        return self.integer(-n, n - 1)

    def dims(self, x: str) -> str:
        n = self.env[x].ndim
        if n == 0 or self.chance(60):
            return str(self.dim(x))
        chosen = [d for d in range(n) if self.chance(50)]
        return str(tuple(d - n if self.chance(30) else d for d in chosen))

    def size_at(self, x: str, d: int) -> int:
        t = self.env[x]
        return t.shape[d] if -t.ndim <= d < t.ndim else 1

    def dtype(self) -> str:
        return "torch." + self.pick(DTYPES)

    # ---- literals --------------------------------------------------------------------------------

    def shape(self, most: int = 60) -> tuple[int, ...]:
        shape: list[int] = []
        for _ in range(self.pick((0, 1, 1, 2, 2, 2, 3, 3, 4))):
            shape.append(self.pick(SIZES))
        while math.prod(shape) > most:
            shape.pop()
        return tuple(shape)

    def value(self, dtype: str, special: bool) -> str:
        if dtype == "bool":
            return str(self.chance(50))
        if dtype == "uint8":
            return str(self.pick((0, 1, 2, 3, 7, 255)))
        if dtype.startswith("int"):
            return str(self.integer(-4, 5))
        if special and self.chance(25):
            return self.pick(SPECIAL)
        x = self.integer(-24, 24) / 8
        return f"{x}{self.integer(-4, 4) / 2:+}j" if dtype.startswith("complex") else str(x)

    def literal(self, shape: tuple[int, ...], dtype: str, grad: bool = False) -> str:
        special = self.chance(15)

        def nested(shape: tuple[int, ...]) -> str:
            if not shape:
                return self.value(dtype, special)
            return "[" + ", ".join(nested(shape[1:]) for _ in range(shape[0])) + "]"

        asks = ", requires_grad=True" if grad else ""
        if 0 in shape:
            return f"torch.zeros({shape}, dtype=torch.{dtype}{asks})"
        return f"torch.tensor({nested(shape)}, dtype=torch.{dtype}{asks})"

    def start(self) -> Step:
        """A first tensor, of any layout."""
        dtype = self.pick(DTYPES)
        shape = self.shape()
        made = self.literal(shape, dtype)
        n = len(shape)
        if n >= 2 and self.chance(30):
            i, j = self.integer(0, n - 1), self.integer(0, n - 1)
            made += f".transpose({i}, {j})"
        elif n and self.chance(20):
            made += "[" + ":, " * self.integer(0, n - 1) + self.pick(("::2", "1:", ":-1")) + "]"
        elif n == 4 and self.chance(50):
            made += ".to(memory_format=torch.channels_last)"
        elif self.chance(12):
            made += f".expand({self.pick((1, 2, 3))}, {', '.join(['-1'] * n)})"
        differentiable = dtype in FLOATS or dtype.startswith("complex")
        if differentiable and self.chance(55):
            made = made + ".requires_grad_()" if self.chance(30) else f"leaf({made})"
        return Step(f"{self.new()} = {made}")

    # ---- forms -----------------------------------------------------------------------------------

    def out(self, apart: bool = False) -> str:
        if apart or self.chance(40):
            return f"torch.empty({self.pick(((0,), (2,), ()))}, dtype={self.dtype()})"
        return self.tensor(lambda t: not t.requires_grad)

    def formed(self, name: str, x: str, args: str = "", inplace: bool = True, out: bool = True):
        """A call as a method, a function, in place or with `out=`."""
        comma = f", {args}" if args else ""
        form = self.integer(0, 9)
        if form >= 8 and inplace:
            return Step(f"{self.new()} = {x}.{name}_({args})", x)
        if form == 7 and out:
            o = self.out(name in ("matmul", "mm", "bmm"))
            return Step(
                f"{self.new()} = torch.{name}({x}{comma}, out={o})", o if o in self.env else None
            )
        if form >= 4:
            return Step(f"{self.new()} = torch.{name}({x}{comma})")
        return Step(f"{self.new()} = {x}.{name}({args})")

    # ---- pointwise -------------------------------------------------------------------------------

    def unary(self) -> Step:
        name = self.pick(UNARY)
        x = self.tensor()
        if self.env[x].is_complex() and name == "isfinite":  # its result was written once more
            name = "isnan"
        return self.formed(name, x, "", name not in NO_INPLACE, name not in NO_OUT)

    def binary(self) -> Step:
        x = self.tensor()
        if self.chance(20):
            return self.formed(self.pick(TENSOR_ONLY), x, self.partner(x), False)
        name = self.pick(BINARY)
        other = self.operand(x)
        if name in ("logical_and", "logical_or", "logical_xor", "atan2", "hypot"):
            other = self.partner(x)
        if name in ("add", "sub") and self.chance(25):
            other += f", alpha={self.pick(('2', '-1', '0.5'))}"
        if name == "div" and self.chance(40):
            other += f", rounding_mode={self.pick(('None', repr('floor'), repr('trunc')))}"
        return self.formed(name, x, other, name != "true_divide", name != "float_power")

    def operator(self) -> Step:
        x = self.tensor()
        o = self.pick(OPERATORS)
        y = self.operand(x)
        if self.chance(25) and o not in ("==", "!=", "<", "<=", ">", ">="):
            return Step(f"{x} {o}= {y}", x)
        left, right = (y, x) if self.chance(25) else (x, y)
        return Step(f"{self.new()} = {left} {o} {right}")

    def shift(self) -> Step:
        x = self.tensor(lambda t: not t.dtype.is_floating_point)
        return Step(f"{self.new()} = {x} {self.pick(('<<', '>>'))} {self.integer(0, 6)}")

    def ternary(self) -> Step:
        x = self.tensor()
        match self.integer(0, 7):
            case 0 | 1:
                low, high = self.pick((("-1", "1"), ("None", "2"), ("0.5", "None"), ("1", "0")))
                return self.formed("clamp", x, f"{low}, {high}")
            case 2:
                return self.formed("clamp", x, f"min={self.partner(x)}", True, False)
            case 3:
                a, b = self.partner(x), self.partner(x)
                name = self.pick(("addcmul", "addcdiv"))
                value = self.pick(("", ", value=2", ", value=0.5"))
                return self.formed(name, x, f"{a}, {b}{value}")
            case 4:
                return self.formed("lerp", x, f"{self.partner(x)}, {self.operand(x)}")
            case 5:
                cond = self.tensor(lambda t: t.dtype == self.torch.bool)
                return Step(f"{self.new()} = torch.where({cond}, {x}, {self.operand(x)})")
            case 6:
                name = self.pick(("clamp_min", "clamp_max"))
                if self.env[x].dtype == self.torch.bool:
                    name = "eq"
                return self.formed(name, x, self.operand(x), True, False)
            case _:
                f = self.pick(("gelu", "softplus", "leaky_relu", "elu", "silu", "hardtanh"))
                return Step(f"{self.new()} = torch.nn.functional.{f}({x})")

    # ---- reductions and scans --------------------------------------------------------------------

    def reduction(self) -> Step:
        x = self.tensor()
        name = self.pick(REDUCTIONS)
        keep = self.pick(("", ", keepdim=True"))
        if self.chance(8):
            keep = self.pick((", keepdims=True", ", keepdims=False"))
        key = "axis=" if self.chance(6) else self.pick(("", "dim="))
        if name in ("aminmax",):
            return Step(f"{self.new()} = torch.aminmax({x}, dim={self.dim(x)}{keep}).max")
        if name in ("max", "min"):
            if self.chance(40):
                return Step(f"{self.new()} = {x}.{name}()")
            v, i = self.new(), self.new()
            return Step(f"{v}, {i} = {x}.{name}({key}{self.dim(x)}{keep})")
        if name in ("logsumexp",):
            return self.formed(name, x, f"{key}{self.dim(x)}{keep}", False)
        if name == "count_nonzero":
            return Step(f"{self.new()} = {x}.count_nonzero({self.pick(('', self.dims(x)))})")
        if name == "norm":
            p = self.pick(("2", "1", "inf", "'fro'", "0.5", "0"))
            return Step(f"{self.new()} = {x}.norm({p}, {self.dims(x)}{keep})")
        if self.chance(30):
            return Step(f"{self.new()} = {x}.{name}()")
        single = name in ("prod", "argmax", "argmin")
        out = name not in ("all", "any", "nanmean", "nansum", "amax", "amin")
        args = f"{key}{self.dim(x) if single else self.dims(x)}{keep}"
        if name in ("sum", "mean", "prod", "nansum", "nanmean") and self.chance(15):
            out = False
            args += f", dtype=torch.{self.pick(FLOATS)}"
        if name in ("var", "std") and "()" in args:  # its gradient counts one element there
            args = str(self.dim(x))
        if name in ("var", "std") and self.chance(40):
            args = args.replace("axis=", "dim=") + f", correction={self.pick((0, 1, 2))}"
        return self.formed(name, x, args, False, out)

    def scan(self) -> Step:
        x = self.tensor()
        name = self.pick(SCANS)
        if name in ("cummax", "cummin"):
            x = self.tensor(lambda t: not t.is_complex())
            v, i = self.new(), self.new()
            return Step(f"{v}, {i} = {x}.{name}({self.dim(x)})")
        inplace = name != "logcumsumexp" and self.env[x].dtype != self.torch.bool
        return self.formed(name, x, str(self.dim(x)), inplace)

    def softmax(self) -> Step:
        name = self.pick(("softmax", "log_softmax"))
        x = self.floating()
        return Step(f"{self.new()} = {x}.{name}({self.dim(x)})")

    # ---- views -----------------------------------------------------------------------------------

    def view(self) -> Step:
        x = self.tensor()
        t = self.env[x]
        n = t.ndim
        d = self.dim(x)
        size = self.size_at(x, d)
        new = self.new()
        kind = self.pick((
            "transpose", "permute", "expand", "narrow", "select", "slice", "unfold", "diagonal",
            "squeeze", "squeeze_d", "unsqueeze", "flatten", "reshape", "view", "as_strided", "t",
            "mT", "real", "imag", "view_as_real", "view_as_complex", "view_dtype", "movedim",
            "unflatten", "swapaxes", "view_as", "expand_as", "detach", "alias", "T", "conj",
            "squeeze_many", "reshape_as", "adjoint", "resolve",
        ))  # fmt: skip
        match kind:
            case "transpose" | "swapaxes":
                call = f".{kind}({d}, {self.dim(x)})"
            case "movedim":
                call = f".movedim({d}, {self.dim(x)})"
            case "permute":
                order = list(range(n))
                for i in range(n):
                    j = self.integer(i, n - 1)
                    order[i], order[j] = order[j], order[i]
                call = f".permute({tuple(order)})"
            case "expand":
                lead = [self.pick((1, 2, 3)) for _ in range(self.pick((0, 0, 1, 2)))]
                rest = [self.pick((s, -1, 3)) if s == 1 else self.pick((s, -1)) for s in t.shape]
                call = f".expand({tuple(lead + rest)})"
            case "narrow":
                start = self.integer(0, max(size, 0))
                call = f".narrow({d}, {start}, {self.integer(0, max(size - start, 0))})"
            case "select":
                call = f".select({d}, {self.integer(-max(size, 1), max(size - 1, 0))})"
            case "slice":
                step = self.pick((1, 1, 2, 3))
                call = f"[{':, ' * self.integer(0, max(n - 1, 0))}{self.integer(-2, 2)}::{step}]"
            case "unfold":
                call = f".unfold({d}, {self.integer(0, max(size, 1))}, {self.pick((1, 2, 3))})"
            case "diagonal":
                call = f".diagonal({self.integer(-2, 2)}, {d}, {self.dim(x)})"
            case "squeeze_d":
                call = f".squeeze({d})"
            case "squeeze_many":
                call = f".squeeze(({d}, {self.dim(x)}))"
            case "unsqueeze":
                call = f".unsqueeze({self.integer(-n - 1, n)})"
            case "flatten":
                call = self.pick((".flatten()", f".flatten({d}, {self.dim(x)})", ".ravel()"))
            case "reshape" | "view":
                call = f".{kind}({self.reshaped(t)})"
            case "view_as" | "expand_as" | "reshape_as":
                call = f".{kind}({self.partner(x)})"
            case "unflatten":
                call = f".unflatten({d}, {self.pick(((1, -1), (-1, 1), (2, -1), (size,)))})"
            case "as_strided":
                x = self.tensor(lambda t: t.numel() > 0)
                sizes = tuple(self.pick((0, 1, 2, 3)) for _ in range(self.pick((0, 1, 2, 3))))
                strides = tuple(self.pick((0, 1, 2, 3)) for _ in sizes)
                call = f".as_strided({sizes}, {strides}{self.pick(('', ', 1', ', 0'))})"
            case "real" | "imag" | "T" | "mT":
                call = f".{kind}"
            case "view_as_real" | "view_as_complex":
                if kind == "view_as_real":
                    x = self.tensor(lambda t: t.is_complex())
                return Step(f"{new} = torch.{kind}({x})", moves=True)
            case "view_dtype":
                x = self.tensor(lambda t: t.numel() > 0 and not t.dtype.is_floating_point)
                call = f".view({self.dtype().replace('bool', 'uint8')})"
            case "alias":
                call = "[...]"
            case "resolve":
                call = ".resolve_conj()"
            case _:
                call = f".{kind}()"
        return Step(f"{new} = {x}{call}", moves=True)

    def reshaped(self, t: Any) -> str:
        n = t.numel()
        if n == 0:
            return str(self.pick(((0,), (0, 2), (3, 0), (-1,), (2, -1))))
        factors = [f for f in range(1, n + 1) if n % f == 0]
        a = self.pick(factors)
        return str(self.pick(((-1,), (a, -1), (a, n // a), (1, n), (n // a, 1, a), (2, -1))))

    def several(self) -> Step:
        """Views that come in numbers: one or two of them are kept."""
        x = self.tensor()
        d = self.dim(x)
        size = self.size_at(x, d)
        a = self.integer(0, size)
        call = self.pick((
            f"unbind({d})", f"split({self.pick((1, 2, 3))}, {d})", f"split([{a}, {size - a}], {d})",
            f"chunk({self.pick((1, 2, 3))}, {d})", f"tensor_split({self.pick((1, 2, 3))}, {d})",
        ))  # fmt: skip
        i = self.pick((0, 0, -1))
        return Step(f"{self.new()} = {x}.{call}[{i}]", moves=True)

    # ---- indexing --------------------------------------------------------------------------------

    def index(self, x: str) -> str:
        t = self.env[x]
        if self.chance(8):
            mask = [n for n in self.names if self.env[n].dtype == self.torch.bool]
            if mask:
                return self.pick(mask)
        if self.chance(8):
            return self.literal(tuple(t.shape), "bool")
        parts: list[str] = []
        i = 0
        length: int | None = None  # of the index tensors so far: they must broadcast
        while i < t.ndim and not self.chance(20):
            size = t.shape[i]
            kind = self.integer(0, 11)
            if kind <= 2:
                parts.append(str(self.integer(-max(size, 1), max(size - 1, 0))))
            elif kind <= 6:
                a = self.pick(("", "", "1", "-2", "0"))
                b = self.pick(("", "", "2", "-1", "9"))
                parts.append(f"{a}:{b}{self.pick(('', '', ':2', ':3'))}")
            elif kind == 7:
                parts.append("None")
                continue
            elif kind == 8:
                parts.append(self.literal((size,), "bool"))
            elif kind in (9, 10):
                if length is None or self.chance(10):
                    length = self.pick((0, 1, 2, 3, 3))
                top = max(size - 1, 0)
                items = [self.integer(-max(size, 1), top) for _ in range(length)]
                if length and self.chance(40):
                    parts.append(str(items))
                elif length and self.chance(20):
                    parts.append(f"torch.tensor({[[k] for k in items]})")
                else:
                    kind_of = self.pick(("int64", "int32"))
                    parts.append(f"torch.tensor({items}, dtype=torch.{kind_of})")
            else:
                part = self.pick(("...", "True", "torch.tensor(0)", "False", str(size)))
                if part != "..." or "..." not in parts:
                    parts.append(part)
                if part == "...":
                    break
                if part in ("True", "False"):
                    continue
            i += 1
        if not parts:
            return self.pick(("...", "()", ":", "None"))
        return parts[0] if len(parts) == 1 and self.chance(50) else ", ".join(parts) + ","

    def read(self) -> Step:
        x = self.tensor()
        return Step(f"{self.new()} = {x}[{self.index(x)}]", moves=True)

    def write(self) -> Step:
        x = self.tensor()
        at = self.index(x)
        if self.chance(15):
            return Step(f"{x}[{at}] {self.pick(('+=', '*=', '-='))} {self.number()}", x)
        value = self.number()
        if self.chance(55):
            try:
                part = eval(f"{x}[{at}]", dict(self.env))
                shape = tuple(part.shape)
            except (RuntimeError, IndexError, TypeError, ValueError):
                shape = ()
            drop = self.integer(0, len(shape))
            shape = tuple(1 if self.chance(15) else s for s in shape[drop // 2 :])
            if math.prod(shape) <= 60:
                value = self.literal(shape, self.pick((str(self.env[x].dtype)[6:], "float32")))
        elif self.chance(60):
            value = self.partner(x)
        return Step(f"{x}[{at}] = {value}", x)

    def places(self, most: int, shape: tuple[int, ...]) -> str:
        def nested(shape: tuple[int, ...]) -> Any:
            if not shape:
                return self.integer(0, max(most - 1, 0)) if not self.chance(1) else most
            return [nested(shape[1:]) for _ in range(shape[0])]

        return f"torch.tensor({nested(shape)}, dtype=torch.int64).reshape({shape})"

    def scatter(self) -> Step:
        x = self.tensor(lambda t: t.ndim > 0)
        t = self.env[x]
        d = self.dim(x)
        size = self.size_at(x, d)
        dtype = str(t.dtype)[6:]
        shape = tuple(t.shape)
        part = tuple(self.integer(0, s) if self.chance(30) else s for s in shape)
        if size == 0:  # any place would lie outside
            part = shape
        if math.prod(part) > 40:
            part = tuple(min(s, 2) for s in part)
        at = self.places(size, part)
        count = self.integer(0, 3) if size else 0
        few = self.places(size, (count,))
        axis = d % t.ndim if t.ndim and -t.ndim <= d < t.ndim else 0
        along = tuple(count if i == axis else s for i, s in enumerate(shape))
        if math.prod(along) > 60:
            along = ()
        kind = self.integer(0, 12)
        if kind <= 2:
            return self.formed("gather", x, f"{d}, {at}", False)
        if kind == 3:
            source = self.literal(part, dtype)
            return self.formed("scatter", x, f"{d}, {at}, {source}")
        if kind == 4:
            return self.formed("scatter", x, f"{d}, {at}, {self.number()}")
        if kind == 5:
            return self.formed("scatter_add", x, f"{d}, {at}, {self.literal(part, dtype)}")
        if kind == 6 and not t.is_complex() and t.dtype != self.torch.bool:
            reduce = self.pick(("sum", "prod", "mean", "amax", "amin"))
            include = self.pick(("", ", include_self=False"))
            args = f"{d}, {at}, {self.literal(part, dtype)}, {reduce!r}{include}"
            return self.formed("scatter_reduce", x, args)
        if kind == 7:
            return self.formed("index_select", x, f"{d}, {few}", False)
        if kind == 8:
            alpha = self.pick(("", ", alpha=2"))
            return self.formed("index_add", x, f"{d}, {few}, {self.literal(along, dtype)}{alpha}")
        if kind == 9:
            return self.formed("index_copy", x, f"{d}, {few}, {self.literal(along, dtype)}")
        if kind == 10:
            return self.formed("index_fill", x, f"{d}, {few}, {self.number()}", True, False)
        if kind == 11:
            flat = self.places(t.numel(), self.pick(((), (2,), (2, 2))))
            return self.formed("take", x, flat, False, False)
        index = self.places(shape[0] if shape else 1, (2,))
        value = self.literal(self.pick(((), shape[1:])) if math.prod(shape) < 40 else (), dtype)
        gather = self.pick(("", ", accumulate=True"))
        return self.formed("index_put", x, f"({index},), {value}{gather}", True, False)

    def masked(self) -> Step:
        x = self.tensor()
        bools = [n for n in self.names if self.env[n].dtype == self.torch.bool]
        mask = self.literal(tuple(self.env[x].shape), "bool")
        if bools and self.chance(40):
            mask = self.pick(bools)
        match self.integer(0, 3):
            case 0:
                return self.formed("masked_select", x, mask, False)
            case 1 | 2:
                value = self.number()
                if self.chance(20):
                    value = self.tensor(lambda t: t.ndim == 0)
                return self.formed("masked_fill", x, f"{mask}, {value}", True, False)
            case _:
                source = self.tensor(lambda t: t.dtype == self.env[x].dtype)
                return self.formed("masked_scatter", x, f"{mask}, {source}", True, False)

    # ---- order -----------------------------------------------------------------------------------

    def order(self) -> Step:
        x = self.tensor()
        t = self.env[x]
        d = self.dim(x)
        down = self.pick((", descending=True", ""))
        v, i = self.new(), self.new()
        kind = self.integer(0, 8)
        if kind <= 1:
            return Step(f"{v}, {i} = {x}.sort(dim={d}{down}, stable=True)")
        if kind == 2:
            return Step(f"{i} = torch.argsort({x}, dim={d}{down}, stable=True)")
        if kind in (3, 4):
            distinct = [n for n in self.names if self.distinct(self.env[n])]
            if distinct:
                x = self.pick(distinct)
                d = self.dim(x)
                k = self.integer(0, max(self.size_at(x, d), 0))
                name = self.pick((f"topk({k}, {d})", f"kthvalue({max(k, 1)}, {d})"))
                if self.chance(30):
                    name = f"{self.pick(('median', 'nanmedian', 'mode'))}({d})"
                return Step(f"{v}, {i} = {x}.{name}")
        if kind == 5 and not t.is_complex():
            return Step(f"{v}, {i} = torch.unique({x}, return_inverse=True)")
        if kind == 6 and not t.is_complex():
            return Step(f"{v}, {i} = torch.unique_consecutive({x}, return_counts=True)")
        if kind == 7:
            right = self.pick(("", ", right=True"))
            return Step(f"{v} = torch.searchsorted({x}.sort().values, {self.partner(x)}{right})")
        name = self.pick(("flip", "roll", "nonzero", "argwhere", "flipud", "rot90", "tril", "triu"))
        args = {"flip": f"({d},)", "roll": f"{self.integer(-2, 3)}, {d}", "rot90": ""}.get(name, "")
        return Step(f"{v} = torch.{name}({x}{', ' if args else ''}{args})", moves=True)

    def distinct(self, t: Any) -> bool:
        if t.is_complex() or t.dtype == self.torch.bool:
            return False
        flat = t.detach().double().reshape(-1)
        return bool(flat.isfinite().all()) and flat.unique().numel() == flat.numel()

    # ---- joining, products -----------------------------------------------------------------------

    def join(self) -> Step:
        x = self.tensor()
        d = self.dim(x)
        match self.integer(0, 5):
            case 0 | 1:
                y = self.tensor(lambda t: t.ndim == self.env[x].ndim)
                z = f", {x}" if self.chance(20) else ""
                name = self.pick(("cat", "cat", "hstack", "vstack", "concat", "dstack"))
                at = "" if "stack" in name else f", dim={d}"
                return Step(f"{self.new()} = torch.{name}([{x}, {y}{z}]{at})")
            case 2:
                y = self.tensor(lambda t: t.shape == self.env[x].shape)
                return Step(f"{self.new()} = torch.stack([{x}, {y}], {d})")
            case 3:
                reps = self.pick(((2,), (1, 2), (2, 1), (0,), (1, 1, 2)))
                return Step(f"{self.new()} = {x}.{self.pick(('repeat', 'tile'))}({reps})")
            case 4:
                x = self.tensor(lambda t: t.ndim > 0)
                d = self.dim(x)
                if self.env[x].ndim == 0:
                    return Step(f"{self.new()} = {x}.repeat_interleave(2)")
                pick = self.pick((f"2, {d}", "2", f"torch.tensor([1, 2]), {d}", f"0, {d}"))
                return Step(f"{self.new()} = {x}.repeat_interleave({pick})")
            case _:
                y = self.tensor(lambda t: t.ndim <= 1)
                return Step(f"{self.new()} = torch.outer({x}, {y})")

    def product(self) -> Step:
        x = self.tensor(lambda t: t.ndim >= 1)
        t = self.env[x]
        k = t.shape[-1] if t.ndim else 1
        dtype = str(t.dtype)[6:]
        n = self.pick((0, 1, 2, 3))
        match self.integer(0, 8):
            case 0 | 1:
                other = self.pick(((k,), (k, n), (2, k, n), (1, k, n)))
                y = self.literal(other, dtype)
                if t.ndim == 2 and self.chance(25):
                    y = f"{x}.mT"
                return self.formed("matmul", x, y, False)
            case 2:
                return Step(f"{self.new()} = {x} @ {self.tensor()}")
            case 3:
                y = self.literal((t.shape[0] if t.ndim else 1, k, n), dtype)
                return self.formed("bmm", x, y, False)
            case 4:
                return self.formed("mm", x, self.literal((k, n), dtype), False)
            case 5:
                eq, shapes = self.pick((
                    ("...i,ij->...j", (k, n)), ("...i,i->...", (k,)), ("...i->...", None),
                    ("ij->ji", None), ("ij,ij->i", tuple(t.shape)), ("ii->i", None),
                    ("...i,...i", (k,)), ("...ij->...ji", None), ("ij,kj->ik", (n, k)),
                ))  # fmt: skip
                if shapes is None:
                    return Step(f"{self.new()} = torch.einsum({eq!r}, {x})")
                y = self.literal(shapes, dtype) if math.prod(shapes) <= 60 else x
                return Step(f"{self.new()} = torch.einsum({eq!r}, {x}, {y})")
            case 6:
                return Step(
                    f"{self.new()} = {x}.{self.pick(('dot', 'mv', 'inner'))}({self.tensor()})"
                )
            case 7:
                m = t.shape[0] if t.ndim else 1
                a = self.pick(("", ", beta=2", ", alpha=0.5", ", beta=0"))
                y = self.literal((k, n), dtype)
                base = self.literal(self.pick(((), (n,), (m, n))), dtype)
                return Step(f"{self.new()} = torch.addmm({base}, {x}, {y}{a})")
            case _:
                w = self.literal((n, k), dtype)
                return Step(f"{self.new()} = torch.nn.functional.linear({x}, {w})")

    # ---- copies, flags ---------------------------------------------------------------------------

    def copying(self) -> Step:
        x = self.tensor()
        t = self.env[x]
        new = self.new()
        last = ", memory_format=torch.channels_last" if t.ndim == 4 else ""
        form = self.pick(("", "memory_format=torch.contiguous_format", last[2:]))
        match self.integer(0, 9):
            case 0:
                return Step(f"{new} = {x}.clone({form})", moves=True)
            case 1:
                return Step(f"{new} = {x}.contiguous({form})", moves=True)
            case 2 | 3:
                return Step(f"{new} = {x}.to({self.dtype()}{self.pick(('', ', copy=True', last))})")
            case 4:
                name = self.pick(("float", "double", "long", "int", "bool", "half", "bfloat16"))
                return Step(f"{new} = {x}.{name}()")
            case 5:
                name = self.pick(("zeros_like", "ones_like"))
                more = self.pick(("", f", dtype={self.dtype()}", ", requires_grad=True", last))
                return Step(f"{new} = torch.{name}({x}{more})")
            case 6:
                return Step(f"{new} = {x}.type_as({self.tensor()})")
            case 7:
                return Step(f"{new} = torch.full_like({x}, {self.number()})")
            case 8:
                shape = self.shape(20)
                name = self.pick(("new_zeros", "new_ones"))
                return Step(f"{new} = {x}.{name}({shape})")
            case _:
                return Step(f"{new} = {self.literal(self.shape(20), self.pick(DTYPES))}")

    def writing(self) -> Step:
        x = self.tensor()
        match self.integer(0, 6):
            case 0 | 1:
                return Step(f"{x}.copy_({self.partner(x)})", x)
            case 2:
                return Step(f"{x}.fill_({self.number()})", x)
            case 3:
                return Step(f"{x}.zero_()", x)
            case 4:
                return Step(f"{x}.fill_diagonal_({self.number()})", x)
            case 5:
                return Step(f"{x}.{self.pick(('t_', 'squeeze_', 'detach_'))}()")
            case _:
                d = self.dim(x)
                call = self.pick((f"transpose_({d}, {self.dim(x)})", f"unsqueeze_({d})"))
                return Step(f"{x}.{call}")

    def resizing(self) -> Step:
        x = self.tensor(lambda t: t.numel() > 0 and not t.requires_grad)
        shape = self.shape(20)
        numel = math.prod(shape)
        # Memory beyond the old is uninitialised: it is filled in the same line.
        t = self.env[x]
        fill = f"; {x}.data.fill_(1)" if numel and not t.is_inference() else ""
        return Step(f"{x}.resize_({shape}){fill}", None)

    def flags(self) -> Step:
        x = self.tensor()
        match self.integer(0, 4):
            case 0 | 1:
                x = self.tensor(lambda t: t.is_floating_point() and not t.requires_grad)
                return Step(f"{x}.requires_grad_()")
            case 2:
                x = self.tensor()
                return Step(f"{x}.requires_grad_(False)")
            case 3:
                return Step(f"{self.new()} = {x}.detach().requires_grad_()")
            case _:
                return Step(f"{self.new()} = {x}.data", moves=True)

    def step(self) -> Step:
        """The next line."""
        made: Step = self.pick(self.families)()
        if self.chance(10) and ";" not in made.code:
            return made._replace(code=f"with torch.no_grad(): {made.code}")
        return made

    @property
    def families(self) -> Sequence[Callable[[], Step]]:
        return (
            self.unary, self.unary, self.binary, self.binary, self.binary, self.operator,
            self.operator, self.shift, self.ternary, self.ternary, self.reduction, self.reduction,
            self.reduction, self.scan, self.softmax, self.view, self.view, self.view, self.view,
            self.view, self.several, self.read, self.read, self.read, self.write, self.write,
            self.scatter, self.scatter, self.masked, self.order, self.order, self.join, self.join,
            self.product, self.product, self.copying, self.copying, self.writing, self.writing,
            self.resizing, self.flags, self.flags,
        )  # fmt: skip
