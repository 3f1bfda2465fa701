"""Attention whose scores and mask are functions; values are PyTorch's."""

from __future__ import annotations

import math
from typing import Any

import pytest

import torchlab as torch
from torchlab._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from torchlab.nn.attention.flex_attention import (
    AuxOutput,
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)


def causal(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return q_idx >= kv_idx


def near(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return (q_idx - kv_idx < 70) & (q_idx - kv_idx > -70)


# ---- masks --------------------------------------------------------------------------------------


def test_masks_of_functions() -> None:
    rows = [[True, False, False, False], [True, True, False, False], [True, True, True, False]]
    assert create_mask(causal, None, None, 3, 4).tolist() == [[rows]]
    assert create_mask(causal, 2, 2, 3, 4).tolist() == [[rows, rows], [rows, rows]]

    def score(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        assert (s.ndim, s.dtype, i.dtype) == (0, torch.float32, torch.int64)
        return torch.where(i >= j, s, -math.inf)

    assert create_mask(score, 1, 1, 3, 4).tolist() == [[rows]]
    with pytest.raises(AssertionError, match="Expected 4 or 5 positional args, got 2"):
        create_mask(lambda a, b: a, 1, 1, 3, 4)  # type: ignore[arg-type]


def test_masks_may_index() -> None:
    start, table = torch.tensor([0, 5]), torch.eye(3, dtype=torch.bool)
    found = create_mask(lambda b, h, i, j: i >= j + start[b], 2, 1, 6, 2)
    assert found[:, 0].sum((1, 2)).tolist() == [11, 1]
    found = create_mask(lambda b, h, i, j: table[i, j] | table[0, j], 1, 1, 3, 3)
    assert found[0, 0].tolist() == [[True, False, False], [True, True, False], [True, False, True]]


def test_masks_are_joined() -> None:
    first = create_mask(lambda b, h, i, j: j == 0, 1, 1, 2, 2)
    assert torch.equal(create_mask(and_masks(causal, lambda b, h, i, j: j == 0), 1, 1, 2, 2), first)
    assert create_mask(or_masks(causal, near), 1, 1, 2, 2).all()
    assert create_mask(noop_mask, 1, 1, 2, 2).all()
    assert create_mask(and_masks(), 1, 1, 2, 2).all()
    assert not create_mask(or_masks(), 1, 1, 2, 2).any()
    with pytest.raises(RuntimeError, match="All inputs should be callable mask_mods"):
        and_masks(causal, 3)  # type: ignore[arg-type]


# ---- blocks -------------------------------------------------------------------------------------


def test_blocks_are_listed() -> None:
    mask = create_block_mask(causal, 2, None, 300, 200)
    assert mask.shape == (2, 1, 300, 200) and mask.numel() == 120000
    assert (mask.BLOCK_SIZE, mask.seq_lengths) == ((128, 128), (300, 200))
    assert mask.mask_mod is causal
    assert math.isclose(mask.sparsity(), -36.53333333333333)
    one = {
        "kv_num_blocks": [1, 1, 2],
        "kv_indices": [[0, 1], [1, 0], [0, 1]],
        "full_kv_num_blocks": [0, 1, 0],
        "full_kv_indices": [[0, 1], [0, 1], [0, 1]],
        "q_num_blocks": [2, 2],
        "q_indices": [[0, 2, 1], [1, 2, 0]],
        "full_q_num_blocks": [1, 0],
        "full_q_indices": [[1, 0, 2], [0, 1, 2]],
    }
    for name, values in one.items():
        found = getattr(mask, name)
        assert found.dtype is torch.int32 and found.tolist() == [[values], [values]], name
    assert mask.to_dense().tolist() == [[[[1, 0], [1, 1], [1, 1]]]] * 2
    assert str(mask[0]) == (
        "BlockMask(shape=(1, 1, 300, 200), sparsity=-36.53%, \n(0, 0)\n██  \n████\n████\n)"
    )
    assert [type(x).__name__ for x in mask.as_tuple(False)] == (
        ["tuple"] + ["Tensor"] * 8 + ["NoneType"] * 4 + ["tuple", "function"]
    )


def test_blocks_that_are_not_square_or_not_separate() -> None:
    mask = create_block_mask(near, None, 3, 64, 96, BLOCK_SIZE=(16, 32))
    assert mask.kv_num_blocks[0, 2].tolist() == [1, 1, 0, 0]
    assert mask.kv_indices[0, 2].tolist() == [[2, 0, 1], [2, 0, 1], [0, 1, 2], [0, 1, 2]]
    assert mask.full_kv_num_blocks is not None
    assert mask.full_kv_num_blocks[0, 2].tolist() == [2, 2, 3, 3]
    whole = create_block_mask(near, 1, 1, 64, 96, BLOCK_SIZE=16, separate_full_blocks=False)
    assert whole.full_kv_indices is None and whole.full_q_indices is None
    assert whole.kv_num_blocks.tolist() == [[[6, 6, 6, 6]]] and whole.sparsity() == 0


def test_parts_of_blocks() -> None:
    mask = create_block_mask(causal, 3, 1, 40, 40, BLOCK_SIZE=8)
    assert mask[1:3].shape == mask[torch.tensor([0, 2])].shape == (2, 1, 40, 40)
    assert mask[-1].shape == mask[0, 0].shape == (1, 1, 40, 40)
    rows = mask[:, :, 1:3]
    assert rows.q_num_blocks is not None
    assert rows.kv_indices[0, 0].tolist() == [[1, 0, 2, 3, 4], [2, 0, 1, 3, 4]]
    assert rows.q_num_blocks[0, 0].tolist() == [0, 1, 1, 0, 0]
    corner = mask._adjust(20, 30)
    assert corner.shape == (3, 1, 20, 30)
    assert corner.kv_indices[0, 0].tolist() == [[0, 1, 2, 3], [1, 0, 2, 3], [2, 0, 1, 3]]
    full = corner.full_q_num_blocks
    assert full is not None and full[0, 0].tolist() == [2, 1, 0, 0]
    assert mask.to("cpu").shape == mask.shape


def test_masks_of_blocks_that_are_given() -> None:
    mask = create_block_mask(causal, 1, 1, 300, 200)
    given = (mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks, mask.full_kv_indices)
    again = BlockMask.from_kv_blocks(*given, BLOCK_SIZE=128)
    assert again.seq_lengths == (384, 256) and again.mask_mod is noop_mask
    assert torch.equal(again.to_dense(), mask.to_dense())
    assert BlockMask.from_kv_blocks(*given, compute_q_blocks=False).q_indices is None
    with pytest.raises(AssertionError, match="must be both provided or omitted"):
        BlockMask.from_kv_blocks(*given[:3])


def test_pictures_of_blocks() -> None:
    mask = create_block_mask(causal, 1, 5, 1000, 3000, BLOCK_SIZE=32)
    assert f"{mask.sparsity():.2f}" == "81.98"
    picture = "░░            \n░░            \n██░░          \n██░░          \n████░░        \n"
    assert mask.to_string(grid_size=(5, 7), limit=2) == (
        f"(0, 0)\n{picture}\n(0, 1)\n{picture}\n...\n"
        "To print out more, set BlockMask.to_string(limit=N)\n"
        "You can also index (BlockMask[batch, head]) to choose a specific batch or head"
    )
    assert str(mask).endswith("head\n)")


# ---- attention ----------------------------------------------------------------------------------


def inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return (
        torch.randn(2, 4, 100, 16, dtype=torch.float64),
        torch.randn(2, 2, 130, 16, dtype=torch.float64).repeat_interleave(2, 1),
        torch.randn(2, 2, 130, 8, dtype=torch.float64).repeat_interleave(2, 1),
    )


def test_values() -> None:
    q, k, v = inputs()
    bias = torch.tensor([0.5, -1.0, 2.0, 0.25], dtype=torch.float64)
    mask = create_block_mask(causal, None, None, 100, 130)
    assert f"{flex_attention(q, k, v).sum().item():.6g}" == "2.81556"
    grouped = flex_attention(q, k[:, ::2], v[:, ::2], enable_gqa=True)
    assert torch.equal(grouped, flex_attention(q, k, v))
    out, lse = flex_attention(q, k, v, block_mask=mask, return_lse=True)
    assert f"{out.sum().item():.6g} {lse.sum().item():.6g}" == "-9.2174 3298.22"
    both = flex_attention(
        q, k, v, score_mod=lambda s, b, h, i, j: s + (i - j) * 0.1, block_mask=mask, scale=0.5
    )
    assert f"{both.sum().item():.6g}" == "-24.3996"
    biased = flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + bias[h] * (i - j))
    scores = q @ k.mT / 4 + bias[:, None, None] * (torch.arange(100)[:, None] - torch.arange(130))
    torch.testing.assert_close(biased, scores.softmax(-1) @ v)


def test_rows_in_which_nothing_counts_are_zero() -> None:
    q, k, v = inputs()
    mask = create_block_mask(lambda b, h, i, j: (i >= j) & (i != 3), None, None, 100, 130)
    out, aux = flex_attention(q, k, v, block_mask=mask, return_aux=AuxRequest(lse=True))
    assert not out[:, :, 3].any() and (aux.lse[:, :, 3] == -math.inf).all()
    assert f"{out.sum().item():.6g}" == "-7.85015"


def test_bfloat16_is_computed_in_float32() -> None:
    q, k, v = (x.bfloat16() for x in inputs())
    out, lse = flex_attention(q, k, v, return_lse=True)
    assert (out.dtype, lse.dtype) == (torch.bfloat16, torch.float32)
    weights = (q.float() @ k.float().mT / 4).softmax(-1).bfloat16()
    torch.testing.assert_close(out, weights @ v)
    assert flex_attention(q, k, v, return_aux=AuxRequest())[1] == AuxOutput(None, None)


def test_refusals() -> None:
    x = torch.randn(1, 2, 4, 8)
    mask = create_block_mask(causal, None, None, 100, 130)
    cases: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        ((x[0], x, x), {}, NotImplementedError, "must be 4D tensors"),
        ((x, x[:, :1], x[:, :1]), {}, ValueError, "Hq=2 and Hkv=1. Try setting enable_gqa"),
        ((x[:, :1], x, x), {"enable_gqa": True}, ValueError, "multiple of kv heads for GQA"),
        ((x, x[..., :4], x), {}, ValueError, "same embedding dimension but got E=8 and E=4"),
        ((x.expand(2, 2, 4, 8), x, x), {}, ValueError, "got block_mask=None, Bq=2, and Bkv=1"),
        ((x, x, x), {"block_mask": mask}, ValueError, "created for a larger length"),
        ((x, x.repeat(1, 1, 50, 1), x), {"block_mask": mask}, ValueError, "a smaller length"),
        ((x, x, x), {"return_lse": True, "return_aux": AuxRequest()}, ValueError, "Cannot specify"),
        ((x, x, x), {"return_aux": AuxRequest(max_scores=True)}, NotImplementedError, "max scores"),
        ((x, x, x), {"kernel_options": {"OUTPUT_MAX": True}}, AssertionError, "must not be in"),
        ((x.clone().requires_grad_(), x, x), {}, NotImplementedError, "support backward on CPU"),
    ]
    for args, kwargs, kind, message in cases:
        with pytest.raises(kind, match=message):
            flex_attention(*args, **kwargs)


def test_tensors_index_under_the_mode() -> None:
    x = torch.arange(12.0).view(3, 4).requires_grad_()
    with TransformGetItemToIndex():
        assert x[torch.tensor(1), torch.tensor(2)].item() == x[1, 2].item() == 6
        assert x[1].tolist() == [4, 5, 6, 7] and x[1:].shape == (2, 4)
        assert x[(torch.tensor([0, 1]), 1)].tolist() == [1, 5]
