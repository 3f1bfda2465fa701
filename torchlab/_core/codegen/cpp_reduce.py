"""How each reduction accumulates in C++: the variable, its start, one step, the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torchlab._core.codegen.cpp_ops import convert, value_type
from torchlab._core.codegen.loop_ir import Reduction
from torchlab._core.codegen.scalar_types import CATEGORY, FLOATING, ITEMSIZE, compute_type

SHORT = 1024
"""Elements up to which a float32 sum is kept in float32."""


@dataclass
class Accumulator:
    """The accumulator of `node` in variable `name`; `tile` is "[1024]" where there is one per
    column."""

    node: Reduction
    name: str
    tile: str
    literal: Callable[[bool | int | float, str], str]

    @property
    def search(self) -> bool:
        return self.node.kind.startswith("arg")

    @property
    def dtype(self) -> str:
        """Sums and products of floats are kept in double, of integers in int64; flags in int32.
        Short float32 rows are summed in float32: the vector's lanes take at most SHORT / 16
        elements each, and mixing widths in one loop costs a sixth of a whole layer norm."""
        if self.node.kind in ("sum", "mean") and not self.tile and self.node.count <= SHORT:
            if compute_type(self.node.dtype) == compute_type(self.node.input_dtype) == "float32":
                return "float32"
        if self.node.kind in ("sum", "mean", "prod"):
            return "float64" if CATEGORY[self.node.dtype] == FLOATING else "int64"
        if self.node.kind in ("any", "all"):
            return "int32"
        return compute_type(self.node.input_dtype)

    @property
    def place(self) -> str:
        return f"{self.name}[j]" if self.tile else self.name

    @property
    def found(self) -> str:
        return f"{self.name}_at[j]" if self.tile else f"{self.name}_at"

    def start(self) -> str:
        """The neutral element as text."""
        kind, dtype = self.node.kind, self.dtype
        if kind in ("max", "argmax", "min", "argmin"):
            low = kind.endswith("max")
            if CATEGORY[dtype] == FLOATING:
                return self.literal(float("-inf") if low else float("inf"), dtype)
            if dtype == "bool":
                return self.literal(not low, dtype)
            bits, unsigned = 8 * ITEMSIZE[dtype], dtype.startswith("u")
            smallest = 0 if unsigned else -(2 ** (bits - 1))
            return self.literal(smallest if low else smallest + 2**bits - 1, dtype)
        return self.literal(1 if kind in ("prod", "all") else 0, dtype)

    def declare(self) -> list[str]:
        """The declarations (with a start value if there is no tile)."""
        kind = value_type(self.dtype)
        if self.tile:
            arrays = [f"{kind} {self.name}{self.tile};"]
            return arrays + ([f"int64 {self.name}_at{self.tile};"] if self.search else [])
        return [f"{kind} {self.name} = {self.start()};"] + (
            [f"int64 {self.found} = 0;"] if self.search else []
        )

    def clear(self) -> str:
        """Give a tile's element its start value."""
        return f"{self.place} = {self.start()};" + (f" {self.found} = 0;" if self.search else "")

    def clause(self) -> str:
        """The reduction clause that lets the loop vectorise; "" where the order matters."""
        match self.node.kind:
            case "sum" | "mean":
                return f"reduction(+ : {self.name})"
            case "prod":
                return f"reduction(* : {self.name})"
            case "any":
                return f"reduction(| : {self.name})"
            case "all":
                return f"reduction(& : {self.name})"
            case "max" | "min":
                return f"reduction({self.node.kind}imum : {self.name})"
        return ""

    def needs(self) -> tuple[str, str] | None:
        """The (name, type) of a reduction that OpenMP must be told of, since NaN has to win in
        it."""
        if self.node.kind in ("max", "min"):
            return f"{self.node.kind}imum", value_type(self.dtype)
        return None

    def update(self, value: str, position: str) -> str:
        """One step of the loop, as lines, with the element `value` at `position` in what is reduced."""
        place, source = self.place, self.node.input_dtype
        match self.node.kind:
            case "sum" | "mean":
                return f"{place} += {convert(value, source, self.node.dtype)};"
            case "prod":
                return f"{place} *= {convert(value, source, self.node.dtype)};"
            case "any":
                return f"{place} |= {value} != 0;"
            case "all":
                return f"{place} &= {value} != 0;"
            case "max" | "min":
                kind = value_type(self.dtype)
                return f"{place} = tl_{self.node.kind}imum<{kind}>({place}, {value});"
        sign = ">" if self.node.kind == "argmax" else "<"
        better = (  # first NaN wins
            f"({value} {sign} {place}) | (({value} != {value}) & ({place} == {place}))"
        )
        if self.tile:
            better_name = f"{self.name}_better"
            return (
                f"const bool {better_name} = {better};\n"
                f"{self.found} = {better_name} ? {position} : {self.found};\n"
                f"{place} = {better_name} ? {value} : {place};"
            )
        return f"if ({better}) {{ {place} = {value}; {self.found} = {position}; }}"

    def result(self) -> str:
        """The finished value, in the type it is computed in."""
        if self.search:
            return self.found
        text = self.place
        if self.node.kind == "mean":
            text = f"({text} / {self.node.count})"
        return convert(text, self.dtype, self.node.dtype)
