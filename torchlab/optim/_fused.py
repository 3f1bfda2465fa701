"""`fused=True`: an optimizer's whole step as one generated C++ loop over each parameter.

The formulas stand here once, as text; `codegen` compiles them for the dtype and the options in use,
once per machine (then they come from its cache). Without a compiler the array way computes the
same, and a warning says so once.
"""

from __future__ import annotations

from typing import Any

from torchlab._core.codegen.update import UpdateKernel, update_kernel

_kernels: dict[tuple[Any, ...], UpdateKernel | None] = {}


def adam_kernel(dtype: Any, maximize: bool, decay: str, amsgrad: bool) -> UpdateKernel | None:
    """`(p, g, m, v[, largest], share1, beta2, share2, eps, rate, decay)`; decay: "none",
    "decoupled" (p shrinks to p·decay) or "added" (decay·p is added to g). eps and rate as in
    `adam._array_step`."""
    key = ("adam", dtype, maximize, decay, amsgrad)
    if key not in _kernels:
        gradient = "-g" if maximize else "g"
        square = "largest" if amsgrad else "v"
        formulas = {
            "d": f"{gradient} + p * decay" if decay == "added" else gradient,
            "m": "m + (d - m) * share1",
            "v": "v * beta2 + d * d * share2",
            **({"largest": "maximum(largest, v)"} if amsgrad else {}),
            "p": f"{'p * decay' if decay == 'decoupled' else 'p'}"
            f" - m / (sqrt({square}) + eps) * rate",
        }
        _kernels[key] = update_kernel(
            formulas,
            arrays=("p", "g", "m", "v", *(("largest",) if amsgrad else ())),
            numbers=("share1", "beta2", "share2", "eps", "rate", "decay"),
            dtype=dtype.name,
            name="adam",
        )
    return _kernels[key]


def sgd_kernel(
    dtype: Any, maximize: bool, decay: bool, momentum: bool, nesterov: bool
) -> UpdateKernel | None:
    """`(p, g[, m], lr, decay[, momentum, share])`; share = 1 - dampening."""
    key = ("sgd", dtype, maximize, decay, momentum, nesterov)
    if key not in _kernels:
        gradient = "-g" if maximize else "g"
        formulas = {"d": f"{gradient} + p * decay" if decay else gradient}
        if momentum:
            formulas["m"] = "m * momentum + d * share"
        step = "d" if not momentum else "d + m * momentum" if nesterov else "m"
        formulas["p"] = f"p - ({step}) * lr"
        _kernels[key] = update_kernel(
            formulas,
            arrays=("p", "g", *(("m",) if momentum else ())),
            numbers=("lr", "decay", *(("momentum", "share") if momentum else ())),
            dtype=dtype.name,
            name="sgd",
        )
    return _kernels[key]


def adagrad_kernel(dtype: Any, maximize: bool, decay: bool) -> UpdateKernel | None:
    """`(p, g, h, rate, eps, decay)`."""
    key = ("adagrad", dtype, maximize, decay)
    if key not in _kernels:
        gradient = "-g" if maximize else "g"
        _kernels[key] = update_kernel(
            {
                "d": f"{gradient} + p * decay" if decay else gradient,
                "h": "h + d * d",
                "p": "p - d / (sqrt(h) + eps) * rate",
            },
            arrays=("p", "g", "h"),
            numbers=("rate", "eps", "decay"),
            dtype=dtype.name,
            name="adagrad",
        )
    return _kernels[key]
