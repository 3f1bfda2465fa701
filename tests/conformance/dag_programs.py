"""Random autograd programs, run in torchlab and in PyTorch side by side.

    python -m tests.conformance.dag_programs --count 5000 --seed 0      prints differences, shrunk

A program makes leaves, computes, takes views (of views, several at once), writes in place,
detaches, registers and removes hooks of every kind, calls custom Functions, packs saved tensors and
runs backward and grad in all their forms. After every step the libraries must agree on the class of
an exception, on the log that the hooks and Functions wrote (so on their order), and for every live
tensor on value, version, flags, base, `.grad` (None or not, its value, and which tensors share one)
and on the whole graph behind it: names of nodes, edges, output numbers, and the leaves it ends in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.conformance import program_driver
from tests.conformance.dag_steps import RareSteps
from tests.conformance.dag_world import seen, world
from tests.conformance.program_driver import Difference, quiet, told

SHAPES = ((2, 3), (2, 3), (2, 2), (3,), (2,), (1,), ())
UNARY = ("sin()", "cos()", "tanh()", "sigmoid()", "neg()", "abs()", "clone()", "exp()")
INPLACE = ("mul_(2)", "add_(1)", "sin_()", "neg_()", "zero_()", "tanh_()", "fill_(2)",
           "div_(2)", "sub_(1)", "sigmoid_()")  # fmt: skip
VIEWS = ("view(-1)", "reshape(-1)", "t()", "transpose(0, -1)", "[0]", "[..., :1]", "[1:]", "[:]",
         "unsqueeze(0)", "squeeze()", "squeeze(0)", "expand(2, 2, 3)", "diagonal()", "flatten()",
         "narrow(0, 0, 1)", "select(0, 1)", "view_as(A)", "detach()", "mT",
         "permute(1, 0)")  # fmt: skip
SEVERAL = ("split(1)", "unbind()", "chunk(2)", "tensor_split(2)", "unbind(-1)")
FUNCTIONS = ("Twice", "Result", "Same", "View", "Inner", "Fails", "Write")
# Refusals of PyTorch's that are accidents of its build.
NOT_TORCHLABS = (
    "INTERNAL ASSERT",
    "ZeroTensors are immutable",
    "unallocated storage",
    "Batching rule not implemented",
    "'NoneType' object has no attribute 'next_functions'",
    "Inplace update to inference tensor",  # PyTorch has written before it refuses
    "more than one element of the written-to tensor",  # unless the tensor is copied to itself
)


class Maker(RareSteps):
    """Writes steps; looks at PyTorch's tensors, so that most are valid."""

    def __init__(self, integer: Callable[[int, int], int], env: dict[str, Any], torch: Any) -> None:
        self.integer, self.env, self.torch = integer, env, torch
        self.count = 0
        self.label = 0
        self.handles = 0
        self.modules = 0

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent

    def new(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def hook(self) -> str:
        self.label += 1
        return f"'h{self.label}'"

    def tensors(self, want: Callable[[Any], bool] | None = None) -> list[str]:
        found = [n for n, v in self.env.items() if isinstance(v, self.torch.Tensor)]
        if want is not None and not self.chance(4):
            found = [n for n in found if _try(want, self.env[n])] or found
        return found

    def tensor(self, want: Callable[[Any], bool] | None = None) -> str:
        found = self.tensors(want)
        if self.chance(50):  # rather a late one
            return self.pick(found[-4:])
        return self.pick(found)

    def recorded(self) -> str:
        return self.tensor(lambda t: t.requires_grad and not t.is_leaf)

    def wants(self) -> str:
        return self.tensor(lambda t: t.requires_grad)

    def partner(self, x: str) -> str:
        shape = self.env[x].shape
        return self.tensor(lambda t: t.shape in (shape, ()) and t.is_floating_point())

    def leaf(self) -> str:
        shape = self.pick(SHAPES)
        n = int(np.prod(shape))
        values = [self.integer(-3, 5) / 2 for _ in range(n)]
        flag = ", requires_grad=True" if self.chance(75) else ""
        return (
            f"{self.new()} = torch.tensor({np.reshape(values, shape).tolist()},"
            f" dtype=torch.float64{flag})"
        )

    def step(self) -> str:
        if len(self.tensors()) < 2:
            return self.leaf()
        return self.rare() if self.chance(25) else self.common()

    def common(self) -> str:
        kinds = (
            (5, self.leaf), (14, self.unary), (14, self.binary), (4, self.reduce),
            (14, self.view), (5, self.several_views), (12, self.write), (3, self.flags),
            (10, self.hooks), (8, self.function), (6, self.packed), (4, self.other),
            (8, self.backward), (6, self.grad), (2, self.remove), (2, self.second),
        )  # fmt: skip
        at = self.integer(0, sum(n for n, _ in kinds) - 1)
        for n, make in kinds:
            if at < n:
                return make()
            at -= n
        raise AssertionError

    def unary(self) -> str:
        code = f"{self.new()} = {self.tensor()}.{self.pick(UNARY)}"
        return self.guarded(code)

    def guarded(self, code: str) -> str:
        if self.chance(6):
            return f"with torch.no_grad(): {code}"
        return code

    def binary(self) -> str:
        x = self.tensor()
        y = self.partner(x)
        r = self.new()
        how = self.integer(0, 9)
        if how == 0:
            return (
                f"{r} = torch.cat([{x}.reshape(-1), {y}.reshape(-1), {self.tensor()}.reshape(-1)])"
            )
        if how == 1:
            return f"{r} = torch.stack([{x}, {y}, {x}, {y}])"
        if how == 2:
            return f"{r} = torch.where({x} > 0, {x}, {y})"
        if how == 3:
            return f"{r} = {x} {self.pick('+-*/')} {self.pick(('2', '3', '0.5'))}"
        if how == 4:
            return f"{r} = {x} @ {y}.t()"
        if how == 5:
            return (
                f"{r} = torch.cat([{', '.join(self.tensor() + '.reshape(-1)' for _ in range(4))}])"
            )
        return self.guarded(f"{r} = {x} {self.pick('+-**')} {y}")

    def reduce(self) -> str:
        how = self.pick(("sum()", "mean()", "sum(0)", "sum(-1)", "amax()"))
        return f"{self.new()} = {self.tensor()}.{how}"

    def view(self) -> str:
        x = self.tensor(lambda t: t.dim() > 0)
        how = self.pick(VIEWS)
        if how == "view_as(A)":
            how = f"view_as({self.partner(x)})"
        dot = "" if how.startswith("[") else "."
        return self.guarded(f"{self.new()} = {x}{dot}{how}")

    def several_views(self) -> str:
        x = self.tensor(lambda t: t.dim() > 0)
        n = self.integer(1, 2)
        names = [self.new() for _ in range(n)]
        return self.guarded(f"{', '.join(names)}, *_ = {x}.{self.pick(SEVERAL)}")

    def write(self) -> str:
        x = self.tensor(lambda t: not (t.requires_grad and t.is_leaf))
        how = self.integer(0, 9)
        if how < 4:
            code = f"{x}.{self.pick(INPLACE)}"
        elif how == 4:
            code = (
                f"{x}[{self.pick(('0', '...', '1:', ':1'))}] = {self.pick(('2', self.partner(x)))}"
            )
        elif how == 5:
            code = f"{x}.copy_({self.partner(x)})"
        elif how == 6:
            code = f"{x}.detach().{self.pick(INPLACE)}"
        elif how == 7:
            code = f"{x}.data.{self.pick(INPLACE)}"
        else:
            code = f"{x}.{self.pick(('mul_', 'add_', 'sub_'))}({self.partner(x)})"
        if self.chance(25) or _try(lambda t: t.requires_grad and t.is_leaf, self.env[x]):
            return f"with torch.no_grad(): {code}"
        return code

    def flags(self) -> str:
        how = self.integer(0, 5)
        if how == 0:
            return f"{self.tensor(lambda t: t.is_leaf)}.requires_grad_()"
        if how == 1:
            return f"{self.tensor(lambda t: t.is_leaf)}.requires_grad_(False)"
        if how == 2:
            return f"{self.recorded()}.retain_grad()"
        if how == 3:
            return f"{self.tensor(lambda t: t.grad is not None)}.grad = None"
        if how == 4:
            return f"{self.tensor()}.detach_()"
        x = self.wants()
        return f"{x}.grad = torch.ones_like({x})"

    def hooks(self) -> str:
        self.handles += 1
        name = f"kept['k{self.handles}'] = "
        how = self.integer(0, 9)
        if how < 4:
            reply = self.pick(("none", "none", "double", "same", "copy", "less", "none", "boom",
                               "wrong_shape", "number"))  # fmt: skip
            return f"{name}{self.wants()}.register_hook(hook({self.hook()}, '{reply}'))"
        if how == 4:
            reply = self.pick(("none", "none", "clear", "boom"))
            x = self.tensor(lambda t: t.requires_grad and t.is_leaf)
            return (
                f"{name}{x}.register_post_accumulate_grad_hook(accumulated({self.hook()},"
                f" '{reply}'))"
            )
        reply = self.pick(("none", "change", "none", "change", "boom"))
        if how == 5:
            x = self.tensor(lambda t: t.requires_grad and t.is_leaf)
            kind = self.pick(("pre", "post"))
            if kind == "post":
                reply = "none"
            reg = "register_prehook" if kind == "pre" else "register_hook"
            return (  # the node is kept: PyTorch's leaf does not keep it
                f"kept['n{self.handles}'] = torch.autograd.graph.get_gradient_edge({x}).node;"
                f" {name}kept['n{self.handles}'].{reg}({kind}({self.hook()}, '{reply}'))"
            )
        if how == 6:
            names = ", ".join(self.wants() for _ in range(self.integer(1, 3)))
            mode = self.pick(("all", "any"))
            return (
                f"{name}torch.autograd.graph.register_multi_grad_hook([{names}],"
                f" several({self.hook()}), mode='{mode}')"
            )
        if how < 9:
            return f"{name}{self.recorded()}.grad_fn.register_hook(post({self.hook()}, '{reply}'))"
        return f"{name}{self.recorded()}.grad_fn.register_prehook(pre({self.hook()}, '{reply}'))"

    def remove(self) -> str:
        if self.handles and self.chance(60):
            return f"kept['k{self.integer(1, self.handles)}'].remove()"
        return f"del {self.tensor()}"

    def function(self) -> str:
        x = self.tensor()
        y = self.partner(x)
        how = self.integer(0, 11)
        if how == 0:
            return f"{self.new()}, {self.new()}, {self.new()} = Mixed.apply({x}, 2, {y})"
        if how == 1:
            return f"{self.new()}, {self.new()} = Sparse.apply({x}, {y})"
        if how == 2:
            return f"{self.new()}, {self.new()} = Halves.apply({x})"
        if how == 3:
            return f"{self.new()} = Nothing.apply({x}, {y})"
        f = self.pick(FUNCTIONS)
        if f == "Fails" and self.chance(60):
            f = "Twice"
        return self.guarded(f"{self.new()} = {f}.apply({x})")

    def packed(self) -> str:
        self.label += 1
        reply = self.pick(("keep", "copy", "double"))
        x = self.tensor()
        code = self.pick((
            f"{self.new()} = {x} * {self.partner(x)}",
            f"{self.new()} = {x}.{self.pick(UNARY)}",
            f"{self.new()} = Twice.apply({x})",
            f"{self.new()} = Result.apply({x})",
            f"{x}.{self.pick(INPLACE)}",
        ))  # fmt: skip
        return f"with packed('p{self.label}', '{reply}'): {code}"

    def other(self) -> str:
        x = self.tensor()
        return self.pick((
            f"{x} = {x} * 2",
            f"{self.new()} = {x}.grad",
            f"{x}.grad_fn.metadata['a'] = 1",
            f"log.append(('saved', seen({x}.grad_fn._saved_self)))",
            f"log.append(('saved', seen({x}.grad_fn._saved_result)))",
            f"{self.new()} = torch.nn.Parameter({x}.detach().clone())",
            f"{self.new()} = torch.empty_like({x}).copy_({x})",
        ))  # fmt: skip

    def gradient(self, x: str) -> str:
        if _try(lambda t: t.numel() == 1, self.env[x]) and self.chance(60):
            return "None"
        if self.chance(15):
            return f"torch.ones_like({x}, requires_grad=True)"
        return f"torch.ones_like({x})"

    def options(self) -> str:
        keep = self.pick(
            ("", "", ", retain_graph=True", ", retain_graph=True", ", retain_graph=False")
        )
        return keep + (", create_graph=True" if self.chance(25) else "")

    def backward(self) -> str:
        roots = [self.recorded() for _ in range(self.pick((1, 1, 1, 2, 3)))]
        if len(roots) == 1 and self.chance(40):
            code = f"{roots[0]}.backward({self.gradient(roots[0])}{self.options()}"
        else:
            grads = ", ".join(self.gradient(r) for r in roots)
            code = f"torch.autograd.backward([{', '.join(roots)}], [{grads}]{self.options()}"
        if self.chance(25):
            inputs = ", ".join(self.wants() for _ in range(self.integer(1, 3)))
            code += f", inputs=[{inputs}]"
        return code + ")"

    def grad(self) -> str:
        roots = [self.recorded() for _ in range(self.pick((1, 1, 2)))]
        grads = ", ".join(self.gradient(r) for r in roots)
        inputs = [self.wants() for _ in range(self.integer(1, 3))]
        how = self.pick(
            ("", ", allow_unused=True", ", allow_unused=True", ", materialize_grads=True")
        )
        names = [self.new() for _ in inputs]
        return (
            f"{', '.join(names)}, = torch.autograd.grad([{', '.join(roots)}],"
            f" [{', '.join(inputs)}], [{grads}]{self.options()}{how})"
        )

    def second(self) -> str:
        x = self.recorded()
        y = self.tensor(lambda t: t.requires_grad)
        return (
            f"{self.new()}, = torch.autograd.grad(torch.autograd.grad({x}.sum(), {y},"
            f" create_graph=True)[0].sum(), {y}, allow_unused=True, retain_graph=True)"
        )


def _try(f: Callable[[Any], Any], t: Any) -> Any:
    try:
        return f(t)
    except RuntimeError:
        return False


def _leaf(t: Any) -> bool:
    return t.is_leaf


def _name(node: Any) -> str:
    return node.name()


def graph(t: Any, tensors: dict[str, Any], made: Any = ()) -> Any:
    """All nodes behind `t` in the order of a walk, with their edges; leaves by their names. Nodes
    that a backward `made` (by create_graph) end the walk: each library has its own formulas."""
    node = t.grad_fn
    if node is None or node in made:
        return None if node is None else "made by backward"
    leaves = {id(v): n for n, v in tensors.items()}
    numbers = {node: 0}
    stack = [node]
    lines = []
    while stack:
        n = stack.pop()
        edges = []
        for to, nr in n.next_functions:
            if to is None:
                edges.append(None)
                continue
            if to not in numbers:
                numbers[to] = len(numbers)
                if to not in made:
                    stack.append(to)
            edges.append((numbers[to], nr))
        variable = getattr(n, "variable", None) if "AccumulateGrad" in _name(n) else None
        lines.append((
            numbers[n], _name(n), type(n).__name__, tuple(edges),
            None if variable is None else leaves.get(id(variable), "gone"),
        ))  # fmt: skip
    return lines


def _aspects(t: Any, tensors: dict[str, Any], made: Any) -> dict[str, Any]:
    read: dict[str, Callable[[], Any]] = {
        "shape": lambda: tuple(t.shape),
        "requires_grad": lambda: t.requires_grad,
        "is_leaf": lambda: t.is_leaf,
        "graph": lambda: graph(t, tensors, made),
        "output_nr": lambda: t.output_nr,
        "_version": lambda: t._version,
        "retains_grad": lambda: t.retains_grad,
        "base": lambda: None if t._base is None else next(
            (n for n, v in tensors.items() if v is t._base), "unnamed"
        ),
        "grad": lambda: seen(t.grad),
        "grad is": lambda: None if t.grad is None else [
            n for n, v in tensors.items() if v is t.grad or v.grad is t.grad
        ],
        "grad graph": lambda: None if t.grad is None else t.grad.grad_fn is None,
        "type": lambda: type(t).__name__,
    }  # fmt: skip
    found: dict[str, Any] = {}
    for name, f in read.items():
        try:
            found[name] = f()
        except RuntimeError as error:
            found[name] = type(error).__name__
            if any(text in str(error) for text in NOT_TORCHLABS):
                raise
    return found


def _close(a: Any, b: Any, near: float = 1e-12) -> bool:
    """Equal but for the last digits of numbers: of float64, where a gradient does not say (in its
    last place, see `seen`) that it is of another type."""
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        if len(a) == 4 and a[3] == "torch.float32":
            near = 1e-6
        return len(a) == len(b) and all(_close(x, y, near) for x, y in zip(a, b, strict=True))
    if isinstance(a, complex) and isinstance(b, complex):
        return _close(a.real, b.real, near) and _close(a.imag, b.imag, near)
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= near * max(1.0, abs(a)) or (a != a and b != b)
    return bool(a == b)


class Run:
    """One program in both libraries."""

    def __init__(self, ours: Any, theirs: Any) -> None:
        self.libs = (ours, theirs)
        self.envs = (world(ours), world(theirs))
        self.steps: list[str] = []
        self.ended = False
        self.results: set[str] = set()
        self.sums: dict[int, Any] = {}  # storages of gradients, kept
        self.made: tuple[set[Any], set[Any]] = (set(), set())  # nodes that backward has made

    def note(self, step: str) -> None:
        """Remember the nodes of what this step's backward made."""
        results = re.search(r"(?:^|: )((t\d+, )*t\d+),? =", step)
        names = re.findall(r"t\d+", results[1]) if results and "autograd.grad" in step else []
        self.results.update(names)
        for n, t in self.tensors(1).items():
            for g in (t.grad if t.is_leaf or t.retains_grad else None, t if n in names else None):
                if g is not None:
                    s = g.untyped_storage()
                    self.sums[s._cdata] = s
        for i in (0, 1):
            for n, t in self.tensors(i).items():
                found = [t.grad] if t.is_leaf or t.retains_grad else []
                if n in names:
                    found.append(t)
                self.made[i].update(
                    g.grad_fn for g in found if g is not None and g.grad_fn is not None
                )

    def tensors(self, i: int) -> dict[str, Any]:
        kind = self.libs[i].Tensor
        return {n: v for n, v in self.envs[i].items() if isinstance(v, kind) and n != "_"}

    def take(self, step: str) -> Difference | None:
        self.steps.append(step)
        before = len(self.envs[0]["log"])
        code = compile(step, f"step {len(self.steps)}", "exec")
        errors: list[Exception | None] = []
        for env in self.envs:
            try:
                exec(code, env)
                errors.append(None)
            except Exception as error:  # which class is what is compared
                errors.append(error.with_traceback(None))
            env.pop("_", None)
        a, b = errors
        if any(text in str(e) for text in NOT_TORCHLABS for e in errors):
            self.ended = True
            return None
        if type(a).__name__ != type(b).__name__:
            return Difference("exception", told(a), told(b))
        if a is not None and ("WriteBoth" in step or "ViewOfWritten" in step):
            self.ended = True  # PyTorch has attached the first of the results
            return None
        log, other = self.envs[0]["log"], self.envs[1]["log"]
        if a is not None and "packed(" in step:  # who packs before a refusal is nobody's promise
            del log[before:], other[before:]
        # A mask's cosine is of float32, and so are the digits of what it flows into.
        coarse = any(str(t.dtype) == "torch.float32" for t in self.tensors(1).values())
        near = 1e-6 if coarse else 1e-12
        if not _close(log, other, near):
            at = next((i for i, (x, y) in enumerate(zip(log, other)) if not _close(x, y, near)),
                      min(len(log), len(other)))  # fmt: skip
            return Difference("log", log[at : at + 3], other[at : at + 3])
        ours, theirs = self.tensors(0), self.tensors(1)
        try:
            self.note(step)
        except RuntimeError:
            self.ended = True  # a view whose grad_fn may not be asked for
            return None
        if ours.keys() != theirs.keys():
            return Difference("names", sorted(ours), sorted(theirs))
        # PyTorch neither keeps the base of views of inference tensors nor hides how it computes
        # with them.
        inference = any(t.is_inference() for t in theirs.values())
        for n, t in theirs.items():
            try:
                y = _aspects(t, theirs, self.made[1])
            except RuntimeError:
                self.ended = True
                return None
            x = _aspects(ours[n], ours, self.made[0])
            for key in y:
                if key in ("_version", "base") and (
                    inference or t.untyped_storage()._cdata in self.sums
                ):
                    continue  # gradients: views of what, how often added to
                if not _close(x[key], y[key], near):
                    return Difference(f"{n}.{key}", x[key], y[key])
            if type(y["graph"]) is list and any(
                "AccumulateGrad" in name and leaf is None for _, name, _, _, leaf in y["graph"]
            ):
                self.ended = True  # PyTorch's process ends when it walks a node without its leaf
            if not _close(ours[n].detach().clone().tolist(), t.detach().clone().tolist(), near):
                return Difference(f"{n}: values", ours[n].tolist(), t.tolist())
        wide = self.libs[1].complex128
        if any(not bool((t.detach().to(wide).abs() < 1e6).all()) for t in theirs.values()):
            self.ended = True
        return None


def play(
    ours: Any, theirs: Any, integer: Callable[[int, int], int]
) -> tuple[list[str], Difference | None]:
    """A random program; the steps, and the first difference."""
    run = Run(ours, theirs)
    maker = Maker(integer, run.envs[1], theirs)
    with quiet():
        for i in range(integer(7, 20)):
            step = maker.leaf() if i < 2 else maker.step()
            difference = run.take(step)
            if difference is not None or run.ended:
                return run.steps, difference
    return run.steps, None


def replay(ours: Any, theirs: Any, steps: list[str]) -> Difference | None:
    run = Run(ours, theirs)
    with quiet():
        for step in steps:
            difference = run.take(step)
            if difference is not None or run.ended:
                return difference
    return None


def shrink(
    ours: Any, theirs: Any, steps: list[str], found: Difference
) -> tuple[list[str], Difference]:
    """The program without the steps that the difference does not need."""
    return program_driver.shrink(steps, found, lambda fewer: replay(ours, theirs, fewer), rounds=2)


if __name__ == "__main__":
    program_driver.run(__doc__, play, shrink, str)
