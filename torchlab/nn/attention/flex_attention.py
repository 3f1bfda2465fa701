"""`torch.nn.attention.flex_attention`: attention whose scores and mask are functions.

    def causal(b, h, q_idx, kv_idx): return q_idx >= kv_idx
    mask = create_block_mask(causal, None, None, 1024, 1024, device="cpu")
    flex_attention(query, key, value, block_mask=mask)

As PyTorch does on the CPU, without gradients. All scores are computed; a BlockMask's function says
which of them count. (Dong et al., "Flex Attention", arXiv:2412.05496.)

Source: https://docs.pytorch.org/docs/2.13/nn.attention.flex_attention.html
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import float32, float64
from torchlab._core.tensor import Tensor
from torchlab.func import vmap
from torchlab.nn.attention.block_mask import (
    DEFAULT_BLOCK as _DEFAULT_SPARSE_BLOCK_SIZE,
)
from torchlab.nn.attention.block_mask import (
    BlockMask,
    MaskMod,
    convert_mask_to_blocks,
    listed,
    noop_mask,
)
from torchlab.nn.attention.indexing import TransformGetItemToIndex

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "_DEFAULT_SPARSE_BLOCK_SIZE",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_BOTH = (
    "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use"
    " return_aux=AuxRequest(lse=True) instead."
)


class AuxRequest(NamedTuple):
    """What `flex_attention` shall give besides its output."""

    lse: bool = False
    max_scores: bool = False


class FlexKernelOptions(TypedDict, total=False):
    """What may be said about GPUs' kernels."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    BLOCK_M1: int
    BLOCK_N1: int
    BLOCK_M2: int
    BLOCK_N2: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    kpack: int
    matrix_instr_nonkdim: int
    waves_per_eu: int
    BACKEND: str


class AuxOutput(NamedTuple):
    """What was asked for: (B, H, queries) of the logarithms of the sums of exponentials."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


# ---- masks --------------------------------------------------------------------------------------


def _called(mask_mods: tuple[MaskMod, ...]) -> None:
    if not all(callable(m) for m in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask under which a score counts that counts under one of these."""
    _called(mask_mods)

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = aten.new_zeros(b, (), dtype=noop_mask(b, h, q_idx, kv_idx).dtype)
        for mask in mask_mods:
            result = aten.bitwise_or(result, mask(b, h, q_idx, kv_idx))
        return result

    return or_mask


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask under which a score counts that counts under all of these."""
    _called(mask_mods)

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = noop_mask(b, h, q_idx, kv_idx)
        for mask in mask_mods:
            result = aten.bitwise_and(result, mask(b, h, q_idx, kv_idx))
        return result

    return and_mask


def _takes_scores(function: Any) -> bool:
    """Whether it is a function of a score and its place, or of the place alone."""
    given = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    n = sum(p.kind in kinds and p.default is p.empty for p in given)
    if n not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {n}")
    return n == 5


_PLACES = ((0, None, None, None), (None, 0, None, None), (None, None, 0, None), (None,) * 3 + (0,))


def _for_each(function: Any, shape: tuple[int, ...], device: Any, scores: Any = None) -> Tensor:
    """`function` of all places of (B, H, M, N), and of the scores that are there."""
    of_scores = scores is not None
    for dims in reversed(_PLACES):
        function = vmap(function, in_dims=((0, *dims) if of_scores else dims), out_dims=0)
    places = [aten.arange(n, device=device) for n in shape]
    with TransformGetItemToIndex():
        return function(scores, *places) if of_scores else function(*places)


def create_mask(
    mod_fn: ScoreMod | MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
    device: Any = None,
) -> Tensor:  # fmt: skip
    """(B, H, Q_LEN, KV_LEN) of bools: which scores count under a mask, or are not made -inf by a
    function of scores. B, H: None for a mask that is the same for all."""
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    if not _takes_scores(mod_fn):
        return _for_each(mod_fn, shape, device)
    scores = _for_each(mod_fn, shape, device, aten.zeros(shape, device=device))
    return ~aten.isneginf(scores)


def create_block_mask(
    mask_mod: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE, _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:  # fmt: skip
    """The BlockMask of a mask: a function of batch, head, query and key that tells whether a score
    counts.

    B, H: None for a mask that is the same for all. BLOCK_SIZE: (queries, keys) of a block.
    separate_full_blocks: whether blocks of which all scores count are listed as such.
    """
    if _takes_scores(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    rows, columns = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    partial, full = convert_mask_to_blocks(mask, rows, columns, separate_full_blocks)
    count, order = listed(partial)
    full_count, full_order = (None, None) if full is None else listed(full)
    return BlockMask.from_kv_blocks(
        count, order, full_count, full_order, (rows, columns), mask_mod, (Q_LEN, KV_LEN)
    )


# ---- attention ----------------------------------------------------------------------------------


def _checked(
    query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, grouped: bool
) -> None:
    if query.ndim != 4 or key.ndim != 4 or value.ndim != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got"
            f" E={query.shape[-1]} and E={key.shape[-1]}."
        )
    heads, shared = query.shape[1], key.shape[1]
    if not grouped and heads != shared:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and"
            f" Hkv={shared}. Try setting enable_gqa=True for GQA."
        )
    if grouped and heads % shared:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got"
            f" Hq={heads} and Hkv={shared}."
        )
    batch, other = query.shape[0], key.shape[0]
    if batch != other:
        if block_mask is None:
            raise ValueError(
                "Expect query and key/value to have the same batch size, or non-none block_mask,"
                f" but got block_mask=None, Bq={batch}, and Bkv={other}."
            )
        if block_mask.shape[0] != batch:
            raise ValueError(
                "Expect query and key/value to have the same batch size, or block_mask and query to"
                f" have the same batch size, but got Bq={batch}, Bkv={other},"
                f" B_block_mask={block_mask.shape[0]}."
            )
    if block_mask is not None:
        _fits(block_mask, query.shape[2], key.shape[2])


def _fits(block_mask: BlockMask, q_len: int, kv_len: int) -> None:
    rows, columns = block_mask.shape[-2:]
    if (q_len, kv_len) == (rows, columns):
        return
    said = (
        f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={q_len} and"
        f" kv_len={kv_len}. As the block mask was created for a "
    )
    if q_len > rows or kv_len > columns:
        raise ValueError(
            f"{said}smaller length than you're using it for, you likely need to create a new block"
            " mask."
        )
    raise ValueError(
        f"{said}larger length than you're using it for, you can either 1. create a new block mask"
        " with the correct length, or 2. 'adjust' the existing block mask to the correct length by"
        " calling block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to the"
        " upper left corner, which does not work for all mask_mods!"
    )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """softmax(score_mod(scale · query keyᵀ)) value, of the scores that count.

    query: (B, Hq, L, E). key: (B, Hkv, S, E). value: (B, Hkv, S, Ev). score_mod: a function of
    (score, batch, head, query, key). scale: by default 1/√E. enable_gqa: Hq may be a multiple of
    Hkv. return_aux: gives (output, AuxOutput) instead. return_lse: the old way to ask for (output,
    lse). kernel_options: about GPUs' kernels; they change nothing here.

    Raises:
        ValueError: shapes do not fit, or the mask is of another size.
        NotImplementedError: an input requires a gradient, or max_scores are asked for: as in
            PyTorch, the CPU has none.
    """
    if return_lse and return_aux is not None:
        raise ValueError(_BOTH)
    _checked(query, key, value, block_mask, enable_gqa)
    for name in ("OUTPUT_LOGSUMEXP", "OUTPUT_MAX"):
        if kernel_options and name in kernel_options:
            raise AssertionError(f"{name} must not be in kernel_options")
    if return_aux is not None and return_aux.max_scores:
        raise NotImplementedError("Returning max scores is not supported on CPU/MPS.")
    if any(x.requires_grad for x in (query, key, value)):
        raise NotImplementedError(
            "FlexAttention does not support backward on CPU. Please set the input requires_grad to"
            " False or use another device."
        )
    output, lse = _attended(query, key, value, score_mod, block_mask, scale)
    if return_aux is not None:
        return output, AuxOutput(lse=lse if return_aux.lse else None)
    return (output, lse) if return_lse else output


def _attended(
    query: Tensor, key: Tensor, value: Tensor, score_mod: ScoreMod | None,
    block_mask: BlockMask | None, scale: float | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The output and the logarithms of the sums of exponentials, in float32 or float64."""
    groups = query.shape[1] // key.shape[1]
    if groups != 1:
        key, value = (aten.repeat_interleave(x, groups, dim=1) for x in (key, value))
    working = float64 if query.dtype is float64 else float32
    scores = aten.matmul(query.to(working), aten.transpose(key.to(working), -2, -1))
    scores = scores * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    shape = tuple(scores.shape)
    if score_mod is not None:
        scores = _for_each(score_mod, shape, query.device, scores).to(working)
    if block_mask is not None:
        mask = _for_each(block_mask.mask_mod, shape, query.device)
        scores = aten.where(mask, scores, -math.inf)
    lse = aten.logsumexp(scores, [-1])
    weights = aten._safe_softmax(scores, -1).to(query.dtype)
    return aten.matmul(weights, value.to(query.dtype)), lse
