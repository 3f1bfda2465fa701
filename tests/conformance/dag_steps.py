"""Rarer steps of random autograd programs; `Maker` in `dag_programs.py` has the common ones.

Types and complex numbers, views by geometry, writes that change the shape or the memory, operators
of several results, Functions that misbehave, checkpoints, modules with hooks, gradients in batches
and along edges, and the modes that a step may run in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

OPERATORS = (
    "max(0)[0]", "min(-1)[0]", "sort()[0]", "sort(0)[0]", "cumsum(0)", "prod()", "var()",
    "std(0)", "norm()", "logsumexp(0)", "softmax(-1)", "log_softmax(0)", "relu()", "clamp(-1, 1)",
    "pow(2)", "square()", "reciprocal()", "flip(0)", "roll(1)", "repeat(2, 1)", "tril()", "max()",
    "topk(1)[0]", "median()", "index_select(0, torch.tensor([0, 0]))", "sign()", "round()",
    "masked_fill(torch.tensor(True), 3)", "gather(0, torch.zeros((1,), dtype=torch.int64))",
    "unique()", "argmax()", "isnan()", "repeat_interleave(2)", "nansum()", "cummax(0)[0]",
    "trace()", "diag()", "diag_embed()", "erf()", "softplus()", "count_nonzero()", "kthvalue(1)[0]",
    "logcumsumexp(0)", "amin(0)", "mode()[0]", "any()", "floor()", "frac()", "log1p()", "expm1()",
)  # fmt: skip
PAIRS = (
    "torch.maximum({x}, {y})", "torch.addcmul({x}, {y}, {x})", "torch.lerp({x}, {y}, 0.3)",
    "torch.atan2({x}, {y})", "torch.add({x}, {y}, alpha=2)", "torch.outer({x}, {y})",
    "torch.where({x} > {y}, {x}, 1.0)", "torch.hstack([{x}, {y}])", "torch.vstack([{x}, {y}])",
    "torch.matmul({x}, {y})", "torch.einsum('...,...->...', {x}, {y})", "{x} / {y}", "{x} % {y}",
    "torch.cat([{x}, {y}.bool()])", "torch.stack([{x}, {y} > 0])",
    "torch.broadcast_tensors({x}, {y})[0]", "torch.meshgrid({x}, {y}, indexing='ij')[1]",
    "torch.rsub({x}, {y})", "2 ** {x}",
    "torch.nn.functional.mse_loss({x}, {y})", "{x}.masked_select({y} > 0)", "{x}[{y} > 0]",
    "torch.nn.functional.linear({x}, {y})", "{x}.index_add(0, torch.tensor([0]), {y}[:1])",
    "torch.logaddexp({x}, {y})", "{x}.float() * {y}",
    "torch.addmm({x}, {y}, {x})", "{x}.type_as({y})",
    "{x}.scatter(0, torch.zeros_like({y}, dtype=torch.int64), {y})",
)  # fmt: skip
GEOMETRY = (
    "as_strided((2,), (1,))", "unfold(0, 1, 1)", "movedim(0, -1)",
    "unflatten(0, (1, -1))", "squeeze((0,))", "adjoint()", "broadcast_to((2, 2, 3))", "ravel()",
    "contiguous()", "swapaxes(0, -1)", "to(torch.float64)", "view(torch.float64)", "data",
    "[None]", "[..., None]", "[:, 0]", "[::2]", "detach()[:1]", "hsplit(1)[0]",
    "expand(1, *[-1])", "T", "diagonal()[:1]", "[0, ...]", "unsqueeze(-1)", "tensor_split(1)[0]",
    "view_as_real()" , "as_strided_copy((2,), (1,))", "select_copy(0, 0)", "numpy().sum()",
)  # fmt: skip
TYPES = (
    "float()", "double()", "to(torch.complex128)", "real", "imag", "conj()", "resolve_conj()",
    "long()", "bool()", "abs()", "angle()", "to(torch.float32)", "mH", "is_leaf", "half()",
    "conj().imag", "sgn()", "to(torch.complex64)",
)  # fmt: skip
WRITES = (
    "masked_fill_(torch.tensor(True), 3)", "index_fill_(0, torch.tensor([0]), 2)", "clamp_(-1, 1)",
    "relu_()", "squeeze_()", "unsqueeze_(0)", "t_()", "transpose_(0, -1)", "pow_(2)", "abs_()",
    "exp_()", "sign_()", "round_()", "cumsum_(0)", "tril_()", "squeeze_(0)", "swapaxes_(0, -1)",
    "index_put_((torch.tensor([0]),), torch.tensor(2.0, dtype=torch.float64))", "normal_(0, 0)",
    "resize_(1)", "requires_grad_()", "as_strided_((2,), (1,))", "set_()", "eq_(1)", "copysign_(1)",
    "masked_scatter_(torch.tensor(True), torch.ones(99, dtype=torch.float64))", "floor_()",
    "fill_diagonal_(1)", "logical_not_()", "lt_(1)", "threshold_(0, 1)", "erf_()", "reciprocal_()",
)  # fmt: skip
PAIR_WRITES = (
    "{x} += {y}", "{x} *= {y}", "{x}.addcmul_({y}, {y})", "{x}.lerp_({y}, 0.5)", "{x}.set_({y})",
    "{x}.masked_fill_({y} > 0, 2)", "torch.add({y}, {y}, out={x})",
    "{x}.grad = {y}",
    "{x}.index_add_(0, torch.tensor([0]), {y}[:1])", "{x}.index_copy_(0, torch.tensor([0]),"
    " {y}[:1])", "{x}.resize_as_({y})", "{x}.div_({y})", "{x}[{y} > 0] = 0", "{x}.fill_({y})",
    "{x}.masked_fill_({x} > 0, {y})", "{x}.clamp_(min={y})", "{x}.where({x} > 0, {y}).add_(1)",
    "{x}[{x} > 0] = {y}", "torch.sin({y}, out={x})", "{x}.pow_({y})", "{x}.maximum({y})",
    "{x}.grad.copy_({y})", "{x}.swap = {y}",
)  # fmt: skip
GRADS = (
    "{x}.grad.zero_()", "{x}.grad.mul_(2)", "{x}.grad.detach_()", "del {x}.grad",
    "{x}.grad = {x}.grad.clone()", "{x}.grad.data.add_(1)", "{x}.grad = {x}.grad[:]",
    "{x}.grad = {x}.detach()", "{x}.grad = torch.ones(7)", "{x}.grad = {x}",
)  # fmt: skip
MODES = (
    "torch.inference_mode()", "torch.enable_grad()", "torch.no_grad(), torch.enable_grad()",
    "torch.set_grad_enabled(False)", "torch.autograd.detect_anomaly(check_nan=False)",
    "torch.autograd.detect_anomaly()", "torch.autograd.graph.save_on_cpu()",
    "torch.inference_mode(False)",
    "torch.autograd.graph.disable_saved_tensors_hooks('no')", "torch.autograd.set_multithreading_"
    "enabled(False)", "torch.autograd.graph.allow_mutation_on_saved_tensors()",
)  # fmt: skip
ONE = ("Once", "Saves", "Same2", "Quiet", "Nested", "WrongCount", "WrongShape", "Tail", "Outside",
       "Flags", "NotMarked", "ViewOfWritten", "Grows", "AsFloat", "Late", "Detached")  # fmt: skip
TWO = ("WriteBoth", "Swap", "TwoViews", "Optional", "WriteOne", "Linear")
BLOCKS = ("plain", "write", "function", "hook", "none", "boom", "grad", "nested")


class RareSteps:
    """The rarer steps; `Maker` has what they pick from."""

    pick: Callable[[Sequence[Any]], Any]
    chance: Callable[[int], bool]
    integer: Callable[[int, int], int]
    new: Callable[[], str]
    hook: Callable[[], str]
    tensor: Callable[..., str]
    partner: Callable[[str], str]
    recorded: Callable[[], str]
    wants: Callable[[], str]
    guarded: Callable[[str], str]
    gradient: Callable[[str], str]
    options: Callable[[], str]
    common: Callable[[], str]
    handles: int
    modules: int

    def rare(self) -> str:
        """One of the steps below."""
        kinds = (
            (8, self.operator), (5, self.geometry), (4, self.types), (8, self.rare_write),
            (3, self.grads), (5, self.mode), (8, self.rare_function), (5, self.checkpoint),
            (5, self.module), (3, self.edges), (3, self.batched), (3, self.saved),
            (3, self.rare_hook), (2, self.copies),
        )  # fmt: skip
        at = self.integer(0, sum(n for n, _ in kinds) - 1)
        for n, make in kinds:
            if at < n:
                return make()
            at -= n
        raise AssertionError

    def operator(self) -> str:
        x = self.tensor()
        if self.chance(45):
            return self.guarded(f"{self.new()} = {x}.{self.pick(OPERATORS)}")
        code = self.pick(PAIRS).format(x=x, y=self.partner(x))
        return self.guarded(f"{self.new()} = {code}")

    def geometry(self) -> str:
        how = self.pick(GEOMETRY)
        dot = "" if how.startswith("[") else "."
        return self.guarded(f"{self.new()} = {self.tensor()}{dot}{how}")

    def types(self) -> str:
        x = self.tensor()
        if self.chance(25):
            how = self.pick(("view_as_real", "complex"))
            return f"{self.new()} = torch.{how}({x}{', ' + x if how == 'complex' else ''})"
        return self.guarded(f"{self.new()} = {x}.{self.pick(TYPES)}")

    def rare_write(self) -> str:
        x = self.tensor(lambda t: not (t.requires_grad and t.is_leaf))
        if self.chance(50):
            code = f"{x}.{self.pick(WRITES)}"
        else:
            code = self.pick(PAIR_WRITES).format(x=x, y=self.partner(x))
        return f"with torch.no_grad(): {code}" if self.chance(25) else code

    def grads(self) -> str:
        x = self.tensor(lambda t: t.grad is not None)
        return self.pick(GRADS).format(x=x)

    def mode(self) -> str:
        code = self.common()
        if code.startswith("with") or "requires_grad=True" in code:
            return code
        return f"with {self.pick(MODES)}: {code}"

    def rare_function(self) -> str:
        x = self.tensor()
        if self.chance(65):
            return self.guarded(f"{self.new()} = {self.pick(ONE)}.apply({x})")
        y = self.pick((self.partner(x), self.tensor(), x))
        return self.guarded(f"{self.new()}, {self.new()} = {self.pick(TWO)}.apply({x}, {y})")

    def checkpoint(self) -> str:
        x = self.tensor()
        more = ", ".join(["", *(f"{k}={self.pick((True, False))}" for k in ("use_reentrant",))])
        if self.chance(15):
            more += self.pick((", early_stop=False", ", preserve_rng_state=False",
                               ", determinism_check='none'"))  # fmt: skip
        block = f"block({self.hook()}, '{self.pick(BLOCKS)}')"
        return self.guarded(f"{self.new()} = checkpoint({block}, {x}, {self.partner(x)}{more})")

    def module(self) -> str:
        if not self.modules or self.chance(25):
            self.modules += 1
            return f"m{self.modules} = Scale('m{self.modules}'); {self.new()} = m{self.modules}.w"
        m = f"m{self.integer(1, self.modules)}"
        how = self.integer(0, 9)
        if how < 5:
            return self.guarded(f"{self.new()} = {m}({self.tensor()})")
        self.handles += 1
        name = f"kept['k{self.handles}'] = {m}."
        reply = self.pick(("none", "none", "change", "boom"))
        if how < 7:
            return f"{name}register_full_backward_hook(post_module({self.hook()}, '{reply}'))"
        if how < 9:
            return f"{name}register_full_backward_pre_hook(pre_module({self.hook()}, '{reply}'))"
        return f"{name}register_forward_hook(forward_module({self.hook()}, '{reply}'))"

    def edge(self) -> str:
        return f"torch.autograd.graph.get_gradient_edge({self.wants()})"

    def edges(self) -> str:
        x, e = self.recorded(), self.edge()
        return self.pick((
            f"{self.new()}, = torch.autograd.grad({x}.sum(), [{e}]{self.options()})",
            f"{self.new()}, = torch.autograd.grad([torch.autograd.graph.get_gradient_edge({x})],"
            f" [{self.wants()}], [torch.ones_like({x})]{self.options()}, allow_unused=True)",
            f"torch.autograd.backward([torch.autograd.graph.get_gradient_edge({x})],"
            f" [torch.ones_like({x})]{self.options()})",
            f"{x}.sum().backward(inputs=[{e}]{self.options()})",
            f"{x}.sum().backward(inputs={self.wants()}{self.options()})",
            f"{x}.backward(torch.ones(2, dtype=torch.float64){self.options()})",
            f"{x}.sum().backward(inputs=[]{self.options()})",
        ))  # fmt: skip

    def batched(self) -> str:
        x = self.recorded()
        names = [self.wants() for _ in range(self.integer(1, 2))]
        g = f"torch.stack([torch.ones_like({x}), torch.full_like({x}, 2)])"
        results = "".join(self.new() + ", " for _ in names)
        return (
            f"{results} = torch.autograd.grad({x}, [{', '.join(names)}], {g},"
            f" is_grads_batched=True, allow_unused=True{self.pick(('', ', retain_graph=True'))})"
        ).replace(",  =", ", =")

    def saved(self) -> str:
        x = self.recorded()
        reply = self.pick(("keep", "copy", "double", "boom", "number"))
        slot = self.pick(("self", "other", "result"))
        return self.pick((
            f"{x}.grad_fn._raw_saved_result.register_hooks(*pair({self.hook()}, '{reply}'))",
            f"with packed({self.hook()}, '{reply}'), packed({self.hook()}, 'keep'):"
            f" {self.new()} = {self.tensor()} * {x}",
            f"with packed({self.hook()}, '{reply}'): {self.new()} = Saves.apply({x})",
            f"log.append(('saved', seen({x}.grad_fn._saved_{slot})))",
        ))  # fmt: skip

    def rare_hook(self) -> str:
        self.handles += 1
        key = f"kept['k{self.handles}']"
        x = self.wants()
        what = self.pick(("register", "remove", "backward", "grad", "float", "detach"))
        return f"{key} = {x}.register_hook(doing({self.hook()}, '{what}', '{key[6:-2]}', {x}))"

    def copies(self) -> str:
        x = self.tensor()
        return self.pick((
            f"{self.new()} = copy.deepcopy({x})",
            f"{self.new()} = torch.as_tensor({x})",
            f"{self.new()} = {x}.new_tensor({x})",
            f"{self.new()} = {x}.requires_grad_()",
            f"torch.autograd.graph.increment_version({x})",
            f"with torch.autograd._unsafe_preserve_version_counter({x}): {x}.mul_(2)",
            f"log.append(('numpy', {x}.numpy().tolist()))",
            f"log.append(('item', {x}.item()))",
            f"{self.new()} = {x}.detach().requires_grad_()",
        ))  # fmt: skip
