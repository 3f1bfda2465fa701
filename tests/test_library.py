"""`torchlab.library`: custom operators, their gradients and fake rules, and `torchlab.ops`."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab
from torchlab import Tensor, library
from torchlab.library import OpCheckError, custom_op, infer_schema, opcheck
from torchlab.utils._python_dispatch import TorchDispatchMode


@custom_op("tests::sine", mutates_args=())
def sine(x: Tensor) -> Tensor:
    """The sine, by NumPy."""
    return torchlab.from_numpy(np.sin(x.detach().numpy()))


@sine.register_fake
def _(x: Tensor) -> Tensor:
    return torchlab.empty_like(x)


sine.register_autograd(
    lambda ctx, g: g * torchlab.cos(ctx.saved_tensors[0]),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


@custom_op("tests::weighted", mutates_args=())
def weighted(xs: list[Tensor], *, weight: float = 2.0) -> list[Tensor]:
    return [x * weight for x in xs]


def _keep_weight(ctx, inputs, keyword_only_inputs, output) -> None:
    ctx.weight = keyword_only_inputs["weight"]


weighted.register_autograd(lambda ctx, gs: [g * ctx.weight for g in gs], setup_context=_keep_weight)


@custom_op("tests::fill_three", mutates_args={"x"})
def fill_three(x: Tensor) -> None:
    x.detach().numpy()[...] = 3


def test_values_and_gradients() -> None:
    x = torchlab.tensor([0.0, 1.0], dtype=torchlab.float64, requires_grad=True)
    y = sine(x)
    assert y.tolist() == [0.0, pytest.approx(0.8414709848078965)]
    assert y.grad_fn.name() == "GeneratedBackwardFor_tests_sine_defaultBackward"
    y.sum().backward()
    assert x.grad.tolist() == [1.0, pytest.approx(0.5403023058681398)]
    assert torchlab.autograd.gradcheck(sine, x)
    assert torchlab.autograd.gradgradcheck(sine, x)


def test_ops_gives_the_declaration() -> None:
    assert torchlab.ops.tests.sine.default == sine.op
    assert str(torchlab.ops.tests.sine.default) == "tests.sine.default"
    assert torchlab.ops.tests.sine(torchlab.zeros(2)).tolist() == [0.0, 0.0]
    assert str(torchlab.ops.tests.sine.default.schema) == "sine(Tensor x) -> Tensor"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = torchlab.ops.tests.nothing


def test_ops_aten() -> None:
    x = torchlab.tensor([1.0, 2.0])
    assert torchlab.ops.aten.add.Tensor(x, x, alpha=2).tolist() == [3.0, 6.0]
    assert torchlab.ops.aten.add(x, 1).tolist() == [2.0, 3.0]
    assert torchlab.ops.aten.sum.dim_IntList(torchlab.ones(2, 3), [0]).tolist() == [2.0, 2.0, 2.0]
    assert torchlab.ops.aten.add_.Tensor(x, x).tolist() == [2.0, 4.0] and x.tolist() == [2.0, 4.0]
    out = torchlab.zeros(2)
    assert torchlab.ops.aten.mul.out(x, x, out=out) is out and out.tolist() == [4.0, 16.0]
    assert str(torchlab.ops.aten.add.Tensor) == "aten.add.Tensor"
    assert "Tensor" in torchlab.ops.aten.add.overloads()
    with pytest.raises(AttributeError, match="'aten.add' has no overload name 'nope'"):
        _ = torchlab.ops.aten.add.nope


def test_lists_and_keyword_only_arguments() -> None:
    a = torchlab.tensor([1.0], requires_grad=True)
    b = torchlab.tensor([2.0], requires_grad=True)
    p, q = weighted([a, b], weight=5.0)
    (p + 3 * q).sum().backward()
    assert (p.item(), q.item()) == (5.0, 10.0)
    assert (a.grad.item(), b.grad.item()) == (5.0, 15.0)


def test_mutation_counts_a_version() -> None:
    x = torchlab.zeros(2)
    y = torchlab.ones(2, requires_grad=True)
    z = x * y
    assert fill_three(x) is None
    assert x.tolist() == [3.0, 3.0] and x._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    with pytest.raises(RuntimeError, match="non-functional operator"):
        fill_three.register_autograd(lambda ctx, g: g)


def test_fake_rule_on_the_meta_device() -> None:
    r = sine(torchlab.empty(2, 3, device="meta"))
    assert tuple(r.shape) == (2, 3) and r.device.type == "meta"
    with pytest.raises(RuntimeError, match="There was no fake impl registered"):
        weighted([torchlab.empty(2, device="meta")])


def test_kernel_by_device() -> None:
    @custom_op("tests::where_am_i", mutates_args=(), device_types="sim")
    def where_am_i(x: Tensor) -> Tensor:
        return x + 1

    with pytest.raises(NotImplementedError, match="from the 'CPU' backend"):
        where_am_i(torchlab.zeros(1))
    where_am_i.register_kernel("cpu", lambda x: x + 2)
    assert where_am_i(torchlab.zeros(1)).item() == 2.0
    torchlab.library.register_kernel("tests::where_am_i", "cpu", lambda x: x + 4)
    assert where_am_i(torchlab.zeros(1)).item() == 4.0


def test_refused_definitions() -> None:
    with pytest.raises(ValueError, match="namespace::name"):
        custom_op("sine", mutates_args=())(lambda x: x)

    @custom_op("tests::same", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x

    with pytest.raises(RuntimeError, match="must not also be an input"):
        same(torchlab.zeros(1))
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        same(1)

    @custom_op("tests::no_gradient", mutates_args=())
    def no_gradient(x: Tensor) -> Tensor:
        return x.clone()

    y = no_gradient(torchlab.zeros(1, requires_grad=True))
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        y.backward()
    with pytest.raises(RuntimeError, match="there is no custom operator"):
        torchlab.library.register_fake("tests::absent", lambda x: x)


def _hints(
    x: Tensor, y: Tensor | None, n: int, f: float = 1.0, *, s: str = "q", l: list[int]
) -> tuple[Tensor, int]: ...


def test_infer_schema() -> None:
    text = (
        "(Tensor(a0!) x, Tensor? y, SymInt n, float f=1.0, *, "
        'str s="q", SymInt[] l) -> (Tensor, SymInt)'
    )
    assert infer_schema(_hints, mutates_args={"x"}) == text
    assert (
        infer_schema(fill_three_like, mutates_args="unknown", op_name="f")
        == "f(Tensor(a0!) x, Tensor(a1!)[] y) -> ()"
    )
    with pytest.raises(ValueError, match="were not found in the custom op's signature"):
        infer_schema(_hints, mutates_args={"z"})
    with pytest.raises(ValueError, match="only Tensors or collections of Tensors"):
        infer_schema(_hints, mutates_args={"n"})
    with pytest.raises(ValueError, match="must have a type annotation"):
        infer_schema(lambda x: x, mutates_args=())


def fill_three_like(x: Tensor, y: list[Tensor]) -> None: ...


def test_opcheck() -> None:
    x = torchlab.tensor([1.0], requires_grad=True)
    names = ("test_schema", "test_autograd_registration", "test_faketensor")
    names += ("test_aot_dispatch_dynamic",)
    done = dict.fromkeys(names, "SUCCESS")
    assert opcheck(sine, (x,)) == done
    assert opcheck(torchlab.ops.aten.mul.Tensor, (x, x)) == done

    @custom_op("tests::liar", mutates_args=())
    def liar(x: Tensor) -> Tensor:
        x.detach().numpy()[...] = 7
        return x + 1

    with pytest.raises(OpCheckError, match="changed its argument 'x'"):
        opcheck(liar, (torchlab.zeros(2),))
    liar.register_fake(lambda x: x.new_empty(5))
    assert "foretells" not in str(
        opcheck(liar, (x,), test_utils="test_faketensor", raise_exception=False)
    )
    with pytest.raises(OpCheckError, match=r"shape \(1,\), but the fake one has \(5,\)"):
        opcheck(liar, (x,), test_utils=["test_faketensor"])
    with pytest.raises(ValueError, match="unknown test_utils"):
        opcheck(sine, (x,), test_utils="test_everything")


def test_library_define_and_impl() -> None:
    with library._scoped_library("tests_lib", "DEF") as lib:
        assert lib.define("scale(Tensor x, float by=2.0) -> Tensor") == "scale"
        lib.define("scale.both(Tensor x, Tensor y) -> Tensor")
        op = torchlab.ops.tests_lib.scale
        with pytest.raises(NotImplementedError, match="has kernels for"):
            op(torchlab.ones(1))
        lib.impl("scale", lambda x, by: x * by, "CPU")
        lib.impl("scale.both", lambda x, y: x * y, "CompositeImplicitAutograd")
        assert op(torchlab.ones(1)).item() == 2.0 and op.default(torchlab.ones(1), 3.0).item() == 3
        assert torchlab.ops.tests_lib.scale.overloads() == ["default", "both"]
        x = torchlab.full((2,), 3.0, requires_grad=True)
        torchlab.ops.tests_lib.scale(x, x).sum().backward()
        assert x.grad.tolist() == [6.0, 6.0]
        with pytest.raises(RuntimeError, match="with the same name and overload name"):
            lib.define("scale(Tensor x) -> Tensor")
        with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
            library.Library("tests_lib", "DEF")
        with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor'"):
            op.default(1)
        with pytest.raises(NotImplementedError, match="dispatch key 'Autograd'"):
            lib.impl("scale", lambda x: x, "Autograd")
    with pytest.raises(AttributeError):
        _ = torchlab.ops.tests_lib.scale


def test_library_refuses() -> None:
    with pytest.raises(ValueError, match="Unsupported kind"):
        library.Library("tests", "OTHER")
    with pytest.raises(ValueError, match="reserved namespace"):
        library.Library("prim", "DEF")
    with pytest.raises(NotImplementedError, match="TorchDispatchMode"):
        library.Library("aten", "IMPL")
    with pytest.raises(NotImplementedError, match="should never be called"):
        library.fallthrough_kernel()
    with pytest.raises(ValueError, match="namespace::name"):
        library.define("scale", "(Tensor x) -> Tensor")


def test_define_and_impl_as_functions() -> None:
    with library._scoped_library("tests_functions", "FRAGMENT") as lib:
        library.define("tests_functions::seven", "(Tensor x) -> Tensor", lib=lib)
        library.impl("tests_functions::seven", "default", lambda x: x * 7, lib=lib)
        library.register_fake("tests_functions::seven", lambda x: torchlab.empty_like(x))
        library.register_autograd("tests_functions::seven", lambda ctx, g: g * 7)
        x = torchlab.ones(2, requires_grad=True)
        y = torchlab.ops.tests_functions.seven(x)
        y.sum().backward()
        assert y.tolist() == [7.0, 7.0] and x.grad.tolist() == [7.0, 7.0]
        assert set(opcheck(torchlab.ops.tests_functions.seven, (x,)).values()) == {"SUCCESS"}


def test_a_mode_sees_one_call_and_a_rule_may_replace_its_handler() -> None:
    told: list[str] = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            told.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torchlab.zeros(2, requires_grad=True)
    with Mode():
        sine(x).sum().backward()
    assert told[0] == "tests.sine.default" and x.grad.tolist() == [1.0, 1.0]

    @custom_op("tests::ruled", mutates_args=())
    def ruled(x: Tensor) -> Tensor:
        return x + 1

    ruled.register_torch_dispatch(
        Mode, lambda mode, func, types, args, kwargs: func(*args, **kwargs) * 10
    )
    with Mode():
        assert ruled(torchlab.ones(1)).item() == 20.0
    assert ruled(torchlab.ones(1)).item() == 2.0


def test_a_fake_rule_may_ask_its_context() -> None:
    @custom_op("tests::dynamic", mutates_args=())
    def dynamic(x: Tensor) -> Tensor:
        return x[x > 0]

    @dynamic.register_fake
    def _(x: Tensor) -> Tensor:
        return torchlab.empty(library.get_ctx().new_dynamic_size())

    assert dynamic(torchlab.tensor([-1.0, 2.0])).tolist() == [2.0]
    with pytest.raises(RuntimeError, match="depends on values"):
        dynamic(torchlab.empty(2, device="meta"))
