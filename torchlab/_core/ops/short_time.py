"""The short-time Fourier transform and its inverse.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.stft.html and
https://docs.pytorch.org/docs/2.13/generated/torch.istft.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.factories import transformed
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.settings import warn_user


def _shown(name: str, x: Any, window: Any, **facts: Any) -> str:
    """The call as PyTorch's messages tell it."""
    w = "None" if window is None else f"Tensor{list(window._a.shape)}"
    options = ", ".join(f"{k}={v}" for k, v in facts.items())
    return f"{name}({x._k.dtype.scalar_name}Tensor{list(x._a.shape)}, window={w}, {options})"


def _wide_window(window: Any, like: Any, win_length: int, n_fft: int, dtype: Any) -> Any:
    """The window (default: ones) with zeros on both sides up to n_fft points."""
    if window is None:
        if win_length == n_fft:
            return None
        window = aten.ones(win_length, dtype=dtype, device=like._k.device)
    if win_length == n_fft:
        return window
    left = (n_fft - win_length) // 2
    return aten.constant_pad_nd(window, (left, n_fft - win_length - left), 0)


def _padded(x: Any, by: int, mode: str) -> Any:
    """(B, L) → (B, L + 2 by)."""
    if mode == "constant":
        return aten.constant_pad_nd(x, (by, by), 0)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(
            f"Unrecognised padding mode {mode} (choose reflect, replicate, circular or constant)"
        )
    x = aten.unsqueeze(x, 0)
    if mode == "reflect":
        x = aten.reflection_pad1d(x, (by, by))
    elif mode == "replicate":
        x = aten.replication_pad1d(x, (by, by))
    else:
        n = x._a.shape[-1]
        if by > n:
            raise RuntimeError(
                f"Padding value causes wrapping around more than once: {by} for a signal of {n}"
            )
        x = aten.cat([aten.narrow(x, -1, n - by, by), x, aten.narrow(x, -1, 0, by)], -1)
    return aten.squeeze(x, 0)


@face("stft", autocast="float32:cpu")
def stft(
    self: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:
    """Fourier transforms of overlapping frames: (B, L) or (L,) → (B, N, T), N = n_fft // 2 + 1 for
    real signals unless onesided=False. Frame t covers n_fft samples around t · hop_length
    (center=True, the signal padded by `pad_mode`) or from there on."""
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    x = self

    def call() -> str:
        return _shown(
            "stft",
            self,
            window,
            n_fft=n_fft,
            hop_length=hop,
            win_length=length,
            normalized=normalized,
            onesided=onesided,
            return_complex=return_complex,
        )

    if window is None:
        warn_user(
            "stft: no window was given, so a rectangular one is applied, which causes spectral"
            " leakage. Pass window=torch.hann_window(win_length), or torch.ones(win_length) to keep"
            " it rectangular without this warning.",
        )
    d = x._k.dtype
    if not (d.is_floating_point or d.is_complex):
        raise RuntimeError(f"{call()}: expected a tensor of floating point or complex values")
    if d.itemsize < 4:
        raise RuntimeError(f"{call()}: there is no transform for {d}; convert with .float()")
    if x._a.ndim not in (1, 2):
        raise RuntimeError(f"{call()}: expected a 1D or 2D tensor")
    is_complex = d.is_complex or (window is not None and window._k.dtype.is_complex)
    if return_complex is None:
        if not is_complex:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs: pass"
                " return_complex=True"
            )
        return_complex = True
    flat = x._a.ndim == 1
    if flat:
        x = aten.unsqueeze(x, 0)
    if center:
        x = _padded(x, n_fft // 2, pad_mode)
    size = x._a.shape[-1]
    if not 0 < n_fft <= size:
        raise RuntimeError(f"{call()}: expected 0 < n_fft < {size}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{call()}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(
            f"{call()}: expected 0 < win_length <= n_fft, but got win_length={length}"
        )
    if window is not None and window._a.shape != (length,):
        raise RuntimeError(
            f"{call()}: expected a 1D window tensor of size equal to win_length={length}, but got"
            f" window with size {list(window._a.shape)}"
        )
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    onesided = not is_complex if onesided is None else onesided
    if align_to_window and length < n_fft:
        left = (n_fft - length) // 2
        x = aten.constant_pad_nd(x, (left, n_fft - length - left), 0)
    frames = x.unfold(-1, n_fft, hop)
    w = _wide_window(window, x, length, n_fft, d)
    if w is not None:
        frames = frames * w
    code = 1 if normalized else 0
    if is_complex:
        r = aten._fft_c2c(frames, (2,), code, True)
    else:
        r = aten._fft_r2c(frames, (2,), code, onesided)
    r = aten.transpose(r, 1, 2)
    if flat:
        r = aten.squeeze(r, 0)
    if return_complex:
        return r
    warn_user(
        "stft with return_complex=False is deprecated; call torch.view_as_real on the complex"
        " result instead.",
    )
    return aten.view_as_real(r)


@face("istft")
def istft(
    self: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Any:
    """The signal whose `stft` is nearest to this one in the sense of least squares: (B, N, T) →
    (B, L). (Griffin and Lim: Signal estimation from modified short-time Fourier transform, 1984.)
    The squares of the shifted windows must add up to more than 0 everywhere."""
    if SLOW and (seen := transformed(istft.body, locals(), "window")) is not NotImplemented:
        return seen
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length

    def call() -> str:
        return _shown(
            "istft",
            self,
            window,
            n_fft=n_fft,
            hop_length=hop,
            win_length=win,
            center=center,
            normalized=normalized,
            onesided=onesided,
            length=length,
            return_complex=return_complex,
        )

    if window is None:
        warn_user(
            "istft: no window was given, so a rectangular one is taken. Pass the window that stft"
            " was given, or torch.ones(win_length) to keep it rectangular without this warning.",
        )
    x, d = self, self._k.dtype
    if not d.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with"
            f" return_complex=True, but got {d}"
        )
    if x._a.size == 0:
        raise RuntimeError(f"{call()}: input tensor cannot be empty.")
    if x._a.ndim not in (2, 3):
        raise RuntimeError(
            f"{call()}: expected a tensor with 2 or 3 dimensions (frequencies, frames), but got"
            f" {x._a.ndim}"
        )
    bins = x._a.shape[-2]
    halved = bins != n_fft if onesided is None else onesided
    if halved and n_fft // 2 + 1 != bins:
        raise RuntimeError(
            f"{call()}: expected the frequency dimension (3rd to the last) of the input tensor to"
            f" match n_fft / 2 + 1 when onesided=True, but got {bins}"
        )
    if not halved and n_fft != bins:
        raise RuntimeError(
            f"{call()}: expected the frequency dimension (3rd to the last) of the input tensor to"
            f" match n_fft when onesided=False, but got {bins}"
        )
    if not 0 < hop <= win:
        raise RuntimeError(f"{call()}: expected 0 < hop_length <= win_length")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{call()}: expected 0 < win_length <= n_fft")
    if window is not None and window._a.shape != (win,):
        raise RuntimeError(
            f"{call()}: Invalid window shape. window has to be 1D and length of `win_length`"
        )
    if return_complex:
        if halved:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
    elif window is not None and window._k.dtype.is_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    real = d.to_real()
    w = _wide_window(window, x, win, n_fft, real)
    if w is None:
        w = aten.ones(n_fft, dtype=real, device=x._k.device)
    flat = x._a.ndim == 2
    if flat:
        x = aten.unsqueeze(x, 0)
    frames = aten.transpose(x, 1, 2)
    code = 1 if normalized else 2
    if return_complex:
        y = aten._fft_c2c(frames, (2,), code, False)
    else:
        if not halved:
            frames = aten.slice(frames, -1, 0, n_fft // 2 + 1)
        y = aten._fft_c2r(frames, (2,), code, n_fft)
    count = x._a.shape[-1]
    total = n_fft + hop * (count - 1)
    y = y * aten.view(w, (1, 1, n_fft))
    y = aten.unfold_backward(y, (y._a.shape[0], total), 1, n_fft, hop)
    squares = aten.expand(aten.view(w * w, (1, 1, n_fft)), (1, count, n_fft))
    envelope = aten.unfold_backward(squares, (1, total), 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start if center else total
    y, envelope = aten.slice(y, 1, start, end), aten.slice(envelope, 1, start, end)
    least = aten.min(aten.abs(envelope))
    if least._k.device.type != "meta" and not least.item() > 1e-11:
        raise RuntimeError(
            f"{call()}: window overlap add min: {least.item():g}. The squares of the shifted"
            " windows vanish somewhere: use a smaller hop_length, another window or center=True"
        )
    y = y / envelope
    if flat:
        y = aten.squeeze(y, 0)
    if end > total:
        warn_user(
            "The length of signal is shorter than the length parameter. Result is being padded"
            " with zeros in the tail. Please check your center and hop_length settings.",
        )
        y = aten.constant_pad_nd(y, (0, end - total), 0)
    return y
