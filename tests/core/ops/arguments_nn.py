"""Example arguments of the neural networks' operators, for the generated tests."""

from __future__ import annotations

from typing import Any

from tests.core.ops.values import B, F, I

G = F(low=-0.9, high=0.9)
IMAGE = F((1, 2, 4, 5))
VOLUME = F((1, 2, 3, 4, 3))
POINTS = F((1, 2, 3, 2), -0.75, 0.72)
POINTS_3D = F((1, 2, 1, 2, 3), -0.75, 0.72)
DRAWS = F((1, 2, 2), 0.1, 0.4)
DRAWS_3D = F((1, 2, 3), 0.1, 0.4)
NORM = (F((3, 2, 2)), F((2,)), F((2,)))
ROWS = (F((4, 3)), F((5, 3)), I([0, 4, -100, 2]), F((5,)), F((5,)), -100, 3)
PLACES = I([[[[0, 3], [11, 19]], [[4, 4], [10, 18]]]])

SAMPLED = [(m, p, c) for m in (0, 2) for p in (0, 1, 2) for c in (False, True)]

ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "grid_sampler_2d": [(IMAGE, POINTS, *how) for how in SAMPLED],
    "grid_sampler_3d": [(VOLUME, POINTS_3D, 0, padding, True) for padding in (0, 1, 2)],
    "grid_sampler": [(IMAGE, POINTS, 0, 0, False)],
    "grid_sampler_2d_backward": [
        (F((1, 2, 2, 3)), IMAGE, POINTS, 0, 0, False, (True, True)),
        (F((1, 2, 2, 3)), IMAGE, POINTS, 2, 1, True, (False, True)),
    ],
    "grid_sampler_3d_backward": [
        (F((1, 2, 2, 1, 2)), VOLUME, POINTS_3D, 0, 0, False, (True, False))
    ],
    "_grid_taps": [(POINTS, (4, 5), 0, 0, False), (POINTS, (4, 5), 2, 2, True)],
    "affine_grid_generator": [
        (F((2, 2, 3)), (2, 1, 3, 4), True),
        (F((1, 3, 4)), (1, 1, 2, 3, 2), False),
    ],
    "affine_grid_generator_backward": [(F((2, 3, 4, 2)), (2, 1, 3, 4), True)],
    "fractional_max_pool2d": [(IMAGE, (2, 2), (2, 3), DRAWS)],
    "fractional_max_pool3d": [(VOLUME, (2, 2, 1), (1, 2, 2), DRAWS_3D)],
    "max_pool2d_with_indices_backward": [
        (F((1, 2, 2, 2)), IMAGE, (2, 2), (2, 2), (0, 0), (1, 1), False, PLACES)
    ],
    "native_batch_norm": [(*NORM, None, None, True, 0.1, 1e-3)],
    "_batch_norm_with_update": [(*NORM, F((2,)), F((2,)), 0.0, 1e-3)],
    "native_dropout_backward": [(G, B(), 2.0)],
    "_upsample_bilinear2d_aa": [(IMAGE, (3, 2), False)],
    "_upsample_bilinear2d_aa.vec": [(IMAGE, (3, 2), False, None)],
    "_upsample_bicubic2d_aa": [(IMAGE, (3, 2), True)],
    "_upsample_bicubic2d_aa.vec": [(IMAGE, None, False, (0.6, 0.8))],
    "_upsample_lanczos2d_aa": [(IMAGE, (3, 2), False)],
    "_upsample_lanczos2d_aa.vec": [(IMAGE, None, False, (0.6, 0.8))],
    "_linear_cross_entropy_rows": [ROWS],
    "_linear_cross_entropy_rows_backward": [(F((4,)), *ROWS)],
    "poisson_nll_loss": [(F(), F(), True, False, 1e-8, 1)],
    "hinge_embedding_loss": [(F(), I([[1, -1, 1], [-1, 1, 1]]))],
    "margin_ranking_loss": [(F(), F(low=1.0, high=2.0), F(), 0.1)],
    "triplet_margin_loss": [(F(), F(low=1.0, high=2.0), F(low=0.1, high=1.1))],
    "cosine_embedding_loss": [(F(), F(), I([1, 1]))],
    "kl_div": [(G, F(), 1)],
}

# CTC's gradient is that of normalized log probabilities, so finite differences of free ones differ:
# tested on its own. The two backward_data take a dtype, which no schema's example can tell. Running
# statistics are constants to backward, whatever finite differences say.
LEFT_OUT = frozenset(
    {
        "_ctc_loss",
        "_ctc_loss_backward",
        "_native_batch_norm_legit_no_training",
        "_softmax_backward_data",
        "_log_softmax_backward_data",
    }
)
