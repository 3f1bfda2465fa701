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


def test_vmap_rule_gets_the_whole_batch_and_may_be_differentiated() -> None:
    seen: list[object] = []

    @torchlab.library.custom_op("mylib_vmap::mul", mutates_args=())
    def mul(x: torchlab.Tensor, y: torchlab.Tensor, *, k: float = 1.0) -> torchlab.Tensor:
        return torchlab.tensor(x.detach().numpy() * y.detach().numpy() * k)

    @torchlab.library.register_vmap("mylib_vmap::mul")
    def rule(info, in_dims, x, y, k=1.0):
        seen.append((info.batch_size, info.randomness, in_dims, k))
        x, y = (
            t.unsqueeze(-1) if d is None else t.movedim(d, -1)
            for t, d in zip((x, y), in_dims, strict=True)
        )
        return (x * y * k).movedim(-1, 0), 0

    x = torchlab.arange(6.0).reshape(2, 3)
    by_row = torchlab.vmap(mul, in_dims=(0, None))(x, x[0])
    assert by_row.tolist() == [[0.0, 1.0, 4.0], [0.0, 4.0, 10.0]]
    y = x.clone().requires_grad_()
    torchlab.vmap(lambda a, b: mul(a, b, k=2.0))(y, y).sum().backward()
    assert y.grad.tolist() == [[0.0, 4.0, 8.0], [12.0, 16.0, 20.0]]
    assert seen == [(2, "error", (0, None), 1.0), (2, "error", (0, 0), 2.0)]

    @torchlab.library.register_vmap("mylib_vmap::mul")
    def wrong(info, in_dims, x, y, k=1.0):
        return x

    with pytest.raises(RuntimeError, match=r"\(output, out_dims\)"):
        torchlab.vmap(mul)(x, x)
