"""The second names that `torchlab.special` has for operators of `torchlab`.

Source: https://docs.pytorch.org/docs/2.13/special.html
"""

from __future__ import annotations

from torchlab._core.dispatch.registry import alias_in

_NAMES = {
    "digamma": "digamma",
    "erf": "erf",
    "erfc": "erfc",
    "exp2": "exp2",
    "expit": "sigmoid",
    "expm1": "expm1",
    "gammainc": "igamma",
    "gammaincc": "igammac",
    "gammaln": "lgamma",
    "log1p": "log1p",
    "log_softmax": "log_softmax",
    "logsumexp": "logsumexp",
    "multigammaln": "mvlgamma",
    "psi": "digamma",
    "round": "round",
    "softmax": "softmax",
}
for _new, _old in _NAMES.items():
    alias_in("special", _new, _old)
