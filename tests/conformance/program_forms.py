"""More steps of random programs: forms that write.

A `FormMaker` adds to the steps of `program_steps.Maker` advanced indexing on the left side,
scatters in place, masks of every kind, 0-d operands, writes through expanded and diagonal views,
copies of narrowed and selected parts, and exchanges of `.data`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tests.conformance.program_steps import Maker, Step


class FormMaker(Maker):
    """Writes these steps, too."""

    def zero_dim(self) -> Step:
        """0-d tensors and numbers beside tensors of any type."""
        x = self.tensor()
        number = f"torch.tensor({self.number()})"
        if self.chance(50):
            number = f"{self.tensor(lambda t: t.numel() > 0)}.reshape(-1)[0]"
        name = self.pick(("add", "sub", "mul", "div", "pow", "fmod", "maximum", "where", "clamp"))
        new = self.new()
        match name:
            case "where":
                return Step(f"{new} = torch.where({x} > 0, {number}, {x})")
            case "clamp":
                return Step(f"{new} = {x}.clamp(min={number})")
            case "maximum":
                return Step(f"{new} = torch.maximum({x}, {number})")
        if self.chance(30):
            return Step(f"{new} = {x}.{name}_({number}.clone())", x)
        return Step(f"{new} = torch.{name}({x}, {number})")

    def part(self, x: str) -> str:
        """A view of `x`, written where it stands."""
        t = self.env[x]
        d = self.dim(x)
        size = self.size_at(x, d)
        return self.pick((
            f"{x}.diagonal()", f"{x}.diagonal({self.integer(-1, 1)}, {d}, {self.dim(x)})",
            f"{x}.narrow({d}, {self.integer(0, max(size - 1, 0))}, 1)",
            f"{x}.select({d}, {self.integer(0, max(size - 1, 0))})",
            f"{x}.unfold({d}, {self.pick(('1, 1', '2, 2', '1, 2'))})",
            f"{x}.expand({', '.join(['-1'] * t.ndim) or '()'})",
            f"{x}.expand(2, {', '.join(['-1'] * t.ndim)})" if t.ndim else f"{x}.expand(2)",
            f"{x}.unsqueeze({self.integer(-1, 0)})", f"{x}.movedim({d}, 0)", f"{x}.view(-1)",
            f"{x}.as_strided(({self.pick((1, 2))},), ({self.pick((0, 1, 2))},))",
            f"{x}.split({self.pick((1, 2))}, {d})[0]", f"{x}.detach()", f"{x}.real", f"{x}.mT",
            f"{x}[{self.index(x)}]",
        ))  # fmt: skip

    def through(self) -> Step:
        """A write through a view that nobody keeps."""
        x = self.tensor()
        part = self.part(x)
        value = self.number() if self.chance(60) else f"torch.tensor({self.number()})"
        call = self.pick((
            f"mul_({value})", f"add_({value})", f"fill_({value})", "zero_()", "neg_()", "exp_()",
            f"copy_({self.tensor(lambda t: t.ndim <= 1)})", f"clamp_(max={self.pick(('1', '0'))})",
            f"sub_({value}, alpha=2)", "sigmoid_()", f"masked_fill_(torch.tensor(True), {value})",
            "logical_not_()", f"pow_({self.pick(('2', '3'))})",
        ))  # fmt: skip
        return Step(f"{part}.{call}", x)

    def kept(self) -> Step:
        """A view under a name, of those that `view` does not make."""
        x = self.tensor()
        return Step(f"{self.new()} = {self.part(x)}", moves=True)

    def copy_of_part(self) -> Step:
        x = self.tensor()
        d = self.dim(x)
        size = self.size_at(x, d)
        call = self.pick((
            f"narrow_copy({x}, {d}, {self.integer(0, size)}, {self.integer(0, 1)})",
            f"select_copy({x}, {d}, {self.integer(0, max(size - 1, 0))})",
            f"diagonal_copy({x})", f"unsqueeze_copy({x}, {d})", f"t_copy({x})",
            f"squeeze_copy({x})", f"permute_copy({x}, {tuple(reversed(range(self.env[x].ndim)))})",
            f"expand_copy({x}, {tuple(self.env[x].shape)})", f"alias_copy({x})",
            f"diag_embed({x})", f"select_scatter({x}.contiguous() + 0, torch.tensor(1), {d}, 0)",
            f"slice_scatter({x}.contiguous() + 0, {x}, {d})",
            f"diagonal_scatter({x}.contiguous() + 0, torch.tensor([1.0]))",
        ))  # fmt: skip
        return Step(f"{self.new()} = torch.{call}")

    def assign_at(self) -> Step:
        """Indices and masks on the left side, as `index_put_` and as `[...] =`."""
        x = self.tensor(lambda t: t.ndim > 0)
        t = self.env[x]
        size = self.size_at(x, 0)
        count = self.pick((1, 2, 3))
        at = self.places(size, (count,))
        value = self.number()
        mask = self.literal((size,), "bool")
        whole = self.literal(tuple(t.shape), "bool")
        source = self.literal((count,), self.pick((str(t.dtype)[6:], "float32", "int64")))
        code = self.pick((
            f"{x}[{at}] = {value}", f"{x}[{mask}] = {value}", f"{x}[{whole}] = {value}",
            f"{x}[{at}, ...] = {source}", f"{x}[..., {self.pick((0, -1))}] = {value}",
            f"{x}[{whole}] *= 2", f"{x}[{at}] += {value}",
            f"{x}.index_put_(({at},), torch.tensor({value}), accumulate=True)",
            f"{x}.index_put_(({mask},), torch.tensor({value}))",
            f"{x}[{x} > 0] = {value}", f"{x}[~{whole}] = torch.tensor([{value}])",
        ))  # fmt: skip
        return Step(code, x)

    def scatter_into(self) -> Step:
        x = self.tensor(lambda t: t.ndim > 0)
        t = self.env[x]
        d = self.dim(x)
        size = self.size_at(x, d)
        dtype = str(t.dtype)[6:]
        shape = tuple(t.shape)
        if math.prod(shape) > 40 or size == 0:
            shape = tuple(min(s, 2) for s in shape) if size else shape
        at = self.places(size, shape)
        source = self.literal(shape, dtype if self.chance(85) else "float32")
        call = self.pick((
            f"scatter_({d}, {at}, {self.number()})", f"scatter_({d}, {at}, {source})",
            f"scatter_add_({d}, {at}, {source})",
            f"scatter_({d}, {at}, {self.number()}, reduce={self.pick(('add', 'multiply'))!r})",
            f"index_fill_({d}, {self.places(size, (2,))}, {self.number()})",
            f"put_({self.places(t.numel(), (2,))}, {self.literal((2,), dtype)})",
            f"masked_scatter_({self.literal(tuple(t.shape), 'bool')}, {source})",
        ))  # fmt: skip
        return Step(f"{x}.{call}", x)

    def exchange(self) -> Step:
        """Another memory for the tensor."""
        if any(self.env[n].requires_grad for n in self.names):  # see `program_steps`
            return self.zero_dim()
        x = self.tensor()
        y = self.tensor(lambda t: t.dtype == self.env[x].dtype)
        if x == y or self.chance(40):
            return Step(f"{x}.data = torch.ones({self.shape(20)}, dtype={self.env[x].dtype})")
        return Step(self.pick((f"{x}.data = {y}.data", f"{x}.data = {y}.clone().detach()")))

    @property
    def families(self) -> Sequence[Callable[[], Step]]:
        return (
            *super().families, self.zero_dim, self.zero_dim, self.through, self.through,
            self.through, self.kept, self.copy_of_part, self.assign_at, self.assign_at,
            self.scatter_into, self.exchange,
        )  # fmt: skip
