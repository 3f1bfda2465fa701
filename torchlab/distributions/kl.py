"""The Kullback–Leibler divergence KL(p ‖ q) = E_p[log p - log q], by pairs of types.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#module-torch.distributions.kl
"""

from __future__ import annotations

from torchlab.distributions import _kl_families, _kl_pairs  # noqa: F401  (they register the pairs)
from torchlab.distributions._kl_registry import (
    _KL_MEMOIZE,  # noqa: F401
    _KL_REGISTRY,  # noqa: F401
    _dispatch_kl,  # noqa: F401
    kl_divergence,
    register_kl,
)

__all__ = ["register_kl", "kl_divergence"]
