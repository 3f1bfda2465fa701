"""Random programs of ten steps, run in torchlab and in PyTorch side by side.

    python -m tests.conformance.programs --count 1000 --seed 0     prints every difference, shrunk

After every step the two libraries must agree on the exception's class, and for every live tensor
on values, dtype, shape, strides, storage_offset, contiguity, requires_grad, is_leaf, the name of
grad_fn, _version and on which tensors share memory; a refused step must have changed nothing. At
the end the gradients must agree. What the programs avoid is listed in `program_steps.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.conformance import program_driver
from tests.conformance.program_driver import Difference, quiet, told
from tests.conformance.program_forms import FormMaker
from tests.conformance.program_steps import Step

LENGTH = 10
EPS = {"bfloat16": 2**-7, "float16": 2**-10, "float64": 2**-52, "complex128": 2**-52}
EPS_OF_OTHERS = 2**-23  # integers are computed in float32, too
# Refusals of PyTorch's that are accidents of its build, or wishes that torchlab fulfils.
NOT_TORCHLABS = (
    "INTERNAL ASSERT",
    "Expected isFloatingType",  # the gradient of a real tensor that lerp weighs by a complex one
    "std_cpu\" not implemented for 'Complex",  # a real `var` into a complex `out`
    "std_var_all: Unsupported dtype",  # of 16-bit floats into a wider `out`, all elements at once
    "setStorage",  # out of bounds of a tensor without elements
    "ComplexHalf",  # a type that torchlab does not have
)
# Roundings of the largest number that a step may add: sums and products add up in another order
# (NumPy's pairwise, PyTorch's by lanes), at most some dozens of elements here.
SLACK = 8


class Undefined(Exception):
    """PyTorch gives this step no meaning: the program ends before it."""


def _environment(lib: Any) -> dict[str, Any]:
    def leaf(t: Any) -> Any:
        return t.detach().requires_grad_()

    return {"torch": lib, "nan": float("nan"), "inf": float("inf"), "leaf": leaf}


def _tensors(lib: Any, env: dict[str, Any]) -> dict[str, Any]:
    return {n: v for n, v in env.items() if isinstance(v, lib.Tensor)}


def _numpy(t: Any) -> Any:
    t = t.detach().clone()  # lending PyTorch's memory to NumPy would forbid to resize it
    if str(t.dtype) in ("torch.bfloat16", "torch.float16"):
        t = t.float()
    return t.resolve_conj().resolve_neg().numpy().copy()


def _memory(lib: Any, t: Any) -> bytes:
    """The bytes of the storage."""
    whole = lib.tensor([], dtype=lib.uint8).set_(t.untyped_storage())
    return bytes(whole.numpy().tobytes())


def _maker(t: Any) -> str | None:
    node = t.grad_fn
    return None if node is None else node.name().split("::")[-1]


def _strides(t: Any) -> list[int | None]:
    """A dimension of size 1 has no step, a tensor without elements has none at all."""
    steps = zip(t.stride(), t.shape, strict=True)
    return [stride if size > 1 and t.numel() else None for stride, size in steps]


ASPECTS: dict[str, Callable[[Any], Any]] = {
    "dtype": lambda t: str(t.dtype),
    "shape": lambda t: tuple(t.shape),
    "stride": _strides,
    "storage_offset": lambda t: t.storage_offset() if t.numel() else None,
    "is_contiguous": lambda t: t.is_contiguous(),
    "requires_grad": lambda t: t.requires_grad,
    "is_leaf": lambda t: t.is_leaf,
    "grad_fn": _maker,
    "_version": lambda t: t._version,
}


def _aspects(t: Any) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for name, read in ASPECTS.items():
        try:
            seen[name] = read(t)
        except RuntimeError as error:  # for example a view whose base was written where forbidden
            if "INTERNAL ASSERT" in str(error):
                raise Undefined from None
            seen[name] = type(error).__name__
    return seen


def _aliases(tensors: dict[str, Any]) -> dict[str, str]:
    """For each tensor the first that shares its memory."""
    first: dict[int, str] = {}
    return {n: first.setdefault(t.untyped_storage()._cdata, n) for n, t in tensors.items()}


class Run:
    """One program in both libraries."""

    def __init__(self, ours: Any, theirs: Any) -> None:
        self.libs = (ours, theirs)
        self.envs = (_environment(ours), _environment(theirs))
        self.steps: list[Step] = []
        self.refused = False
        names = ("float32", "float64", "bfloat16", "float16", "complex64", "complex128")
        self.differentiable = [getattr(theirs, name) for name in names]

    def undefined(self, step: Step) -> bool:
        """Whether this step writes to memory that another of its operands, or the operand itself,
        sees twice."""
        tensors = _tensors(self.libs[1], self.envs[1])
        if step.writes is None:
            return False
        if "masked_scatter_" in step.code and step.code.count(step.writes) > 1:
            return True
        written = tensors[step.writes]
        sizes = sorted(zip(written.stride(), written.shape, strict=True))
        reach = 0
        for stride, size in sizes:
            if size > 1:
                if stride <= reach:
                    return True
                reach += stride * (size - 1)
        names = set(re.findall(r"\bt\d+\b", step.code)) & set(tensors)
        place = written.untyped_storage()._cdata
        for n in names - {step.writes}:
            t = tensors[n]
            if t.untyped_storage()._cdata == place and t.numel():
                return True
        return bool(re.search(rf"= *{step.writes}\b|out=", step.code)) and (
            len(re.findall(rf"\b{step.writes}\b", step.code)) > 1 and "out=" in step.code
        )

    def take(self, step: Step) -> Difference | None:
        """Runs the step in both; the difference, if there is one."""
        number = len(self.steps)
        self.steps.append(step)
        ours, theirs = self.envs
        doubtful = self.undefined(step)
        if self.undecided(step):
            raise Undefined
        before = {n: (_aspects(t), _numpy(t)) for n, t in _tensors(self.libs[0], ours).items()}
        if step.code.startswith(f"{step.writes}[") and (
            len(re.findall(rf"\b{step.writes}\b", step.code)) > 1
        ):
            doubtful = True
        code = compile(step.code, f"step {number}", "exec")
        errors: list[Exception | None] = []
        for env in (theirs, ours):
            try:
                exec(code, env)
                errors.append(None)
            except Exception as error:  # which class is what is compared
                errors.append(error.with_traceback(None))  # its frames would keep graphs alive
            if doubtful and errors[0] is None:
                raise Undefined
        e_theirs, e_ours = errors
        if "complex32" in "".join(str(t.dtype) for t in _tensors(self.libs[1], theirs).values()):
            raise Undefined
        self.refused = e_theirs is not None
        if any(text in str(e_theirs) for text in NOT_TORCHLABS):
            raise Undefined
        if "setStorage" in str(e_ours):
            raise Undefined  # how much memory lies behind a computed result
        if doubtful and None not in errors:
            raise Undefined  # the overlap and another fault
        if "single memory location" in str(e_theirs) and e_ours is None and doubtful:
            raise Undefined  # told by neither in every case
        if "has been modified inplace" in str(e_theirs) and e_ours is not None:
            raise Undefined  # a view that may not be used, and no kernel: either is told first
        if "backward(" in step.code and None not in errors:
            raise Undefined  # which of two missing derivatives is asked for first
        if type(e_ours).__name__.lstrip("_") != type(e_theirs).__name__.lstrip("_"):
            return Difference("exception", told(e_ours), told(e_theirs))
        if e_ours is not None:
            for n, (aspects, values) in before.items():
                now = _aspects(ours[n])
                if now != aspects:
                    changed = [k for k in now if now[k] != aspects[k]]
                    return Difference(
                        f"{n} changed by a refused step: {changed}",
                        [now[k] for k in changed], [aspects[k] for k in changed],
                    )  # fmt: skip
                if _numpy(ours[n]).tobytes() != values.tobytes():
                    return Difference(f"{n} changed by a refused step", ours[n], values)
                other = _numpy(theirs[n])
                if _aspects(theirs[n]) != now or not same(values, other, 2**-10):
                    raise Undefined  # PyTorch changed it before it refused
        return self.compare(step)

    def undecided(self, step: Step) -> bool:
        """Whether PyTorch's own answer hangs on what it does not promise (see `program_steps`)."""
        env = _tensors(self.libs[1], self.envs[1])
        code = step.code
        used = [env[n] for n in re.findall(r"\bt\d+\b", code) if n in env]
        out = re.search(r"out=(t\d+)", code)
        if out and out[1] in env and sum(t is env[out[1]] for t in used) > 1:
            return True
        if out and out[1] in env and not env[out[1]].numel() and env[out[1]].storage_offset():
            return True
        if re.search(r"resize_|view_as_complex|\.view\(torch\.|contiguous\(mem", code):
            if any(not t.numel() for t in used):
                return True
        if ".view(torch." in code and any(t.is_floating_point() or t.is_complex() for t in used):
            return True
        if "resize_" in code and any(".data" in s.code for s in self.steps):
            if any(t.requires_grad for t in env.values()):
                return True  # memory that a node has saved through `.data` moves
        if "as_strided" in code and any(not t.numel() for t in used):
            return True
        if "where(" in code and used and used[0].dtype is self.libs[1].uint8:
            return True
        if "gelu(" in code and any(bool(t.detach().isinf().any()) for t in used):
            return True
        if "norm(inf" in code and any(t.is_complex() for t in used):
            return True
        if re.search(r"copysign|signbit", code):
            if any(t.is_floating_point() and bool(t.detach().isnan().any()) for t in used):
                return True
        if re.search(r"\.view\(torch\.", code) and any(t.ndim and t.shape[-1] == 1 for t in used):
            return True
        return False

    def compare(self, step: Step) -> Difference | None:
        ours = _tensors(self.libs[0], self.envs[0])
        theirs = _tensors(self.libs[1], self.envs[1])
        if ours.keys() != theirs.keys():
            odd = sorted(ours.keys() ^ theirs.keys())
            n = odd[0]
            return Difference(f"{n}: type", type(self.envs[0].get(n)), type(self.envs[1].get(n)))
        scale = 1.0
        used = [n for n in re.findall(r"\bt\d+\b", step.code) if n in theirs]
        coarse = max((_eps(theirs[n]) for n in used), default=0)
        for n, t in theirs.items():
            a, b = _aspects(ours[n]), _aspects(t)
            for key, value in b.items():
                if key == "requires_grad" and value and t.dtype not in self.differentiable:
                    raise Undefined  # an integer tensor with a part of a recorded write
                if a[key] != value and key == "_version" and "matmul" in step.code:
                    raise Undefined  # PyTorch counts what a composite writes inside
                if a[key] != value and key == "stride" and self.odd_ones(step):
                    raise Undefined
                if a[key] != value:
                    return Difference(f"{n}.{key}", a[key], value)
            values = _numpy(t)
            if values.dtype.kind in "fc" and re.search(rf"\b{n}\b", step.code):
                finite = np.abs(values[np.isfinite(values)])
                scale = max(scale, float(finite.max())) if finite.size else scale
        for n, t in theirs.items():
            x, y = _numpy(ours[n]), _numpy(t)
            if x.tobytes() == y.tobytes():
                continue
            if not same(x, y, coarse * scale if not step.moves else 0):
                if self.only_patterns(n):
                    self.level(ours[n], t)
                    continue
                return Difference(f"{n}: values", x.tolist(), y.tolist())
            if not step.moves and not np.array_equal(x, y, equal_nan=y.dtype.kind in "fc"):
                self.level(ours[n], t)
        held = [n for n, t in theirs.items() if t.numel()]  # where there are no bytes, no sharing
        a, b = (_aliases({n: env[n] for n in held}) for env in (ours, theirs))
        if a != b:
            odd = [n for n in a if a[n] != b[n]]
            return Difference(
                f"which tensors share memory ({odd})",
                [a[n] for n in odd], [b[n] for n in odd],
            )  # fmt: skip
        return None

    def odd_ones(self, step: Step) -> bool:
        """Whether contiguous tensors of several shapes took part, of which one has a dimension of
        size 1 with another step than row-major order gives it."""
        env = _tensors(self.libs[1], self.envs[1])
        used = [env[n] for n in re.findall(r"\bt\d+\b", step.code) if n in env]
        used = [t for t in used if t.ndim]
        if not all(t.is_contiguous() for t in used[1:]):
            return False
        return any(t.stride() != t.new_empty(t.shape).stride() for t in used[1:])

    def only_patterns(self, name: str) -> bool:
        """Whether the memory differs in nothing but the bits of NaN that a floating point tensor
        sees there. PyTorch leaves them open: in bfloat16 its loops for whole vectors write 0xffff
        where those for the rest write 0x7fc0, so that another type over the same memory reads
        numbers which hang on the size and the strides."""
        memories = [_memory(lib, env[name]) for lib, env in zip(self.libs, self.envs, strict=True)]
        place = self.envs[1][name].untyped_storage()._cdata
        for n, t in _tensors(self.libs[1], self.envs[1]).items():
            if t.untyped_storage()._cdata != place:
                continue
            if not (t.is_floating_point() or t.is_complex()):
                continue
            kind = self.envs[0][n]._a.dtype
            kind = np.zeros(0, kind).real.dtype
            size = min(map(len, memories)) // kind.itemsize * kind.itemsize
            x, y = (np.frombuffer(m[:size], kind) for m in memories)
            numbers = ~(np.isnan(x) & np.isnan(y))
            if x[numbers].tobytes() == y[numbers].tobytes():
                return True
        return False

    def level(self, mine: Any, other: Any) -> None:
        """Gives ours PyTorch's last digits, so that differences do not grow."""
        values = other.detach()
        if str(values.dtype) == "torch.bfloat16":
            array = _numpy(values).astype(mine._a.dtype)
        else:
            array = _numpy(values)
        mine._a[...] = array

    def backward(self) -> Difference | None:
        """The gradients of whatever requires some."""
        theirs = _tensors(self.libs[1], self.envs[1])
        leaves = [n for n, t in theirs.items() if _aspects(t)["is_leaf"] is True]
        roots = [
            n for n, t in theirs.items()
            if t.requires_grad and n not in leaves and bool(t.detach().isfinite().all())
        ][-3:]  # fmt: skip
        if not roots:
            return None
        ones = ", ".join(f"torch.ones_like({n})" for n in roots)
        difference = self.take(Step(f"torch.autograd.backward([{', '.join(roots)}], [{ones}])"))
        if difference is not None:
            return difference
        coarse = max(map(_eps, theirs.values()))
        if self.refused:
            return None  # how far it came is not told
        for n in leaves:
            x, y = self.envs[0][n].grad, self.envs[1][n].grad
            if (x is None) != (y is None):
                return Difference(f"{n}.grad", x, y)
            if x is None:
                continue
            a, b = _aspects(x), _aspects(y)
            for key in ("dtype", "shape", "requires_grad"):
                if a[key] != b[key]:
                    return Difference(f"{n}.grad.{key}", a[key], b[key])
            u, v = _numpy(x), _numpy(y)
            finite = np.abs(v[np.isfinite(v)])
            scale = max(1.0, float(finite.max())) if finite.size else 1.0
            if not same(u, v, coarse * scale):
                return Difference(f"{n}.grad: values", u.tolist(), v.tolist())
        return None


def _eps(t: Any) -> float:
    return EPS.get(str(t.dtype)[6:], EPS_OF_OTHERS)


def same(x: Any, y: Any, error: float) -> bool:
    """Equal up to `error`, which is one rounding of the largest value that took part."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    if y.dtype.kind not in "fc":
        return bool((x == y).all())
    if y.dtype.kind == "c":
        parts = ((x.real, y.real), (x.imag, y.imag))
    else:
        parts = ((x, y),)
    near = SLACK * error
    if y.dtype.kind == "c":  # what infinite complex numbers make is not agreed on
        finite = np.isfinite(x) & np.isfinite(y)
        parts = tuple((a[finite], b[finite]) for a, b in parts)
    return all(np.allclose(a, b, rtol=min(near, 0.05), atol=near, equal_nan=True) for a, b in parts)


def play(
    ours: Any, theirs: Any, integer: Callable[[int, int], int], length: int = LENGTH
) -> tuple[list[Step], Difference | None]:
    """A new program, written while it runs."""
    run = Run(ours, theirs)
    maker = FormMaker(integer, run.envs[1], theirs)
    with quiet():
        try:
            for i in range(3 + length):
                step = maker.start() if i < 3 else maker.step()
                if undecided(step, run):
                    continue
                difference = run.take(step)
                if difference is not None:
                    return run.steps, difference
            return run.steps, run.backward()
        except Undefined:
            return run.steps, None


def undecided(step: Step, run: Run) -> bool:
    """Whether the step turns floating point values into integers that cannot hold them."""
    env, torch = run.envs[1], run.libs[1]
    tensors = _tensors(torch, env)
    used = [tensors[n] for n in set(re.findall(r"\bt\d+\b", step.code)) if n in tensors]
    wide = any(
        (t.is_floating_point() or t.is_complex()) and not bool(t.detach().abs().le(120).all())
        for t in used
    ) or bool(re.search(r"\bnan\b|\binf\b|300|-\d", step.code))
    integers = re.search(r"torch\.u?int\d+|\.(long|int|type_as)\(|//", step.code) or any(
        not (t.is_floating_point() or t.is_complex()) for t in used
    )
    writes = step.writes is not None or re.search(
        r"\.(to|long|int|type_as|full_like)\(|_like", step.code
    )
    return bool(wide and integers and writes and "view(" not in step.code)


def replay(ours: Any, theirs: Any, steps: list[Step]) -> Difference | None:
    """The difference that these steps show, if any; None also where a step needs a missing name."""
    run = Run(ours, theirs)
    with quiet():
        try:
            for step in steps:
                if step.writes is not None and step.writes not in run.envs[1]:
                    return None
                if step.code.startswith("torch.autograd.backward"):
                    return run.backward()
                difference = run.take(step)
                if difference is not None:
                    return difference
            return run.backward()
        except (Undefined, KeyError):
            return None


def shrink(
    ours: Any, theirs: Any, steps: list[Step], found: Difference
) -> tuple[list[Step], Difference]:
    """The program without the steps that the difference does not need."""
    return program_driver.shrink(steps, found, lambda fewer: replay(ours, theirs, fewer))


if __name__ == "__main__":
    program_driver.run(__doc__, play, shrink, lambda step: step.code)
