"""Quantized tensors against real PyTorch: seeded random tensors through every operator; codes,
quantizers, strides, texts and the classes of errors."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import torchlab

torch = pytest.importorskip("torch")
warnings.filterwarnings("ignore", message=".*(quantiz|deprecat).*")

ERRORS = (RuntimeError, IndexError, ValueError, TypeError)
TYPES = ("quint8", "qint8", "qint32")


def name(x):
    return str(x).replace("torchlab", "torch")


def describe(x):
    """What of a result has to be equal, as plain values."""
    if isinstance(x, (tuple, list)):
        return [describe(y) for y in x]
    if not isinstance(x, (torch.Tensor, torchlab.Tensor)):
        return x if isinstance(x, (bool, int, float, str, type(None))) else name(x)
    facts = [name(x.dtype), tuple(x.shape), x.is_contiguous()]
    if not x.is_quantized:
        return [*facts, x.detach().numpy().tolist()]
    scheme = name(x.qscheme())
    facts += [scheme, x.int_repr().numpy().tolist()]
    if "channel" in scheme:
        parts = x.q_per_channel_scales(), x.q_per_channel_zero_points()
        return [*facts, *(p.numpy().tolist() for p in parts), x.q_per_channel_axis()]
    return [*facts, x.q_scale(), x.q_zero_point()]


def outcome(f, *args):
    try:
        return describe(f(*args))
    except ERRORS as e:
        kind = next(k for k in (*ERRORS[1:], RuntimeError) if isinstance(e, k))
        return f"{kind.__name__}"


def pair(shape=(3, 4), dtype="quint8", seed=0, spread=3.0, scale=0.07, zero=5, last=False):
    """The same quantized tensor for both."""
    a = (np.random.default_rng(seed).standard_normal(shape) * spread).astype(np.float32)
    made = []
    for m in (torch, torchlab):
        t = m.tensor(a)
        if last:
            t = t.contiguous(memory_format=m.channels_last)
        made.append(m.quantize_per_tensor(t, scale, zero, getattr(m, dtype)))
    return made


def channels(shape=(3, 4), dtype="quint8", seed=0, axis=0, floating=False):
    rng = np.random.default_rng(seed)
    a = (rng.standard_normal(shape) * 3).astype(np.float32)
    scales = rng.uniform(0.01, 0.2, shape[axis])
    zeros = rng.integers(0, 20, shape[axis])
    made = []
    for m in (torch, torchlab):
        z = m.tensor(zeros.astype(np.float32) + 0.25 if floating else zeros)
        s = m.tensor(scales)
        made.append(m.quantize_per_channel(m.tensor(a), s, z, axis, getattr(m, dtype)))
    return made


def same(f, pairs):
    """`f(m, *tensors)` has one outcome."""
    results = [outcome(f, m, *(p[i] for p in pairs)) for i, m in enumerate((torch, torchlab))]
    alike(results[1], results[0])


def alike(a, b):
    """Equal; else a short report (pytest's own takes minutes for long lists)."""
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        wrong = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
        if wrong and isinstance(wrong[0][0], list):
            alike(*wrong[0])
        elif wrong:
            pytest.fail(f"{len(wrong)} of {len(a)} differ: {wrong[0]}"[:300])
    elif a != b:
        pytest.fail(f"{a} is not {b}"[:300])


# ---- quantize and dequantize --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("seed", range(6))
def test_quantize_per_tensor(dtype, seed):
    rng = np.random.default_rng(seed)
    scale = float(rng.choice([0.1, 0.25, 1 / 3, 2.0, 0.007]))
    zero = int(rng.integers(0, 50))
    a = (rng.standard_normal(5000) * rng.choice([1, 10, 1000])).astype(np.float32)
    a[:1000] = (np.round(a[:1000] / scale) + 0.5) * scale  # halves
    r = torch.quantize_per_tensor(torch.tensor(a), scale, zero, getattr(torch, dtype))
    t = torchlab.quantize_per_tensor(torchlab.tensor(a), scale, zero, getattr(torchlab, dtype))
    alike(describe(t), describe(r))
    assert np.array_equal(t.dequantize().numpy(), r.dequantize().numpy())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_quantize_per_channel(dtype, floating, axis):
    if floating and dtype == "qint32":
        return  # PyTorch has no such kernel
    for seed in range(4):
        r, t = channels((12, 30), dtype, seed, axis, floating)
        alike(describe(t), describe(r))
        assert np.array_equal(t.dequantize().numpy(), r.dequantize().numpy())


@pytest.mark.parametrize("dtype", ["quint8", "qint8"])
@pytest.mark.parametrize("reduce_range", [False, True])
def test_dynamic(dtype, reduce_range):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        a = (rng.standard_normal(20) * 10.0 ** rng.integers(-9, 6) + rng.integers(-2, 3)).astype(
            np.float32
        )

        def f(m, a=a):
            x = m.tensor(a)
            q = m.quantize_per_tensor_dynamic(x, getattr(m, dtype), reduce_range)
            return q, list(m._choose_qparams_per_tensor(x, reduce_range))

        same(f, [])


def test_special_values():
    a = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0, -0.0], np.float32)
    for dtype in TYPES:
        for scale in (0.1, 1e-40):
            same(
                lambda m, d=dtype, s=scale: m.quantize_per_tensor(m.tensor(a), s, 5, getattr(m, d)),
                [],
            )


MAKING = {
    "tensors": lambda m, x: m.quantize_per_tensor(x, m.tensor(0.1), m.tensor(3), m.quint8),
    "list": lambda m, x: m.quantize_per_tensor(
        [x, x * 2], m.tensor([0.1, 0.2]), m.tensor([1, 2]), m.qint8
    ),
    "short list": lambda m, x: m.quantize_per_tensor(
        [x, x], m.tensor([0.1]), m.tensor([1]), m.qint8
    ),
    "int8": lambda m, x: m.quantize_per_tensor(x, 0.1, 3, m.int8),
    "double": lambda m, x: m.quantize_per_tensor(x.double(), 0.1, 3, m.quint8),
    "high": lambda m, x: m.quantize_per_tensor(x, 0.1, 256, m.quint8),
    "low": lambda m, x: m.quantize_per_tensor(x, 0.1, -1, m.quint8),
    "float zero": lambda m, x: m.quantize_per_tensor(x, 0.1, 1.0, m.quint8),
    "axis": lambda m, x: m.quantize_per_channel(x, m.ones(3), m.zeros(3).long(), 5, m.quint8),
    "length": lambda m, x: m.quantize_per_channel(x, m.ones(2), m.zeros(2).long(), 0, m.quint8),
    "dims": lambda m, x: m.quantize_per_channel(x, m.ones(3, 1), m.zeros(3).long(), 0, m.quint8),
    "mismatch": lambda m, x: m.quantize_per_channel(x, m.ones(3), m.zeros(2).long(), 0, m.quint8),
    "empty": lambda m, x: m.quantize_per_tensor(x[:0], 0.1, 3, m.quint8),
    "scalar": lambda m, x: m.quantize_per_tensor(x[0, 0], 0.1, 3, m.quint8),
    "codes": lambda m, x: m._make_per_tensor_quantized_tensor(x.int().char(), 0.1, 3),
    "long codes": lambda m, x: m._make_per_tensor_quantized_tensor(x.long(), 0.1, 3),
    "channel codes": lambda m, x: m._make_per_channel_quantized_tensor(
        x.int(), m.ones(4), m.zeros(4).long(), 1
    ),
    "dequantize": lambda m, x: m.dequantize(
        [m.quantize_per_tensor(x, 0.5, 3, m.quint8), x.double(), x.int()]
    ),
    "q_scale": lambda m, x: x.q_scale(),
    "int_repr": lambda m, x: m.int_repr(x),
    "qscheme": lambda m, x: x.qscheme(),
    "zeros": lambda m, x: m.ones(2, dtype=m.quint8),
    "convert": lambda m, x: x.to(m.quint8),
    "tensor": lambda m, x: m.tensor([1], dtype=m.quint8),
    "promote": lambda m, x: m.promote_types(m.quint8, m.float32),
    "promote same": lambda m, x: name(m.promote_types(m.qint8, m.qint8)),
}


@pytest.mark.parametrize("case", MAKING)
def test_making(case):
    a = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32) * 5
    same(MAKING[case], [(torch.tensor(a), torchlab.tensor(a))])


# ---- operators ----------------------------------------------------------------------------------


def assigned(x, key, value):
    x = x.clone()
    x[key] = value
    return x


SHAPES = {
    "t": lambda m, x: x.t(),
    "transpose": lambda m, x: x.transpose(0, 1).contiguous(),
    "permute": lambda m, x: x.permute(1, 0),
    "view": lambda m, x: x.view(2, 6),
    "view error": lambda m, x: x.view(5),
    "reshape": lambda m, x: x.reshape(-1),
    "flatten": lambda m, x: x.t().flatten(),
    "unsqueeze": lambda m, x: x.unsqueeze(1),
    "squeeze": lambda m, x: x[None].squeeze(0),
    "squeeze all": lambda m, x: x[:, None].squeeze(),
    "int": lambda m, x: x[1],
    "slice": lambda m, x: x[1:, ::2],
    "new": lambda m, x: x[None, :, None],
    "advanced": lambda m, x: x[m.tensor([2, 0])],
    "mask": lambda m, x: x[x > 0.5] if name(x.qscheme()).endswith("tensor_affine") else 0,
    "narrow": lambda m, x: x.narrow(1, 1, 2),
    "chunk": lambda m, x: x.chunk(2, 1),
    "split": lambda m, x: x.split(2),
    "sizes": lambda m, x: x.split([1, 2]),
    "unbind": lambda m, x: x.unbind(0),
    "select": lambda m, x: x.select(0, -1),
    "index_select": lambda m, x: m.index_select(x, 1, m.tensor([3, 1])),
    "expand": lambda m, x: x[:1].expand(2, 4),
    "repeat": lambda m, x: x.repeat(2, 1),
    "flip": lambda m, x: x.flip(0, 1),
    "clone": lambda m, x: x.clone(),
    "detach": lambda m, x: x.detach(),
    "deepcopy": lambda m, x: copy.deepcopy(x),
    "pickle": lambda m, x: pickle.loads(pickle.dumps(x)),
    "to": lambda m, x: x.to(m.float32),
    "to same": lambda m, x: x.to(x.dtype) is x,
    "cpu": lambda m, x: x.cpu() is x,
    "fill": lambda m, x: x.clone().fill_(0.33),
    "copy": lambda m, x: x.clone().copy_(m.ones(3, 4)),
    "copy shape": lambda m, x: x.clone().copy_(m.ones(4)),
    "copy double": lambda m, x: x.clone().copy_(m.ones(3, 4).double()),
    "copy out": lambda m, x: m.ones(3, 4).copy_(x),
    "set": lambda m, x: assigned(x, (0, 1), 0.5),
    "set row": lambda m, x: assigned(x, 1, m.ones(4)),
    "empty_like": lambda m, x: m.empty_like(x).shape,
    "ones_like": lambda m, x: m.ones_like(x),
    "full_like": lambda m, x: m.full_like(x, 0.4),
    "zeros_like": lambda m, x: m.zeros_like(x),
    "as_strided": lambda m, x: x.as_strided((2, 2), (1, 2), 1),
    "requires_grad": lambda m, x: x.requires_grad_(),
    "numpy": lambda m, x: x.numpy(),
    "tolist": lambda m, x: x.tolist(),
    "item": lambda m, x: x[0, 1].item(),
    "item error": lambda m, x: x.item(),
    "float": lambda m, x: float(x[0, 0]),
    "type": lambda m, x: x.type(),
    "element": lambda m, x: [x.element_size(), x.nbytes, x.is_quantized, x.is_floating_point()],
    "signed": lambda m, x: x.is_signed(),
    "stack": lambda m, x: m.stack([x, x]),
    "cat": lambda m, x: m.cat([x, x], 1),
    "equal": lambda m, x: [m.equal(x, x.clone()), m.equal(x, x.dequantize())],
    "masked_fill": lambda m, x: x.masked_fill(m.ones(3, 4) > 0, 0.3),
}

VALUES = {
    "relu": lambda m, x: m.relu(x),
    "relu_": lambda m, x: x.clone().relu_(),
    "relu6": lambda m, x: m.nn.functional.relu6(x),
    "hardtanh": lambda m, x: m.nn.functional.hardtanh(x, -0.5, 1.5),
    "clamp": lambda m, x: m.clamp(x, -0.4, 1.1),
    "clamp low": lambda m, x: m.clamp(x, min=0.3),
    "clamp tensor": lambda m, x: m.clamp(x, m.tensor(0.0), m.tensor(1.0)),
    "clamp_": lambda m, x: x.clone().clamp_(0, 1),
    "leaky_relu": lambda m, x: m.nn.functional.leaky_relu(x, 0.1),
    "threshold": lambda m, x: m.nn.functional.threshold(x, 0.5, 2.0),
    "sigmoid": lambda m, x: m.sigmoid(x),
    "hardsigmoid": lambda m, x: m.nn.functional.hardsigmoid(x),
    "tanh": lambda m, x: m.tanh(x),
    "max": lambda m, x: m.max(x),
    "min": lambda m, x: x.min(),
    "max dim": lambda m, x: m.max(x, 1),
    "min dim": lambda m, x: m.min(x, 0, True),
    "sort": lambda m, x: m.sort(x)[0],
    "sort down": lambda m, x: m.sort(x, 0, True)[0],
    "topk": lambda m, x: m.topk(x, 2)[0],
    "mean": lambda m, x: m.mean(x, 1),
    "mean keep": lambda m, x: m.mean(x, (0, 1), True),
    "mean all": lambda m, x: m.mean(x),
    "eq": lambda m, x: x == x,
    "gt": lambda m, x: x > 0.2,
    "lt float": lambda m, x: x < x.dequantize() + 0.01,
    "float gt": lambda m, x: x.dequantize() + 0.01 > x,
    "add": lambda m, x: x + x,
    "add number": lambda m, x: x + 1,
    "add float": lambda m, x: x + m.ones(3, 4),
    "neg": lambda m, x: -x,
    "abs": lambda m, x: m.abs(x),
    "matmul": lambda m, x: x @ x.t(),
    "sum": lambda m, x: x.sum(),
    "isnan": lambda m, x: m.isnan(x),
    "isclose": lambda m, x: m.isclose(x, x),
    "argmax": lambda m, x: m.argmax(x),
    "softmax": lambda m, x: m.softmax(x, 1),
    "pad": lambda m, x: m.nn.functional.pad(x, (1, 2), value=0.5),
}


@pytest.mark.parametrize("case", {**SHAPES, **VALUES})
@pytest.mark.parametrize("dtype", TYPES)
def test_per_tensor(case, dtype):
    f = {**SHAPES, **VALUES}[case]
    for seed in range(4):
        if dtype == "qint32" and case in ("sigmoid", "tanh"):
            nearly_same(f, pair(dtype=dtype, seed=seed))
        else:
            same(f, [pair(dtype=dtype, seed=seed)])


def nearly_same(f, both):
    """Codes of 32 bits show the last bit of float32, which PyTorch's exp does not always get right:
    torchlab's result is the right one, PyTorch's at most one number of float32 away."""
    r, t = (f(m, x) for m, x in zip((torch, torchlab), both, strict=True))
    assert (t.q_scale(), t.q_zero_point()) == (r.q_scale(), r.q_zero_point())
    values = both[1].dequantize().numpy().astype(np.float64)
    exact = (np.tanh(values) if f is VALUES["tanh"] else 1 / (1 + np.exp(-values))).astype("f")
    codes = np.minimum(np.rint(exact / np.float64(t.q_scale())), 2**31 - 1)
    assert np.array_equal(t.int_repr().numpy(), codes)
    away = np.abs(r.int_repr().numpy() - codes)
    assert (away <= np.spacing(np.abs(exact)) / t.q_scale()).all()


@pytest.mark.parametrize("case", SHAPES)
def test_per_channel(case):
    # PyTorch gives views that it cannot read: of the channels' dim's neighbours, of other shapes.
    if case in ("view", "reshape", "flatten", "mask", "as_strided"):
        return
    same(SHAPES[case], [channels()])


def test_text():
    for dtype in TYPES:
        for shape in ((3, 4), (), (0,), (0, 3), (2, 30), (40, 40)):
            r, t = pair(shape, dtype)
            assert repr(t).replace("torchlab", "torch") == repr(r)
    for floating in (False, True):
        r, t = channels((3, 5), floating=floating)
        assert repr(t) == repr(r)
        assert repr(t[0]) == repr(r[0]) if not floating else True


F = {
    "max_pool2d": lambda m, x: m.nn.functional.max_pool2d(x, 2),
    "max_pool2d pad": lambda m, x: m.nn.functional.max_pool2d(x, 3, 1, 1),
    "quantized_max_pool2d": lambda m, x: m.quantized_max_pool2d(x, [2, 2], [1, 1], [0, 0], [1, 1]),
    "max_pool1d": lambda m, x: m.nn.functional.max_pool1d(x[0], 2),
    "avg_pool2d": lambda m, x: m.nn.functional.avg_pool2d(x, 2),
    "avg_pool2d pad": lambda m, x: m.nn.functional.avg_pool2d(x, 3, 1, 1),
    "avg_pool2d inside": lambda m, x: m.nn.functional.avg_pool2d(
        x, 3, 1, 1, count_include_pad=False
    ),
    "adaptive": lambda m, x: m.nn.functional.adaptive_avg_pool2d(x, (3, 2)),
    "global": lambda m, x: m.nn.functional.adaptive_avg_pool2d(x, 1),
    "nearest": lambda m, x: m.nn.functional.interpolate(x, scale_factor=2),
    "exact": lambda m, x: m.nn.functional.interpolate(x, size=(3, 7), mode="nearest-exact"),
    "bilinear": lambda m, x: m.nn.functional.interpolate(x, size=(10, 12), mode="bilinear"),
    "bilinear corners": lambda m, x: m.nn.functional.interpolate(
        x, size=(7, 3), mode="bilinear", align_corners=True
    ),
    "reflect": lambda m, x: m.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "pixel_shuffle": lambda m, x: m.nn.functional.pixel_shuffle(x, 2),
    "mean": lambda m, x: m.mean(x, (2, 3)),
    "batch_norm": lambda m, x: m.quantized_batch_norm(
        x, m.tensor([1.0, 2, 3, 4]), m.ones(4), m.tensor([0.1, 0.2, 0.3, 0.4]),
        m.tensor([1.0, 2, 3, 4]), 1e-5, 0.1, 30,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", F)
@pytest.mark.parametrize("last", [False, True])
def test_images(case, last):
    for seed in range(4):
        same(F[case], [pair((2, 4, 5, 6), seed=seed, scale=0.05, zero=100, last=last)])


LIBRARY = {
    "add": lambda m, x, y: m.ops.quantized.add(x, y, 0.11, 7),
    "add_relu": lambda m, x, y: m.ops.quantized.add_relu(x, y, 0.11, 7),
    "mul": lambda m, x, y: m.ops.quantized.mul(x, y, 0.11, 7),
    "mul_relu": lambda m, x, y: m.ops.quantized.mul_relu(x, y, 0.11, 7),
    "cat": lambda m, x, y: m.ops.quantized.cat([x, y], 0, 0.11, 7),
    "cat_relu": lambda m, x, y: m.ops.quantized.cat_relu([x, y], 1, 0.11, 7),
    "add_scalar": lambda m, x, y: m.ops.quantized.add_scalar(x, 0.31),
    "add_scalar far": lambda m, x, y: m.ops.quantized.add_scalar(x, 30.0),
    "add_scalar below": lambda m, x, y: m.ops.quantized.add_scalar(x, -30.0),
    "add_scalar_relu": lambda m, x, y: m.ops.quantized.add_scalar_relu(x, -0.31),
    "mul_scalar": lambda m, x, y: m.ops.quantized.mul_scalar(x, 1.7),
    "mul_scalar minus": lambda m, x, y: m.ops.quantized.mul_scalar(x, -1.7),
    "mul_scalar zero": lambda m, x, y: m.ops.quantized.mul_scalar(x, 0),
    "mul_scalar_relu": lambda m, x, y: m.ops.quantized.mul_scalar_relu(x, -1.7),
    "relu6": lambda m, x, y: m.ops.quantized.relu6(x),
    "hardswish": lambda m, x, y: m.ops.quantized.hardswish(x, 0.11, 7),
    "elu": lambda m, x, y: m.ops.quantized.elu(x, 0.11, 40, 0.7),
    "celu": lambda m, x, y: m.ops.quantized.celu(x, 0.11, 40, 0.7),
    "leaky_relu": lambda m, x, y: m.ops.quantized.leaky_relu(x, 0.2, False, 0.11, 7),
    "sigmoid": lambda m, x, y: m.ops.quantized.sigmoid(x, 0.005, 3),
    "softmax": lambda m, x, y: m.ops.quantized.softmax(x, 1, 0.004, 0),
    "matmul": lambda m, x, y: m.ops.quantized.matmul(x, y.t().contiguous(), 0.3, 7),
    "types": lambda m, x, y: m.ops.quantized.add(
        x, m.quantize_per_tensor(m.ones(3, 4), 0.1, 0, m.qint32), 0.1, 0
    ),
    "dense": lambda m, x, y: m.ops.quantized.add(x, m.ones(3, 4), 0.1, 0),
}


@pytest.mark.parametrize("case", LIBRARY)
def test_library(case):
    for seed in range(6):
        x, y = pair((6, 40), seed=seed), pair((6, 40), seed=seed + 50, scale=0.05, zero=90)
        same(LIBRARY[case], [x, y])


def weight(m, a, by_channel):
    if by_channel:
        n = a.shape[0]
        scales = m.tensor(np.linspace(0.01, 0.03, n))
        return m.quantize_per_channel(m.tensor(a), scales, m.zeros(n).long(), 0, m.qint8)
    return m.quantize_per_tensor(m.tensor(a), 0.02, 3, m.qint8)


@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_linear(by_channel, with_bias):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        w = rng.standard_normal((7, 20)).astype(np.float32)
        b = rng.standard_normal(7).astype(np.float32)

        def f(m, x, w=w, b=b):
            ops = m.ops.quantized
            packed = ops.linear_prepack(
                weight(m, w, by_channel), m.tensor(b) if with_bias else None
            )
            back = ops.linear_unpack(packed)[0].int_repr()
            return ops.linear(x, packed, 0.2, 60), ops.linear_relu(x, packed, 0.2, 60), back

        same(f, [pair((30, 20), seed=seed, zero=100)])


@pytest.mark.parametrize("by_channel", [False, True])
def test_convolution(by_channel):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        w = rng.standard_normal((4, 2, 3, 3)).astype(np.float32)
        b = rng.standard_normal(4).astype(np.float32)

        def f(m, x, w=w, b=b):
            ops, made = m.ops.quantized, []
            for conv in (ops.conv2d, ops.conv2d_relu):  # PyTorch caches the first one's relu
                packed = ops.conv2d_prepack(
                    weight(m, w, by_channel), m.tensor(b), [2, 1], [1, 1], [1, 1], 2
                )
                made.append(conv(x, packed, 0.2, 60))
            return made

        same(f, [pair((2, 4, 6, 5), seed=seed, zero=100)])


# ---- fake quantization --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_fake_quantize(dtype):
    for seed in range(4):
        a = np.random.default_rng(seed).standard_normal((6, 50)) * 3

        def f(m, a=a, seed=seed):
            x = m.tensor(a).to(getattr(m, dtype)).requires_grad_()
            one = m.fake_quantize_per_tensor_affine(x, 0.07, 3, -20, 25)
            two = m.fake_quantize_per_tensor_affine(
                x, m.tensor(0.07), m.tensor(3, dtype=m.int32), -20, 25
            )
            scales = m.linspace(0.01, 0.1, 6)
            zeros = m.arange(6, dtype=m.int32) if seed % 2 else m.arange(6) * 0.3
            three = m.fake_quantize_per_channel_affine(x, scales, zeros, 0, -20, 25)
            out = []
            for y in (one, two, three):
                x.grad = None
                (y * 2).sum().backward(retain_graph=True)
                out += [y, x.grad, y.grad_fn.name()]
            return out

        same(f, [])


FAKE_ERRORS = {
    "int": lambda m, x: m.fake_quantize_per_tensor_affine(x.int(), 0.1, 3, 0, 255),
    "zero": lambda m, x: m.fake_quantize_per_tensor_affine(x, 0.1, 300, 0, 255),
    "range": lambda m, x: m.fake_quantize_per_tensor_affine(x, 0.1, 3, 255, 0),
    "two": lambda m, x: m.fake_quantize_per_tensor_affine(
        x, m.ones(2), m.zeros(2, dtype=m.int32), 0, 255
    ),
    "long": lambda m, x: m.fake_quantize_per_channel_affine(
        x, m.ones(3), m.zeros(3).long(), 0, 0, 255
    ),
    "double": lambda m, x: m.fake_quantize_per_channel_affine(
        x, m.ones(3).double(), m.zeros(3).int(), 0, 0, 255
    ),
    "length": lambda m, x: m.fake_quantize_per_channel_affine(
        x, m.ones(3), m.zeros(3).int(), 1, 0, 255
    ),
    "axis": lambda m, x: m.fake_quantize_per_channel_affine(
        x, m.ones(3), m.zeros(3).int(), 4, 0, 255
    ),
}


@pytest.mark.parametrize("case", FAKE_ERRORS)
def test_fake_errors(case):
    same(FAKE_ERRORS[case], [(torch.ones(3, 4), torchlab.ones(3, 4))])


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("codes", [(0, 255), (-128, 127)])
def test_observer(symmetric, rows, codes):
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((3, 8)).astype(np.float32) * (i + 1) for i in range(3)]

    def f(m):
        n = 3 if rows else 1
        low, high = m.full((n,), float("inf")), m.full((n,), float("-inf"))
        scale, zero = m.ones(n), m.zeros(n, dtype=m.int32)
        on = m.tensor([1])
        out = []
        for a in inputs:
            out.append(
                m.fused_moving_avg_obs_fake_quant(
                    m.tensor(a), on, on, low, high, scale, zero, 0.1, *codes, 0, rows, symmetric
                )
            )
        return [*out, low, high, scale, zero]

    same(f, [])
