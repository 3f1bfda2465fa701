"""How a tensor prints: character for character as PyTorch prints it.

    tensor([[1.0000, 2.5000],
            [   nan,    inf]], dtype=torch.float64, grad_fn=<AddBackward0>)

Above `threshold` elements only the edges are read, so that printing costs the same for a tensor of
any size. The options are `torch.set_printoptions`' and hold for the whole process, as there.
Source of the rules: https://pytorch.org/docs/stable/generated/torch.set_printoptions.html, and the
output of PyTorch 2.13.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """Digits after the point; elements above which edges only are shown, and how many at each edge;
    characters a line; `sci_mode` None lets the values decide."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
_options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors print. `profile` ("default", "short" or "full") sets all options first;
    those given override it; `sci_mode` goes back to None in every call that does not give it.

    Raises TypeError for a value of the wrong type and ValueError for an unknown profile or a
    negative number; then nothing has changed.
    """
    global _options
    changes = asdict(_options)
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions(): profile {profile!r} is none of "
                             f"{', '.join(map(repr, _PROFILES))}")  # fmt: skip
        changes = asdict(_PROFILES[profile])
    given: dict[str, Any] = {
        "precision": precision, "threshold": threshold,
        "edgeitems": edgeitems, "linewidth": linewidth,
    }  # fmt: skip
    for name, value in given.items():
        if value is None:
            continue
        kinds = (int, float) if name == "threshold" else (int,)
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise TypeError(f"set_printoptions(): {name} must be an int, not {value!r}")
        if value < 0:
            raise ValueError(f"set_printoptions(): {name} must not be negative, got {value}")
        changes[name] = value
    if sci_mode not in (None, True, False):
        raise TypeError(f"set_printoptions(): sci_mode must be a bool or None, not {sci_mode!r}")
    changes["sci_mode"] = sci_mode
    _options = PrintOptions(**changes)


def get_printoptions() -> dict[str, Any]:
    """The options in force."""
    return asdict(_options)


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """`set_printoptions(**kwargs)` for the length of a `with` statement."""
    global _options
    before = _options
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        _options = before


def format_tensor(
    array: np.ndarray | None,
    *,
    dtype_name: str,
    device: str = "cpu",
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    default_dtype: str = "torch.float32",
    is_parameter: bool = False,
    prefix: str = "tensor",
    shape: Sequence[int] | None = None,
    tangent: str | None = None,
    contents: str | None = None,
) -> str:
    """What `repr(tensor)` shows.

    `array` holds the elements on the host with conj and neg resolved, or is None for a tensor
    without data (device "meta"), which prints `...` and needs `shape`. `dtype_name` and
    `default_dtype` are `str(dtype)`, as "torch.float32". `device` is shown unless it is the CPU.
    `prefix` is the class name for a subclass of Tensor. `contents` stands in the elements' place.
    """
    options = _options
    opening = f"{prefix}("
    indent = len(opening)
    suffixes: list[str] = []
    if not device.startswith("cpu"):
        suffixes.append(f"device='{device}'")
    if array is None or array.size == 0:
        if array is None or array.ndim != 1:
            extent = tuple(int(n) for n in (array.shape if array is not None else shape or ()))
            suffixes.append(f"size={extent}")
        # Without elements to see, even int64 and bool are said.
        if dtype_name != default_dtype:
            suffixes.append(f"dtype={dtype_name}")
        body = contents or ("..." if array is None else "[]")
    else:
        if not options.edgeitems:
            suffixes.append(f"size={array.shape}")
        if dtype_name not in _silent_dtypes(default_dtype):
            suffixes.append(f"dtype={dtype_name}")
        body = _body(array, indent, options) if contents is None else contents
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    text = _with_suffixes(opening + body, suffixes, indent, options.linewidth)
    if is_parameter and prefix != "tensor":
        return f"Parameter({text})"  # of a class of the program's
    return f"Parameter containing:\n{text}" if is_parameter else text


def _silent_dtypes(default_dtype: str) -> tuple[str, ...]:
    namespace, _, name = default_dtype.rpartition(".")
    return (
        default_dtype,
        f"{namespace}.{'complex128' if name == 'float64' else 'complex64'}",
        f"{namespace}.int64",
        f"{namespace}.bool",
    )


def _with_suffixes(
    text: str, suffixes: Sequence[str], indent: int, linewidth: int, new_line: bool = False
) -> str:
    """The text closed, after suffixes where they fit; `new_line`: the first on a line of its
    own in any case."""
    used = linewidth if new_line else len(text) - text.rfind("\n") + 1
    parts = [text]
    for suffix in suffixes:
        if used + len(suffix) + 2 > linewidth:
            parts.append(f",\n{' ' * indent}{suffix}")
            used = indent + len(suffix)
        else:
            parts.append(f", {suffix}")
            used += len(suffix) + 2
    parts.append(")")
    return "".join(parts)


def _body(array: np.ndarray, indent: int, options: PrintOptions) -> str:
    summarize = array.size > options.threshold
    shown = _edges(array, options.edgeitems) if summarize else array
    if shown.dtype.kind not in "biufc":  # bfloat16 and the float8 of ml_dtypes
        shown = shown.astype(np.float32)
    if shown.dtype.kind == "c":
        real, imag = _Formatter(shown.real, options), _Formatter(shown.imag, options)
        width = real.width + imag.width + 1
        texts = [_complex(r, i) for r, i in zip(real.texts(), imag.texts(), strict=True)]
    else:
        formatter = _Formatter(shown, options)
        width, texts = formatter.width, formatter.texts()
    elements = iter(texts)

    def nest(dim: int, indent: int) -> str:
        if dim == array.ndim:
            return next(elements)
        n, edge = array.shape[dim], options.edgeitems
        cut = summarize and n > 2 * edge
        count = 2 * edge if cut else n
        innermost = dim == array.ndim - 1
        ellipsis = " ..." if innermost and edge else "..."
        items = [nest(dim + 1, indent + 1) for _ in range(count)]
        if cut:
            items.insert(edge, ellipsis)
        if innermost:
            per_line = max(1, (options.linewidth - indent) // (width + 2))
            lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
            return f"[{(',' + chr(10) + ' ' * (indent + 1)).join(lines)}]"
        break_ = "," + "\n" * (array.ndim - dim - 1) + " " * (indent + 1)
        return f"[{break_.join(items)}]"

    return nest(0, indent)


def _edges(array: np.ndarray, edge: int) -> np.ndarray:
    """The elements that a summary shows, read in one gather."""
    index = [np.r_[0:edge, n - edge : n] if n > 2 * edge else np.arange(n) for n in array.shape]
    return array[np.ix_(*index)] if array.ndim else array


def _complex(real: str, imag: str) -> str:
    imag = f"{imag}j".lstrip()
    return real + imag if imag[0] in "+-" else f"{real}+{imag}"


class _Formatter:
    """The one notation for all elements of a tensor (or of its real or imaginary parts)."""

    def __init__(self, values: np.ndarray, options: PrintOptions) -> None:
        self.values = values.ravel().tolist()
        self.precision = options.precision
        self.floating = values.dtype.kind == "f"
        self.width = 1
        self.integral = True  # whole numbers print as `3.`
        self.scientific = False
        if not self.floating:
            self.width = max((len(str(v)) for v in self.values), default=1)
            return
        # Zeros, infinities and nan have no say in the notation, nor in the width.
        deciding = [v for v in self.values if v and math.isfinite(v)]
        if deciding:
            smallest, largest = min(map(abs, deciding)), max(map(abs, deciding))
            self.integral = all(v.is_integer() for v in deciding)
            wide = largest / smallest > 1000.0 or largest > 1.0e8
            self.scientific = wide or not self.integral and smallest < 1.0e-4
            if options.sci_mode is not None:
                self.scientific = options.sci_mode
            self.width = max(len(self._number(v)) for v in deciding)

    def _number(self, v: float) -> str:
        if self.scientific:
            return f"{v:.{self.precision}e}"
        if not self.integral:
            return f"{v:.{self.precision}f}"
        return f"{v:.0f}." if math.isfinite(v) else f"{v:.0f}"

    def texts(self) -> list[str]:
        """The elements in order, each padded on the left to the common width."""
        convert = self._number if self.floating else str
        return [convert(v).rjust(self.width) for v in self.values]
