"""Example arguments for every declared operator, for the tests that the declarations generate.

What the schema tells is enough for most; `ARGUMENTS` adds, as data, what it cannot tell: sizes that
must fit, indices that must be in range. Every call makes fresh tensors with the same values.

A family may keep its own in `arguments_<family>.py` beside this file: ARGUMENTS, and any of the
sets LEFT_OUT, SHAPE_FROM_DATA, FLAT, SYMMETRIC and dicts PREPARED, WELL_DEFINED.
"""

from __future__ import annotations

import importlib
import pathlib
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

import torchlab
from tests.core.ops.values import B, C, F, I, M
from torchlab._core.dispatch.op import Op
from torchlab._core.dispatch.registry import OPS

# Names of arguments whose value can be told from the name, unless ARGUMENTS says otherwise.
BY_NAME: dict[str, Any] = {
    "dim": 1, "dim0": 0, "dim1": 0, "dim2": 1, "offset": 0, "index": 1, "decimals": 1,
    "diagonal": 0, "k": 2, "eps": 1e-5, "norm": "none", "forward": True, "align_corners": False,
    "ceil_mode": False, "value": 2, "alpha": 2, "beta": 3, "exponent": 2, "threshold": 0.5,
    "negative_slope": 0.1,
    "output_mask": (True, True, True), "reduction": 1, "count_include_pad": True,
    "divisor_override": None, "ignore_index": -100, "scale_grad_by_freq": False, "padding_idx": -1,
    "condition": B(), "mask": B(), "approximate": "none",
}  # fmt: skip

G = F(low=-0.9, high=0.9)
V = F((4,))
IMAGE = F((1, 2, 4, 4))
VOLUME = F((1, 1, 3, 4, 4))
ROWS = I([[0, 1, 0], [1, 0, 1]])
ALONG = (F(), 0, ROWS)
POOL2 = ((2, 2), (2, 2), (0, 0))
POOL3 = ((2, 2, 2), (2, 2, 2), (0, 0, 0))
ONE = (1, 1)
NORM = (F((2, 3)), F((2, 3), 1, 2))


def _upsampling() -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {}
    for name in OPS:
        if "upsample" not in name or name.endswith("_aa"):
            continue
        dims = 1 if "1d" in name else 2 if "2d" in name else 3
        small, large = (1, 1, *(3, 4, 2)[:dims]), (1, 1, *(5, 6, 3)[:dims])
        rest = ((0.0,) * dims, False)
        if "backward" in name:
            found[name] = [(F(large), small[2:], *rest)]
        else:
            found[name] = [(F(small), large[2:], *rest)]
    return found


# Per operator (or "name.overload") the positional arguments of each sample. Arguments that are left
# out at the end have the schema's defaults.
ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "acosh": [(F(low=1.2, high=3.0),)],
    "atanh": [(G,)],
    "softshrink": [(F(low=0.6, high=0.95),)],
    "hardshrink": [(F(low=0.6, high=0.95),)],
    "hardtanh": [(G,)],
    "abs": [(G,)],
    "relu": [(G,), (F((2, 0)),)],
    "digamma": [(F(low=1.2, high=3.0),)],
    "_polygamma": [(F(low=1.2, high=3.0), 1)],
    "floor": [(F(low=1.1, high=1.9),)],
    "remainder.Tensor": [(F(low=2.1, high=2.7), F(low=0.75, high=0.95))],
    "fmod.Tensor": [(F(low=2.1, high=2.7), F(low=0.75, high=0.95))],
    "glu": [(F((2, 4)), 1)],
    "complex": [(F(), G)],
    "polar": [(F(), G)],
    "angle_backward": [(F(), F())],
    "_prelu_kernel": [(G, F((3,)))],
    "prelu": [(G, F((3,)))],
    "add.Tensor": [
        (F(), F(), 2),
        (F((2, 1)), F((3,)), 1),
        (F((0, 3)), F((3,)), 1),
        (F(()), F(()), 1),
    ],
    "where.self": [(B(), F(), G), (B((3,)), F(), F((2, 1)))],
    "masked_fill": [(F(), B(), F(()))],
    "clamp.Tensor": [(F(), F(low=0.1, high=0.15), F(low=0.96, high=1.5))],
    "clamp_min": [(F(), F(low=0.1, high=0.15))],
    "clamp_max": [(F(), F(low=0.96, high=1.5))],
    "div.Tensor": [(F(), F())],
    "_scaled_dot_product_attention": [(F((1, 2, 3)), F((1, 4, 3)), F((1, 4, 3)), None, False, 0.5)],
    "_attention_backward": [
        (F((1, 2, 3)), F((1, 2, 3)), F((1, 4, 3)), F((1, 4, 3)), F((1, 2, 4)), 0.5)
    ],
    "_batch_norm_training": [(F((3, 2, 2)), F((2,)), F((2,)), 1e-3)],
    "_batch_norm_backward": [(G, F(), F((3,)), F((3,), 1, 2), F((3,)), (True, True, True))],
    "_batch_norm_eval": [(F((2, 3)), F((3,)), F((3,)), F((3,)), F((3,), 1, 2), 1e-3)],
    "batch_norm": [(F((2, 3)), F((3,)), F((3,)), None, None, True, 0.1, 1e-3, False)],
    "convolution": [
        (IMAGE, F((2, 2, 2, 2)), F((2,)), ONE, (0, 0), ONE, False, (0, 0), 1),
        (IMAGE, F((2, 1, 3, 3)), None, (2, 2), ONE, ONE, False, (0, 0), 2),
        (IMAGE, F((2, 1, 2, 2)), None, (2, 2), (0, 0), ONE, True, (0, 0), 1),
    ],
    "_convolution_input_grad": [
        (F((1, 2, 3, 3)), F((2, 2, 2, 2)), (1, 2, 4, 4), ONE, (0, 0), ONE, 1)
    ],
    "_convolution_weight_grad": [
        (F((1, 2, 3, 3)), F((1, 2, 4, 4)), (2, 2, 2, 2), ONE, (0, 0), ONE, 1)
    ],
    "linalg_det": [(M(),)],
    "linalg_inv": [(M(),)],
    "linalg_solve": [(M(), F((3, 2)))],
    "linalg_cholesky": [(M(),)],
    "addmv": [(F((2,)), F(), F((3,)), 1, 2)],
    "baddbmm": [(F((1, 2, 2)), F((1, 2, 3)), F((1, 3, 2)), 1, 2)],
    "mm": [(F(), F((3, 2)))],
    "bmm": [(F((2, 2, 3)), F((2, 3, 1)))],
    "mv": [(F(), F((3,)))],
    "dot": [(F((3,)), F((3,)))],
    "ger": [(F((3,)), F((2,)))],
    "addmm": [(F((2, 2)), F(), F((3, 2)), 2, 3)],
    "matmul": [(F(), F((3, 2))), (F((2, 1, 2, 3)), F((3, 2))), (F((3,)), F((3,)))],
    "linear": [(F(), F((2, 3)), F((2,)))],
    "embedding": [(F((4, 2)), I([[0, 2], [2, 3]]))],
    "embedding_dense_backward": [(F((2, 2)), I([0, 2]), 4, -1, False)],
    "_embedding_bag_rows": [(F((4, 2)), I([0, 2, 3]), I([0, 0, 1]), 2, 0, F((3,)), False)],
    "gather": [ALONG],
    "scatter.src": [(*ALONG, F())],
    "scatter.value": [(*ALONG, 2.0)],
    "scatter.reduce": [(*ALONG, F(), "add")],
    "scatter_add": [(*ALONG, F())],
    "scatter_reduce.two": [(*ALONG, F(), how) for how in ("sum", "prod", "mean", "amax", "amin")],
    "index_select": [(F(), 1, I([2, 0, 2]))],
    "index_add": [(F(), 1, I([2, 0]), F((2, 2)), 2)],
    "index_copy": [(F(), 1, I([2, 0]), F((2, 2)))],
    "index_fill.int_Scalar": [(F(), 1, I([2, 0]), 3.0)],
    "index_fill.int_Tensor": [(F(), 1, I([2, 0]), F(()))],
    "index_reduce": [
        (F(), 1, I([2, 0]), F((2, 2)), how) for how in ("prod", "mean", "amax", "amin")
    ],
    "index.Tensor": [(F(), [I([0, 1]), I([2, 2])]), (F(), [None, I([[0, 2]])])],
    "index_backward": [(F((2,)), (2, 3), [I([0, 1]), I([2, 2])])],
    "index_put": [
        (F(), [I([0, 1]), I([2, 1])], F((2,))),
        (F(), [I([0, 0]), I([2, 2])], F((2,)), True),
    ],
    "masked_select": [(F(), B())],
    "masked_select_backward": [(F((3,)), (2, 3), B())],
    "masked_scatter": [(F(), B(), F((6,)))],
    "masked_scatter_backward": [(F(), B(), (6,))],
    "nonzero_static": [(F(), 7)],
    "take": [(F(), I([5, 0, 5]))],
    "put": [(F(), I([5, 0]), F((2,)), True)],
    "cat": [([F((2, 1)), F()], 1)],
    "stack": [([F(), G], 1)],
    "combinations": [(V,)],
    "nll_loss_forward": [(F(), I([0, 2]), F((3,)), 1, -100), (F(), I([0, 2]), None, 0, 2)],
    "nll_loss_backward": [(F(()), F(), I([0, 2]), F((3,)), 1, -100, F(()))],
    "nll_loss2d_forward": [(F((1, 3, 2, 1)), I([[[0], [2]]]), F((3,)), 1, -100)],
    "nll_loss2d_backward": [(F(()), F((1, 3, 2, 1)), I([[[0], [2]]]), F((3,)), 1, -100, F(()))],
    "nll_loss_nd": [(F(), I([0, 2]))],
    "cross_entropy_loss": [(F(), I([0, 2]), F((3,)), 1, -100, 0.1)],
    "native_layer_norm": [(F(), (3,), F((3,)), F((3,)), 1e-3)],
    "native_layer_norm_backward": [
        (G, F(), (3,), F((2, 1)), F((2, 1), 1, 2), F((3,)), (True, True, True))
    ],
    "layer_norm": [(F(), (3,), F((3,)), F((3,)), 1e-3)],
    "rms_norm": [(F(), (3,), F((3,)), 1e-3)],
    "native_group_norm": [(F((2, 4, 2)), F((4,)), F((4,)), 2, 4, 2, 2, 1e-3)],
    "native_group_norm_backward": [
        (F((2, 4, 2)), F((2, 4, 2)), F((2, 2)), F((2, 2), 1, 2), F((4,)), 2, (True, True, True))
    ],
    "group_norm": [(F((2, 4, 2)), 2, F((4,)), F((4,)), 1e-3)],
    "linalg_vector_norm": [(F(), 2, (1,)), (F(), 1, None), (F(), 3, (0,), True)],
    "constant_pad_nd": [(F(), (1, 2), 0.5), (F((2, 3)), (-1, 0, 0, 1))],
    "reflection_pad1d": [(F((1, 2, 4)), (1, 2))],
    "reflection_pad1d_backward": [(F((1, 2, 7)), (1, 2, 4), (1, 2))],
    "reflection_pad2d": [(IMAGE, (1, 2, 0, 1))],
    "reflection_pad2d_backward": [(F((1, 2, 5, 7)), (1, 2, 4, 4), (1, 2, 0, 1))],
    "reflection_pad3d": [(VOLUME, (1, 1, 0, 1, 1, 0))],
    "reflection_pad3d_backward": [(F((1, 1, 4, 5, 6)), (1, 1, 3, 4, 4), (1, 1, 0, 1, 1, 0))],
    "replication_pad1d": [(F((1, 2, 4)), (1, 2))],
    "replication_pad1d_backward": [(F((1, 2, 7)), (1, 2, 4), (1, 2))],
    "replication_pad2d": [(IMAGE, (1, 2, 0, 1))],
    "replication_pad2d_backward": [(F((1, 2, 5, 7)), (1, 2, 4, 4), (1, 2, 0, 1))],
    "replication_pad3d": [(VOLUME, (1, 1, 0, 1, 1, 0))],
    "replication_pad3d_backward": [(F((1, 1, 4, 5, 6)), (1, 1, 3, 4, 4), (1, 1, 0, 1, 1, 0))],
    "im2col": [(IMAGE, (2, 2), ONE, (0, 1), (2, 1))],
    "col2im": [(F((1, 8, 9)), (4, 4), (2, 2), ONE, (0, 0), ONE)],
    "pixel_shuffle": [(F((1, 4, 2, 1)), 2)],
    "pixel_unshuffle": [(F((1, 1, 4, 2)), 2)],
    "channel_shuffle": [(F((1, 4, 2)), 2)],
    "_max_unpool": [(F((1, 1, 2, 2)), I([[[[0, 3], [9, 15]]]]), (1, 1, 4, 4))],
    "_max_pool_gather": [(F((1, 1, 4, 4)), I([[[[0, 3], [9, 15]]]]), (1, 1, 4, 4))],
    "_max_pool2d": [(IMAGE, *POOL2, ONE, False)],
    "max_pool2d_with_indices": [
        (IMAGE, *POOL2, ONE, False),
        (IMAGE, (3, 3), (2, 2), ONE, ONE, True),
    ],
    "_max_pool3d": [(VOLUME, *POOL3, (1, 1, 1), False)],
    "max_pool3d_with_indices": [(VOLUME, *POOL3, (1, 1, 1), False)],
    "max_unpool": [(F((1, 1, 2, 2)), I([[[[0, 3], [9, 15]]]]), (4, 4))],
    "_adaptive_avg_pool2d": [(IMAGE, (3, 2))],
    "_adaptive_avg_pool2d_backward": [(F((1, 2, 3, 2)), (4, 4))],
    "_adaptive_max_pool2d": [(IMAGE, (3, 2))],
    "_adaptive_avg_pool3d": [(VOLUME, (2, 3, 2))],
    "_adaptive_avg_pool3d_backward": [(F((1, 1, 2, 3, 2)), (3, 4, 4))],
    "_adaptive_max_pool3d": [(VOLUME, (2, 3, 2))],
    "_avg_pool2d": [
        (IMAGE, *POOL2, False, True, None),
        (IMAGE, (3, 3), (2, 2), ONE, True, False, None),
    ],
    "_avg_pool2d_backward": [(F((1, 2, 2, 2)), (1, 2, 4, 4), *POOL2, False, True, 3)],
    "_avg_pool3d": [(VOLUME, *POOL3, False, True, None)],
    "_avg_pool3d_backward": [(F((1, 1, 1, 2, 2)), (1, 1, 3, 4, 4), *POOL3, False, True, None)],
    "roll": [(F(), (1,), (1,)), (F(), (2,))],
    "flip": [(F(), (0, 1))],
    "repeat": [(F(), (2, 1, 2))],
    "trace": [(F((3, 3)),)],
    "_softmax_backward": [(G, F(), 1)],
    "_log_softmax_backward": [(G, F(low=-2.0, high=-0.1), 1)],
    "fill.Tensor": [(F(), F(()))],
    "_fill.Tensor": [(F(), F(()))],
    "_convert_indices_from_coo_to_csr": [(I([0, 0, 2]), 4), (I([0, 0, 2]), 4, True)],
    "_convert_indices_from_csr_to_coo": [
        (I([0, 2, 2, 3]), I([1, 0, 2])),
        (I([[0, 2, 3], [0, 1, 3]]), I([[1, 0, 2], [1, 1, 0]]), False, True),
    ],
    "searchsorted.Tensor": [(F((4,)), F())],
    "bincount": [(I([1, 3, 3]), F((3,)), 5)],
    "cumprod": [(F(), 1)],
    "sort.stable": [(F(), True, 1, True)],
    "median": [(F((5,)),)],
    "nanmedian": [(F((5,)),)],
    "diag_embed": [(F(), 1)],
    "diff": [(F((2, 5)), 2)],
    "view": [(F(), (3, 2)), (F((0, 3)), (3, 0))],
    "_unsafe_view": [(F(), (6,))],
    "_reshape_alias": [(F(), (6,))],
    "reshape": [(F(), (3, -1))],
    "unflatten": [(F((2, 6)), 1, (2, 3))],
    "permute": [(F((2, 3, 1)), (2, 0, 1))],
    "squeeze.dims": [(F((1, 3, 1)), (0, 2))],
    "squeeze": [(F((1, 3, 1)),)],
    "squeeze.dim": [(F((3, 1)), 1)],
    "expand": [(F((2, 1)), (4, 2, 3))],
    "broadcast_to": [(F((2, 1)), (4, 2, 3))],
    "slice.Tensor": [(F((4, 5)), 1, 1, 5, 2), (F((4, 5)), 0, None, -1, 1), (F((2, 0)), 1)],
    "narrow": [(F((4, 5)), 1, 1, 3)],
    "unfold": [(F((2, 6)), 1, 3, 2)],
    "diagonal": [(F((2, 3, 3)), 1, 1, 2), (F(), -1)],
    "split.Tensor": [(F((2, 5)), 2, 1)],
    "split_with_sizes": [(F((2, 5)), (1, 4), 1)],
    "as_strided.relative": [(F((2, 3)), (2, 2), (3, 2), 0)],
    "select_backward": [(F((2,)), (2, 3), 1, 2)],
    "slice_backward": [(F((2, 2)), (2, 5), 1, 1, 5, 2)],
    "diagonal_backward": [(F((2,)), (2, 3), 0, 0, 1)],
    "unfold_backward": [(F((2, 2, 3)), (2, 6), 1, 3, 2)],
    "as_strided_backward": [(F((2, 2)), (2, 3), (3, 1), 0, (2, 2), (3, 2), 0)],
    "as_strided_forward": [(F((2, 3)), (2, 3), (3, 1), 0, (2, 2), (3, 2), 0)],
    "select_scatter": [(F(), F((2,)), 1, 2)],
    "slice_scatter": [(F((2, 5)), F((2, 2)), 1, 1, 5, 2)],
    "diagonal_scatter": [(F(), F((2,)))],
    "view_as": [(F(), F((3, 2)))],
    "reshape_as": [(F(), F((3, 2)))],
    "expand_as": [(F((2, 1)), F())],
    "_cumprod_zeros_backward": [(G, F(), 1)],
    **_upsampling(),
}

# Not functions of their arguments alone, or only parts of others that need what those make.
LEFT_OUT = frozenset(
    {
        "_random_write",  # draws from a generator
        "_pin_memory",  # needs an accelerator, and memory: tested in core.backends.test_pinned
        "_max_pool_backward",  # needs the forward's result: tested through `_max_pool2d`
        "_max_pool_indices",
        "_real",  # views as another type, finished by the public `real` and `imag`
        "_imag",
    }
)

# The shape of the result depends on the elements: no rule can foretell it.
SHAPE_FROM_DATA = frozenset(
    {
        "masked_select", "nonzero", "argwhere", "_unique2", "unique_dim", "unique_consecutive",
        "bincount", "combinations",
    }
)  # fmt: skip
# Composites whose result is an integer, a truth value or constant in steps.
FLAT = frozenset({"isclose", "angle_backward"})
# Defined for symmetric matrices only.
SYMMETRIC = frozenset({"linalg_cholesky"})
# What is done to the tensors first, and to the results last, where only a part of either has a
# derivative: name → function of (tensors, all arguments), name → function of the results.
PREPARED: dict[str, Any] = {}
WELL_DEFINED: dict[str, Any] = {}

for _path in sorted(pathlib.Path(__file__).parent.glob("arguments_*.py")):
    _family = importlib.import_module(f"tests.core.ops.{_path.stem}")
    _twice = ARGUMENTS.keys() & _family.ARGUMENTS.keys()
    assert not _twice, f"{_path.name}: {sorted(_twice)} have samples elsewhere"
    ARGUMENTS |= _family.ARGUMENTS
    LEFT_OUT |= getattr(_family, "LEFT_OUT", frozenset())
    SHAPE_FROM_DATA |= getattr(_family, "SHAPE_FROM_DATA", frozenset())
    FLAT |= getattr(_family, "FLAT", frozenset())
    SYMMETRIC |= getattr(_family, "SYMMETRIC", frozenset())
    PREPARED |= getattr(_family, "PREPARED", {})
    WELL_DEFINED |= getattr(_family, "WELL_DEFINED", {})

INTEGER_NAMES = ("bitwise_", "gcd", "lcm")


def make(spec: Any, rng: np.random.Generator) -> Any:
    """The value that `spec` describes; what is no description stays as it is."""
    if isinstance(spec, F):
        n = int(np.prod(spec.shape))
        steps = (np.arange(n) + rng.uniform(0.1, 0.9)) / max(n, 1)
        values = spec.low + (spec.high - spec.low) * rng.permutation(steps)
        return torchlab.tensor(values.reshape(spec.shape))
    if isinstance(spec, I):
        return torchlab.tensor(spec.values)
    if isinstance(spec, C):
        parts = rng.uniform(0.2, 0.9, (2, *spec.shape))
        return torchlab.tensor(parts[0] + 1j * parts[1])
    if isinstance(spec, B):
        n = int(np.prod(spec.shape))
        return torchlab.tensor((np.arange(n) % 2 == 0).reshape(spec.shape))
    if isinstance(spec, M):
        a = rng.standard_normal((spec.n, spec.n))
        return torchlab.tensor(a @ a.T / spec.n + 2 * np.eye(spec.n))
    if isinstance(spec, list):
        return [make(x, rng) for x in spec]
    return spec


def specs(op: Op) -> list[tuple[Any, ...]]:
    """The descriptions of the arguments of each sample."""
    own = ARGUMENTS.get(
        f"{op.name}.{op.overload}", ARGUMENTS.get(op.name) if op.overload == "default" else None
    )
    if own is not None:
        return own
    parts: list[Any] = []
    for a in op.schema.arguments:
        kind = a.type
        if a.name in BY_NAME and (not a.has_default or kind.base != "Tensor"):
            parts.append(BY_NAME[a.name] if not a.has_default else a.default)
        elif a.has_default or kind.optional:
            parts.append(a.default if a.has_default else None)
        elif kind.base == "Tensor" and kind.list:
            parts.append([F(), G])
        elif kind.base == "Tensor":
            parts.append(I([[3, 5, 1], [2, 7, 4]]) if op.name.startswith(INTEGER_NAMES) else F())
        elif kind.base in ("int", "SymInt"):
            parts.append((1,) * (kind.size or 1) if kind.list else 1)
        elif kind.base in ("float", "Scalar"):
            parts.append(0.5)
        elif kind.base == "bool":
            parts.append(False)
        else:
            raise LookupError(f"{op}: samples.ARGUMENTS has no example for '{kind} {a.name}'")
    return [tuple(parts)]


def samples(op: Op) -> Iterator[tuple[Any, ...]]:
    """All arguments by position, fresh at each call, the same at each run."""
    for number, sample in enumerate(specs(op)):
        rng = np.random.default_rng([zlib.crc32(str(op).encode()), number])
        values = [make(x, rng) for x in sample]
        values += [a.default for a in op.schema.arguments[len(values) :]]
        yield tuple(values)


def declared() -> list[Op]:
    """Every declared operator that has samples."""
    return [
        op for overloads in OPS.values() for op in overloads.values() if op.name not in LEFT_OUT
    ]


__all__ = [
    "ARGUMENTS",
    "FLAT",
    "LEFT_OUT",
    "PREPARED",
    "SHAPE_FROM_DATA",
    "SYMMETRIC",
    "WELL_DEFINED",
    "declared",
    "make",
    "samples",
    "specs",
]
