"""`torchlab.library`: what an operator of one's own does under autocast, and old names."""

from __future__ import annotations

import pytest

import torchlab
from torchlab import Tensor, library


def test_autocast_casts_what_the_operator_gets() -> None:
    seen: list[tuple[object, ...]] = []

    @library.custom_op("test_registrations::scaled", mutates_args=())
    def scaled(x: torchlab.Tensor, by: int, n: torchlab.Tensor) -> torchlab.Tensor:
        seen.append((x.dtype, n.dtype, torchlab.is_autocast_enabled("cpu")))
        return x * by

    scaled.register_autograd(lambda ctx, g: (g * 2, None, None))
    library.register_autocast("test_registrations::scaled", "cpu", torchlab.float16)
    x, n = torchlab.ones(2, requires_grad=True), torchlab.arange(2)
    with torchlab.autocast("cpu", dtype=torchlab.bfloat16):
        y = scaled(x, 2, n)
        assert y.dtype is torchlab.float16
        assert scaled(x.double(), 2, n).dtype is torchlab.float64  # asked for
    y.sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (torchlab.float32, [2.0, 2.0])
    assert scaled(x, 2, n).dtype is torchlab.float32
    assert [s[0] for s in seen] == [torchlab.float16, torchlab.float64, torchlab.float32]
    assert all(s[1:] == (torchlab.int64, False) for s in seen)

    scaled.register_autocast("cpu", torchlab.bfloat16)  # instead of float16
    with torchlab.autocast("cpu", dtype=torchlab.float16):
        assert scaled(x, 2, n).dtype is torchlab.bfloat16
    with pytest.raises(ValueError, match="no floating-point dtype"):
        scaled.register_autocast("cpu", torchlab.int64)
    with pytest.raises(RuntimeError, match="device type at start"):
        scaled.register_autocast("nowhere", torchlab.float16)
    with pytest.raises(TypeError, match="device_type must be str"):
        scaled.register_autocast(3, torchlab.float16)


def test_the_old_name_of_register_fake() -> None:
    @library.custom_op("test_registrations::twice", mutates_args=())
    def twice(x: torchlab.Tensor) -> torchlab.Tensor:
        return x * 2

    with pytest.warns(FutureWarning, match="renamed to `torch.library.register_fake`"):

        @library.impl_abstract("test_registrations::twice")
        def shape(x: torchlab.Tensor) -> torchlab.Tensor:
            return torchlab.empty_like(x)

    assert twice(torchlab.empty(3, device="meta")).shape == (3,)


def test_schemas_of_forms_that_write() -> None:
    Tag = torchlab.Tag

    def inplace(x: Tensor, by: int) -> Tensor: ...
    def out(x: Tensor, *, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]: ...

    infer = library.infer_schema
    assert infer(inplace, mutates_args={"x"}, tags=Tag.inplace) == (
        "(Tensor(a0!) x, SymInt by) -> Tensor(a0!)"
    )
    assert infer(inplace, mutates_args={"x"}) == "(Tensor(a0!) x, SymInt by) -> Tensor"
    assert infer(out, mutates_args=["low", "high"], tags=[Tag.out]) == (
        "(Tensor x, *, Tensor(a1!) low, Tensor(a2!) high) -> (Tensor(a1!), Tensor(a2!))"
    )
    with pytest.raises(ValueError, match="exactly the first positional argument"):
        infer(inplace, mutates_args=(), tags=Tag.inplace)
    with pytest.raises(ValueError, match="to match the mutable keyword-only"):
        infer(out, mutates_args=["low"], tags=Tag.out)
    with pytest.raises(ValueError, match="arguments to be keyword-only"):
        infer(out, mutates_args=["x"], tags=Tag.out)
