"""Every operator gives under autocast the types that PyTorch gives.

Each operator of PyTorch's own table of operators (`op_db`) is run by both under
`autocast("cpu")`: on float32 with bfloat16 and with float16, and on bfloat16 with bfloat16 and
with float16. The dtypes of all results must be the same; what PyTorch computes under autocast must
not raise if it does not raise outside.
"""

from __future__ import annotations

import itertools
import warnings
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import torchlab
from torchlab._core.dispatch import registry
from torchlab.amp import autocast
from torchlab.amp._casting import policies

torch = pytest.importorskip("torch")
methods = pytest.importorskip("torch.testing._internal.common_methods_invocations")

SAMPLES = 6
CASES = (
    ("float32", "bfloat16"),
    ("float32", "float16"),
    ("bfloat16", "bfloat16"),
    ("bfloat16", "float16"),
)

# PyTorch makes these of `cat`, whose rule refuses bfloat16 under float16; torchlab does not.
MADE_OF_CAT = frozenset("combinations fft.fftshift fft.ifftshift isin matrix_exp roll".split())

# Public names that torchlab has not.
MISSING = frozenset(
    """
    _batch_norm_with_update _upsample_bilinear2d_aa jiterator_2inputs_2outputs
    jiterator_4inputs_with_extra_args jiterator_binary jiterator_binary_return_by_ref
    jiterator_unary native_dropout_backward slice
    """.split()
)

# With indices, or tensors for scale and zero point, these have no rule: a part of them has it.
RULE_IN_A_PART = frozenset({"max_pool3d", "fake_quantize_per_tensor_affine"})

OPS = {
    op.full_name: op for op in methods.op_db if not op.name.startswith(("_refs.", "ops.", "torch."))
}


def converted(x: Any) -> Any:
    """The same argument for torchlab."""
    if isinstance(x, torch.Tensor):
        if x.layout is not torch.strided:
            raise NotImplementedError("another layout")
        plain = x.detach()
        wide = plain.float() if plain.dtype in (torch.bfloat16, torch.float16) else plain
        array = np.array(wide.resolve_conj().resolve_neg().numpy())
        r = torchlab.as_strided(
            torchlab.from_numpy(array.reshape(-1)).clone(), x.shape, torch.empty(x.shape).stride()
        )
        return r.to(getattr(torchlab, str(plain.dtype).removeprefix("torch.")))
    if isinstance(x, (torch.dtype, torch.memory_format, torch.layout)):
        return getattr(torchlab, str(x).removeprefix("torch."))
    if isinstance(x, torch.device):
        return torchlab.device(str(x))
    if type(x) in (list, tuple):
        return type(x)(converted(y) for y in x)
    if type(x) is dict:
        return {k: converted(v) for k, v in x.items()}
    return x


def function_of(op: Any) -> Any:
    f = op.op
    module = getattr(f, "__module__", "") or ""
    if isinstance(f, FunctionType) and module.startswith("torch.testing"):
        return FunctionType(
            f.__code__,
            {**f.__globals__, "torch": torchlab},
            f.__name__,
            f.__defaults__,
            f.__closure__,
        )
    found = torchlab
    if op.name.startswith("__") or hasattr(f, "__objclass__"):
        found = torchlab.Tensor
    for part in op.name.split("."):
        found = getattr(found, part)
    return found


def dtypes(x: Any) -> Any:
    if isinstance(x, (torch.Tensor, torchlab.Tensor)):
        return str(x.dtype).removeprefix("torch.")
    if isinstance(x, (list, tuple)):
        return [dtypes(y) for y in x]
    return type(x).__name__


def outcome(fn: Any, context: Any, sample: Any, convert: Any) -> tuple[str, Any]:
    """("ok", dtypes) or ("raises", the error)."""
    try:
        args = (convert(sample.input), *convert(sample.args))
        kwargs = convert(sample.kwargs)
        with context:
            return "ok", dtypes(fn(*args, **kwargs))
    except Exception as error:
        return "raises", error


def samples_of(op: Any, dtype: Any) -> list[Any]:
    if dtype not in op.supported_dtypes("cpu"):
        return []
    torch.manual_seed(0)
    return list(itertools.islice(op.sample_inputs("cpu", dtype), SAMPLES))


def clone(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return x.detach().clone()
    if type(x) in (list, tuple):
        return type(x)(clone(y) for y in x)
    if type(x) is dict:
        return {k: clone(v) for k, v in x.items()}
    return x


def differences(op: Any) -> list[str]:
    ours = function_of(op)
    found = []
    for given, lower in CASES:
        for i, sample in enumerate(samples_of(op, getattr(torch, given))):
            state, expected = outcome(
                op.op, torch.autocast("cpu", dtype=getattr(torch, lower)), sample, clone
            )
            ours_lower = getattr(torchlab, lower)
            got_state, got = outcome(ours, autocast("cpu", dtype=ours_lower), sample, converted)
            where = f"{given} under {lower}, sample {i}"
            if state == "ok" and got_state == "raises":
                outside = autocast("cpu", enabled=False)
                if outcome(ours, outside, sample, converted)[0] == "ok":
                    found.append(f"{where}: PyTorch gives {expected}, torchlab raises {got!r}")
            elif state == "raises" and got_state == "ok":
                if op.name in MADE_OF_CAT and "prioritize" in str(expected):
                    continue
                if outcome(op.op, torch.autocast("cpu", enabled=False), sample, clone)[0] == "ok":
                    found.append(f"{where}: PyTorch raises {expected!r}, torchlab gives {got}")
            elif state == "ok" and expected != got:
                found.append(f"{where}: PyTorch gives {expected}, torchlab {got}")
    return found


@pytest.mark.parametrize("name", sorted(OPS.keys() - MISSING))
def test_result_dtypes(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = differences(OPS[name])
    assert not found, "\n".join(found)


def _rules(kind: str) -> tuple[set[str], set[str]]:
    """The names with a rule for that kind of device, and those without, operators and faces."""
    having: set[str] = set()
    every: set[str] = set()
    faces = [(n, f) for n, f in registry.FACES.items()]
    faces += [(n, f) for (_, n), f in registry.SPACE_FACES.items()]
    faces += [(f"{space}_{n}", f) for (space, n), f in registry.SPACE_FACES.items()]
    faces += [(n, op) for n, found in registry.OPS.items() for op in found.values()]
    for name, x in faces:
        every.add(name)
        if x.autocast is not None and kind in policies(x.autocast):
            having.add(name)
    return having, every


@pytest.mark.parametrize(("kind", "key"), [("cpu", "AutocastCPU"), ("accelerator", "AutocastCUDA")])
def test_operators_with_a_rule_are_pytorchs(kind: str, key: str) -> None:
    registered = torch._C._dispatch_get_registrations_for_dispatch_key(key)
    theirs = {name.removeprefix("aten::").partition(".")[0] for name in registered}
    ours, every = _rules(kind)
    missing = {n for n in theirs & every if n not in ours | RULE_IN_A_PART}
    assert not missing, sorted(missing)
