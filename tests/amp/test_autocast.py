"""torchlab.autocast: what it casts, for how long, and what stays as it was.

The rules are those of https://docs.pytorch.org/docs/2.13/amp.html.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest

import torchlab as torch
from torchlab._core.dispatch.modes import SLOW
from torchlab.amp import autocast, custom_bwd, custom_fwd, is_autocast_available

F = torch.nn.functional


@pytest.fixture(autouse=True)
def _clean() -> Any:
    before = list(SLOW)
    yield
    assert SLOW == before, "autocast left calls on the slow path"
    assert not torch.is_autocast_enabled("cpu")
    assert torch.get_autocast_dtype("cpu") is torch.bfloat16
    assert torch.is_autocast_cache_enabled()


def test_products_are_lower_and_losses_float32() -> None:
    x = torch.randn(3, 3)
    with autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
        assert y.dtype is torch.bfloat16
        assert (y + x).dtype is torch.float32
        assert y.exp().dtype is torch.bfloat16
        assert F.mse_loss(y, y).dtype is torch.float32
        assert torch.cat([y, x]).dtype is torch.float32
        assert torch.cat([y, y]).dtype is torch.bfloat16
        assert y.prod().dtype is torch.float32
        assert torch.linalg.svdvals(y).dtype is torch.float32
    assert (x @ x).dtype is torch.float32


def test_float16() -> None:
    x = torch.randn(3, 3)
    with autocast("cpu", dtype=torch.float16):
        assert (x @ x).dtype is torch.float16
        assert (x.bfloat16() @ x).dtype is torch.float16


def test_float64_complex_and_integers_are_left_alone() -> None:
    with autocast("cpu"):
        for dtype in (torch.float64, torch.complex64, torch.int64):
            x = torch.ones(2, 2).to(dtype)
            assert (x @ x).dtype is dtype


def test_out_and_in_place_are_left_alone() -> None:
    x, out = torch.ones(2, 2), torch.empty(2, 2)
    with autocast("cpu"):
        assert torch.matmul(x, x, out=out) is out
        assert out.dtype is torch.float32
        assert torch.zeros(2, 2).addmm_(x, x).dtype is torch.float32


def test_other_devices_are_left_alone() -> None:
    x = torch.ones(2, 2, device="meta")
    with autocast("cpu"):
        assert (x @ x).dtype is torch.float32


def test_the_simulated_accelerator_has_the_rules_of_accelerators() -> None:
    x = torch.ones(2, 2, device="sim")
    with autocast("sim"):
        assert (x @ x).dtype is torch.float16
        assert x.half().exp().dtype is torch.float32
        assert torch.dot(x[0], x[0].half()).dtype is torch.float32
        assert (x.cpu() @ x.cpu()).dtype is torch.float32
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            F.binary_cross_entropy(x, x)


def test_mixed_halves_are_refused() -> None:
    a, b = torch.ones(2).bfloat16(), torch.ones(2).half()
    with autocast("cpu"), pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
        torch.cat([a, b])


def test_parts_of_an_operator_have_no_say() -> None:
    x = torch.randn(4, 4)
    with autocast("cpu"):
        # made of a singular value decomposition and a product, which alone would be bfloat16
        assert torch.pinverse(x).dtype is torch.float32
        assert F.cross_entropy((x @ x), torch.tensor([0, 1, 2, 3])).dtype is torch.float32
        assert F.softmax(x @ x, -1).dtype is torch.bfloat16


def test_nesting_and_switching_off() -> None:
    x = torch.randn(2, 2)
    with autocast("cpu"):
        with autocast("cpu", dtype=torch.float16):
            assert (x @ x).dtype is torch.float16
        with autocast("cpu", enabled=False):
            assert (x @ x).dtype is torch.float32
            assert not torch.is_autocast_enabled("cpu")
            with autocast("cpu"):
                assert (x @ x).dtype is torch.bfloat16
        assert (x @ x).dtype is torch.bfloat16


def test_one_object_within_itself_and_after_an_exception() -> None:
    context = autocast("cpu")
    with context, context:
        pass
    with pytest.raises(ValueError, match="inside"), context:
        raise ValueError("inside")
    with context:
        assert torch.is_autocast_enabled("cpu")


def test_decorator() -> None:
    @autocast("cpu")
    def product(x: Any) -> Any:
        """x x."""
        return x @ x

    assert product(torch.ones(2, 2)).dtype is torch.bfloat16
    assert product.__doc__ == "x x."
    with pytest.raises(TypeError, match="requires a callable"):
        autocast("cpu")(3)  # type: ignore[arg-type]


def test_threads_have_their_own() -> None:
    seen: list[Any] = []

    def other() -> None:
        x = torch.ones(2, 2)
        seen.append((torch.is_autocast_enabled("cpu"), (x @ x).dtype))
        with autocast("cpu", dtype=torch.float16):
            seen.append((x @ x).dtype)

    with autocast("cpu"):
        t = threading.Thread(target=other)
        t.start()
        t.join()
        assert torch.is_autocast_enabled("cpu")
    assert seen == [(False, torch.float32), torch.float16]


# ---- the cache ----------------------------------------------------------------------------------


def _cast_of(y: Any) -> Any:
    return y.grad_fn.next_functions[1][0]


def test_a_weight_is_cast_once_and_its_gradients_add_up() -> None:
    x, w = torch.randn(3, 4), torch.randn(4, 4, requires_grad=True)
    with autocast("cpu"):
        a, b = x @ w, x @ w
        with autocast("cpu", enabled=False):
            pass
        c = x @ w
    assert _cast_of(a) is _cast_of(b) is _cast_of(c)
    assert _cast_of(a).name() == "ToCopyBackward0"
    (a + b).sum().backward()
    assert w.grad.dtype is torch.float32
    expected = 2 * (x.bfloat16().T @ torch.ones(3, 4).bfloat16()).float()
    torch.testing.assert_close(w.grad, expected)


def test_the_cache_ends_with_the_outermost_context() -> None:
    x, w = torch.randn(3, 4), torch.randn(4, 4, requires_grad=True)
    with autocast("cpu"):
        a = x @ w
    with torch.no_grad():
        w.zero_()
    with autocast("cpu"):
        b = x @ w
        torch.clear_autocast_cache()
        c = x @ w
    assert _cast_of(a) is not _cast_of(b) is not _cast_of(c)
    assert (b == 0).all()


def test_without_cache() -> None:
    x, w = torch.randn(3, 4), torch.randn(4, 4, requires_grad=True)
    with autocast("cpu", cache_enabled=False):
        assert not torch.is_autocast_cache_enabled()
        assert _cast_of(x @ w) is not _cast_of(x @ w)


def test_a_cast_under_no_grad_does_not_cut_the_tape() -> None:
    x, w = torch.randn(3, 4), torch.randn(4, 4, requires_grad=True)
    with autocast("cpu"):
        for quiet in (torch.no_grad, torch.inference_mode):
            with quiet():
                assert not (x @ w).requires_grad
            y = x @ w
            assert y.requires_grad
            torch.clear_autocast_cache()
    y.sum().backward()
    assert w.grad is not None


def test_two_dtypes_of_one_weight() -> None:
    x, w = torch.randn(3, 4), torch.randn(4, 4, requires_grad=True)
    with autocast("cpu"):
        a = x @ w
        with autocast("cpu", dtype=torch.float16):
            assert (x @ w).dtype is torch.float16
        assert _cast_of(x @ w) is _cast_of(a)


# ---- custom functions ---------------------------------------------------------------------------


def _function(cast_inputs: Any) -> Any:
    class Product(torch.autograd.Function):
        seen: list[Any] = []

        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            y = x @ w
            Product.seen.append((x.dtype, y.dtype))
            return y

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            Product.seen.append((g @ w.T).dtype)
            return (g @ w.T).to(x.dtype), (x.T @ g).to(w.dtype)

    return Product


def test_custom_function_runs_as_autocast_is() -> None:
    f = _function(None)
    x, w = torch.randn(2, 2), torch.randn(2, 2, requires_grad=True)
    with autocast("cpu"):
        y = f.apply(x, w)
    y.sum().backward()
    assert f.seen == [(torch.float32, torch.bfloat16), torch.bfloat16]


def test_custom_function_with_cast_inputs_runs_without_autocast() -> None:
    f = _function(torch.float32)
    x, w = torch.randn(2, 2).bfloat16(), torch.randn(2, 2, requires_grad=True)
    with autocast("cpu"):
        y = f.apply(x, w)
    y.sum().backward()
    assert f.seen == [(torch.float32, torch.float32), torch.float32]


# ---- settings and errors ------------------------------------------------------------------------


def test_settings() -> None:
    assert is_autocast_available("cpu")
    assert not is_autocast_available("meta")
    torch.set_autocast_enabled("cpu", True)
    x = torch.ones(2, 2)
    assert (x @ x).dtype is torch.bfloat16
    torch.set_autocast_dtype("cpu", torch.float16)
    assert (x @ x).dtype is torch.float16
    torch.set_autocast_enabled("cpu", False)
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    assert torch.autocast_increment_nesting() == 1
    assert torch.autocast_decrement_nesting() == 0
    with pytest.deprecated_call():
        assert torch.get_autocast_cpu_dtype() is torch.bfloat16
    with pytest.deprecated_call():
        assert torch.is_autocast_cpu_enabled() is False


def test_errors_change_nothing() -> None:
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        autocast(torch.device("cpu"))  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="Expected one of cpu"):
        autocast("gpu")
    with pytest.raises(RuntimeError, match="unsupported scalarType"):
        autocast("meta")
    with pytest.raises(TypeError, match="must be bool"):
        torch.set_autocast_enabled("cpu", 1)
    with pytest.raises(TypeError, match="must be torch.dtype"):
        torch.set_autocast_dtype("cpu", "bfloat16")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a bool"):
        torch.set_autocast_cache_enabled(1)  # type: ignore[arg-type]


def test_another_dtype_warns_and_stays_off() -> None:
    with pytest.warns(UserWarning, match="torch.float32 is not supported"):
        context = autocast("cpu", dtype=torch.float32)
    with context:
        assert not torch.is_autocast_enabled("cpu")


def test_not_loaded_by_the_import() -> None:
    program = (
        "import sys, torchlab\n"
        "assert 'torchlab.amp' not in sys.modules\n"
        "torchlab.autocast('cpu')\n"
        "assert torchlab.amp.autocast is torchlab.autocast\n"
        "assert torchlab.GradScaler is torchlab.amp.GradScaler\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# ---- compiled functions -------------------------------------------------------------------------


def _compare(compiled: Any, plain: Any, x: Any) -> None:
    for a, b in zip(compiled(x), plain(x), strict=True):
        assert a.dtype is b.dtype
        torch.testing.assert_close(a, b, rtol=2e-2, atol=2e-2)


def test_compiled_under_autocast() -> None:
    layer, x = torch.nn.Linear(4, 4), torch.randn(3, 4)

    def plain(x: Any) -> Any:
        y = torch.relu(layer(x))
        with torch.autocast("cpu", enabled=False):
            z = x @ layer.weight
        return y, z, F.cross_entropy(y, torch.tensor([0, 1, 2]))

    compiled = torch.compile(plain)
    _compare(compiled, plain, x)
    for dtype in (torch.bfloat16, torch.float16, torch.bfloat16):
        with autocast("cpu", dtype=dtype):
            _compare(compiled, plain, x)
    _compare(compiled, plain, x)


def test_compiled_gradients_under_autocast() -> None:
    layer, x = torch.nn.Linear(4, 4), torch.randn(3, 4)

    def plain(x: Any) -> Any:
        return F.cross_entropy(layer(torch.relu(layer(x))), torch.tensor([0, 1, 2]))

    found = []
    for f in (plain, torch.compile(plain)):
        layer.zero_grad()
        with autocast("cpu"):
            loss = f(x)
        loss.backward()
        found.append(layer.weight.grad.clone())
    assert found[1].dtype is torch.float32
    torch.testing.assert_close(found[1], found[0], rtol=2e-2, atol=2e-3)


def test_autocast_inside_a_compiled_function() -> None:
    layer, x = torch.nn.Linear(4, 4), torch.randn(3, 4)

    def plain(x: Any) -> Any:
        with torch.autocast("cpu"):
            y = torch.relu(layer(x))
        return y, x @ x.mT

    _compare(torch.compile(plain), plain, x)
