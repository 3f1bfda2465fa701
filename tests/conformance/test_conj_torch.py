"""Conjugates and negatives that are not computed yet, against real PyTorch: values, the two bits,
strides, what shares memory with what, writes through the bits, gradients, and errors."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import torchlab

torch = pytest.importorskip("torch")
warnings.filterwarnings("ignore", message=".*(beta state|resized|deprecated|Casting).*")

ERRORS = (RuntimeError, IndexError, ValueError, TypeError, BufferError, NotImplementedError)
BASE = np.array(
    [[0.1 + 0.2j, 0.3 + 0.4j], [0.5 - 0.6j, 0.8 + 0.7j], [-1 + 3j, 2 - 0.25j]], np.complex64
)
SQUARE = np.array(
    [[1 + 2j, 3 - 1j, 0.5 - 2j], [0.5 + 0.25j, 2 + 1j, 1 - 1j], [1 - 3j, -1 - 1j, 3 + 3j]]
)

# The views that are tried: `z` is the complex tensor that owns the memory.
VIEWS = {
    "conj": "z.conj()",
    "mH": "z.mH",
    "conj row": "z.conj()[1]",
    "conj columns": "z.conj()[:, ::2]",
    "conj one": "z.conj()[1, 1]",
    "conj expanded": "z.conj().unsqueeze(0).expand(2, -1, -1)",
    "neg": "m._neg_view(z)",
    "neg conj": "m._neg_view(z.conj())",
    "imag": "z.conj().imag",
    "imag row": "z.conj().imag[0]",
    "real of neg": "m._neg_view(z).real",
    "neg of real": "m._neg_view(z.real)",
    "empty": "z.conj()[:0]",
    "size 1": "z[:, :1].conj()",
}
ALIKE = [  # for any view
    "v", "v.clone()", "v.contiguous()", "v.detach()", "v.resolve_conj()", "v.resolve_neg()",
    "v.resolve_conj().resolve_neg()", "v.conj()", "v.conj().conj()", "-v", "m._neg_view(v)",
    "v.conj_physical()", "m._conj_physical(v)", "v + v", "v * 2", "2 * v", "1 - v",
    "v / (2 + v * v)", "v * z.sum()", "z.sum() * v", "v.sum()", "v.mean()", "v.abs()", "v.sgn()",
    "v.exp()", "v.sqrt()", "v.square()", "v ** 2", "v.reciprocal()", "v.angle().contiguous()",
    "v == v", "v != v.clone()", "v.real", "v.reshape(-1)", "v.flatten()", "v.ravel()",
    "v.unsqueeze(0)", "v.squeeze()", "v.T if v.ndim < 3 else v", "v.view_as(v)",
    "v.view(v.shape)", "v.expand(2, *v.shape)", "v.movedim(0, -1) if v.ndim else v",
    "v.flip(0) if v.ndim else v", "v.roll(1)", "m.atleast_3d(v)", "m.broadcast_tensors(v, v)[1]",
    "v.narrow(0, 0, 0) if v.ndim else v", "v.unbind()[-1] if v.ndim and v.shape[0] else v",
    "v.split(1)[0] if v.ndim else v", "v.chunk(2)[0] if v.ndim else v",
    "v.tensor_split(2)[1] if v.ndim else v", "v.unfold(0, 1, 1) if v.ndim else v",
    "v.select(0, 0) if v.ndim and v.shape[0] else v", "v[..., None]", "v[...]", "v[None]", "v[:]",
    "v[[0]] if v.ndim and v.shape[0] else v", "v[v == v]", "m.zeros_like(v)", "m.ones_like(v)",
    "m.empty_like(v).shape", "v.new_zeros(2)", "v.new_ones(2)", "m.full_like(v, 3)",
    "m.cat([v, v]) if v.ndim else v", "m.stack([v, z.sum().to(v.dtype).expand(v.shape)])",
    "m.where(v == v, v, 0)", "v.masked_fill(v != v, 1).contiguous()", "v.cumsum(0)", "v.prod()",
    "v.isnan()", "v.isreal()", "v.to(m.complex128)", "v.to(m.bool)", "(v * 0).conj().to(m.bool)",
    "m._neg_view(v - v).to(m.bool)", "v.to(m.int64)", "v.bool()", "v.half()", "v.double()",
    "v.to(v.dtype)", "v.to(v.dtype, copy=True)", "v.cpu()", "v.type(v.dtype)",
    "v.is_contiguous()", "v.stride()", "v.storage_offset()", "v.shape", "v.tolist()", "v.dtype",
    "v.numel()", "v.is_complex()", "len(v)", "v.item()", "bool(v)", "complex(v)", "repr(v)",
    "str(v.detach())", "v.numpy()", "v.__array__()", "np.asarray(v)", "v.numpy(force=True)",
    "v.view(m.float32)", "v.view(m.int16)", "v.view(v.dtype)", "m.view_as_real(v)",
    "v.element_size()", "v.nbytes", "m.is_conj(v)", "m.is_neg(v)", "m.is_tensor(v)",
    "isinstance(v, m.Tensor)", "m.equal(v, v.clone())", "m.allclose(v, v.clone())",
    "v.diag_embed()", "v.repeat(2, *[1] * v.ndim)", "v.tile((2,))",
    "v.index_select(0, m.tensor([], dtype=m.int64))",
    "v.gather(0, m.zeros_like(v, dtype=m.int64))", "v.take(m.tensor([0]))",
    "v.as_strided((1,), (1,))", "m.addcmul(v, v, v)", "m.lerp(v, v * 2, 0.5)", "m.outer(v, v)",
    "m.dot(v, v).resolve_conj()", "m.vdot(v, v)", "m.linalg.vector_norm(v)", "m.nan_to_num(v)",
    "v.swapaxes(0, -1)", "v.positive()", "m.isclose(v, v)", "v.nonzero()",
    "m.asarray(v.detach())", "m.as_tensor(v)", "m.tensor(v.detach())", "copy.deepcopy(v)",
    "pickle.loads(pickle.dumps(v))", "v.data", "v.reshape(v.shape[::-1])",
    "v.unflatten(0, (-1, 1))", "v.t()", "v.adjoint()", "v.mT", "v.mH", "v.H", "v.sum(0)",
    "v.tril()", "v.diagonal()", "v.trace()", "v.sort()", "v.var()", "v.std(0)", "v < v",
    "v.float()", "v.imag", "v.real.is_neg()", "m.hypot(v, v)",
    "m.meshgrid(v, v, indexing='ij')[0]", "m.cartesian_prod(v, v)", "m.einsum('...->...', v)",
    "m.block_diag(v, v)", "v.amin() if v.numel() else 0", "v.count_nonzero()", "v.nansum()",
    "v.cfloat()", "v.cdouble()", "m.polar(v, v)", "m.complex(v, v)", "m.real(v)", "m.imag(v)",
    "v.is_leaf", "v._is_view()", "v.requires_grad", "v.new_empty(0).is_conj()",
    "v.untyped_storage().nbytes()", "m.nn.Parameter(v).is_conj()", "m.nn.Parameter(v).is_neg()",
    "v.__dlpack__() and 0 if v.is_conj() else 0",
]  # fmt: skip
MATRIX = [
    "c @ z", "z @ c", "c @ c", "c.mH @ z", "z.mH @ z", "z.mH @ z.mH", "m.mm(c, z)",
    "m.matmul(c.T, c)", "m.addmm(z, c, c)", "m.bmm(c[None], z[None])", "m.mv(c, z[0])",
    "m.mv(z, c[0])", "m.dot(c[0], z[0])", "m.vdot(c[0], z[0])",
    "m.vdot(z[0], c[0]).resolve_conj()", "m.linalg.det(c)", "m.linalg.inv(c)",
    "m.linalg.solve(c, z)", "m.linalg.eigvalsh(c @ c.mH)", "m.linalg.svdvals(c)",
    "m.linalg.qr(c)[1].abs()", "m.linalg.cholesky(c @ c.mH + 9 * m.eye(3, dtype=z.dtype))",
    "m.linalg.matrix_norm(c)", "m.linalg.pinv(c)", "m.trace(c)", "m.kron(c, z)",
    "m.einsum('ij,jk->ik', c, z)", "m.einsum('ij->ji', c)", "m.tensordot(c, z, 1)",
    "m.cross(c, z, dim=1)", "m.fft.fft(c)", "m.fft.ifft(c)", "m.fft.irfft(c)",
    "m.fft.ihfft(c.real)", "m.fft.hfft(c)", "m.triu(c)", "m.rot90(c)",
    "m.linalg.multi_dot([c, z, c])", "m.chain_matmul(c, z)", "m.cov(c)", "m.corrcoef(c)",
    "m.cdist(c.real, c.imag)", "m.nn.functional.linear(c, z)", "m.linalg.matrix_power(c, 3)",
    "m.inner(c, z)", "m.ger(c[0], z[0])", "m.baddbmm(z[None], c[None], c[None])",
    "m.linalg.vecdot(c, z)", "m.linalg.norm(c)", "m.cumprod(c, 0)", "m.logcumsumexp(c, 0)",
    "m.stack([c, z])", "m.vstack([c, z])", "m.dstack([c, z])", "m.nn.functional.pad(c, (1, 1))",
    "m.sum(c * z.mH)", "(c - z.conj()).abs().sum()", "c.mul(c.mH).T.conj()",
    "c.reshape(9)[::2].conj()", "c.t().reshape(9)", "c.t().contiguous()",
    "c.imag.t().contiguous()",
]  # fmt: skip
WRITES = [
    "v.add_(1)", "v.mul_(2)", "v.sub_(v)", "v.zero_()", "v.fill_(3)", "v += 2", "v *= v",
    "v /= 2", "v.copy_(w)", "w.copy_(v)", "w.add_(v)", "w.mul_(v)", "v.mul_(w)", "v[0] = 5",
    "v[v == v] = 1", "v.neg_()", "v.exp_()", "v.reciprocal_()",
    "v.conj_physical_() if v.is_complex() else 0", "v.masked_fill_(w == w, 2)",
    "v.index_fill_(0, m.tensor([], dtype=m.int64), 3)", "v.index_add_(0, m.tensor([0]), w[:1])",
    "v.index_copy_(0, m.tensor([0]), w[:1])", "v.cumsum_(0)", "v.tril_()", "v.addcmul_(w, w)",
    "v.lerp_(w, 0.5)", "v.pow_(2)", "v.scatter_(0, m.zeros(w.shape, dtype=m.int64), w)",
    "m.add(w, 1, out=v)", "m.mul(v, v, out=v)", "m.mul(v, w, out=w)", "m.cumsum(w, 0, out=v)",
    "m.cat([w[:1], w[1:]], out=v)", "m.sum(w, 0, out=v[0])",
    "v.index_put_((m.tensor([0]),), w[0])", "v.resize_(1)", "v.t_()", "v.unsqueeze_(0)",
    "v.squeeze_()", "v.transpose_(0, 1)", "v.swapaxes_(0, 1)", "v.requires_grad_()", "v.eq_(w)",
    "v.sqrt_()", "v.abs_()", "v.sgn_()", "v.real.fill_(7)", "v.imag.fill_(7)",
    "v.real.add_(v.imag)", "v.conj().add_(1j)", "v.mH.add_(1)", "v.unbind()[0].mul_(2)",
    "v.detach().mul_(3)", "v.data.mul_(3)", "m._neg_view(v).add_(1)", "w.sub_(v, alpha=2)",
    "v.add_(w, alpha=3)", "w.addmm_(v.T, v) if v.ndim == 2 and v.shape[0] == v.shape[1] else 0",
    "v.addmm_(v.T, v) if v.ndim == 2 and v.shape[0] == v.shape[1] else 0",
    "m.linalg.inv(w, out=v) if v.ndim == 2 and v.shape[0] == v.shape[1] else 0",
    "v.view(m.int32)", "v.fill_diagonal_(3) if v.ndim == 2 else 0", "v.copy_(w.real)",
    "z.mul_(2)", "z.copy_(z.conj())", "z.add_(z.conj())",
    "z.mul_(z.mH) if z.shape[0] == z.shape[1] else 0", "z.t_()", "z.fill_(1j)",
    "m.conj_physical(w, out=v)", "m.neg(w, out=v)", "m.abs(w, out=v)",
]  # fmt: skip


def run(m, text, z, view=None, w=None):
    names = {
        "m": m,
        "z": z,
        "c": z.conj(),
        "w": w,
        "np": np,
        "copy": copy,
        "pickle": pickle,
    }
    if view is not None:
        names["v"] = eval(view, names)
    try:
        try:
            code = compile(text, "<test>", "eval")
        except SyntaxError:
            exec(text, names)
            return names["v"], names
        return eval(code, names), names
    except ERRORS as e:
        return e, names


def kind(e):
    return next(c for c in (NotImplementedError, *ERRORS) if isinstance(e, c))


def same(label, ours, theirs):
    """Both results alike; bits, strides and the memory's bytes of tensors too."""
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        assert isinstance(theirs, Exception) and isinstance(ours, Exception), (label, ours, theirs)
        assert kind(ours) is kind(theirs), (label, ours, theirs)
        return
    if isinstance(theirs, (tuple, list)) and not isinstance(theirs, torch.Size):
        assert len(ours) == len(theirs), label
        for a, b in zip(ours, theirs, strict=True):
            same(label, a, b)
        return
    if not isinstance(theirs, torch.Tensor):
        if isinstance(theirs, np.ndarray):
            np.testing.assert_allclose(ours, theirs, 1e-5, 1e-6, err_msg=label)
        elif isinstance(theirs, (float, complex)):
            assert abs(ours - theirs) < 1e-5, label
        else:
            assert str(ours).replace("torchlab", "torch") == str(theirs), label
        return
    assert isinstance(ours, torchlab.Tensor), label
    bits = (ours.is_conj(), ours.is_neg(), ours.requires_grad)
    assert bits == (theirs.is_conj(), theirs.is_neg(), theirs.requires_grad), label
    assert tuple(ours.shape) == tuple(theirs.shape), label
    assert str(ours.dtype) == str(theirs.dtype), label
    if theirs.numel():
        assert ours.stride() == theirs.stride(), label
        assert ours.is_contiguous() == theirs.is_contiguous(), label
        assert ours.storage_offset() == theirs.storage_offset(), label
    np.testing.assert_allclose(
        ours.detach().numpy(force=True),
        theirs.detach().numpy(force=True),
        2e-5,
        2e-6,
        err_msg=label,
    )


def shares(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def cases(name, source):
    return pytest.mark.parametrize(name, source)


@cases("view", VIEWS)
def test_expressions(view):
    base = SQUARE if view in ("mH", "neg conj") else BASE
    for text in ALIKE:
        ours, theirs = (run(m, text, m.tensor(base), VIEWS[view]) for m in (torchlab, torch))
        label = f"v = {VIEWS[view]}: {text}"
        same(label, ours[0], theirs[0])
        if isinstance(theirs[0], torch.Tensor) and theirs[0].numel():
            assert shares(ours[0], ours[1]["z"]) == shares(theirs[0], theirs[1]["z"]), label


@cases("text", MATRIX)
def test_matrices(text):
    ours, theirs = (run(m, text, m.tensor(SQUARE)) for m in (torchlab, torch))
    same(text, ours[0], theirs[0])


@cases("view", [v for v in VIEWS if v != "conj expanded"])
def test_writes(view):
    base = SQUARE if view in ("mH", "neg conj") else BASE
    for text in WRITES:
        results = []
        for m in (torchlab, torch):
            z = m.tensor(base)
            like = eval(VIEWS[view], {"m": m, "z": z})
            w = ((m.arange(like.numel()) + 1) ** 2).to(z.dtype).mul(0.5 - 0.25j).reshape(like.shape)
            w = w if like.is_complex() else w.real.contiguous()
            results.append(run(m, text, z, VIEWS[view], w))
        ours, theirs = results
        label = f"v = {VIEWS[view]}: {text}"
        same(label, ours[0], theirs[0])
        for name in ("z", "v", "w"):
            same(f"{label}: {name}", ours[1][name], theirs[1][name])
            assert ours[1][name]._version == theirs[1][name]._version, (label, name)


GRADIENTS = [
    "y.conj()", "y.mH", "y.conj().imag", "y.conj().real", "y.conj() * y", "y.mH @ y",
    "y.conj()[0]", "y.conj().t().reshape(-1)", "m._neg_view(y)", "m._neg_view(y).conj().imag",
    "y.conj().resolve_conj()", "y.conj().imag.resolve_neg()", "y.conj().clone()",
    "y.conj().sum()", "y.conj().exp()", "y.conj() / (2 + y * y)", "m.stack([y.conj(), y])",
    "y.conj().conj_physical()", "m.view_as_real(y)",
    "m.view_as_complex(m.view_as_real(y)).conj()", "y.real * y.imag", "(y.conj() * 2).abs()",
    "m.vdot(y.conj()[0], y[0])", "y.conj().expand(2, 3, 2)", "y.conj().unfold(0, 2, 1)",
    "y.conj().to(m.complex64)", "y.adjoint().conj()", "y.conj().as_strided((3,), (2,))",
    "y.conj().square().imag", "m.linalg.vector_norm(y.conj())",
    "m.where(y.real > 0, y.conj(), y)", "y.conj().cumsum(0).mH",
    "y.conj().masked_fill(y.imag > 0, 0)", "y.conj()[[0, 1]]",
]  # fmt: skip
GRADIENTS_OF_WRITES = [
    "v = y.conj(); v.mul_(u)", "v = y.conj(); v[0] = u[0]", "y.real.mul_(u.real)",
    "y.imag.copy_(u.real)", "y.conj().imag.mul_(u.imag)", "m.view_as_real(y).mul_(3)",
    "v = y.mH; v.add_(u.mH)", "m._neg_view(y).mul_(u)", "v = y.conj(); y.mul_(u); y = v * 1",
    "v = y.imag; y.mul_(u); y = v * 1", "v = y.conj().imag; y.mul_(u); y = v * 1",
    "v = y.conj()[1:]; v.exp_(); y = y * v.sum()", "y.copy_(u.conj())", "y.conj().copy_(u)",
    "y.t().conj()[0].mul_(2j)", "y.add_(u.conj())",
    "v = y.conj(); w = v.real; w.mul_(2); y = y * w.sum()",
    "v = m.view_as_complex(m.view_as_real(y)[:, :1]); v.mul_(u[:, :1])",
    "r = m.view_as_real(u * 1); c = m.view_as_complex(r); c.mul_(y); y = r * 1",
]  # fmt: skip


def names_of(t):
    found, node = [], t.grad_fn
    while node is not None and len(found) < 8:
        found.append(node.name().replace("torch::autograd::", ""))
        node = node.next_functions[0][0] if node.next_functions else None
    return found


@cases("text", GRADIENTS)
def test_gradients(text):
    results = []
    for m in (torchlab, torch):
        x = m.tensor(BASE.astype(np.complex128), requires_grad=True)
        y = x * (1 + 0.5j)
        r = eval(text, {"m": m, "y": y})
        weights = (m.arange(r.numel(), dtype=m.float64) - 1.5).reshape(r.shape)
        weights = weights * (1 - 2j) if r.is_complex() else weights
        (g,) = m.autograd.grad(r, x, weights.to(r.dtype), create_graph=True)
        total = m.view_as_real(g.resolve_conj()).square().sum()
        twice = m.autograd.grad(total, x, allow_unused=True)[0] if total.requires_grad else None
        results.append((r, g, 0 if twice is None else twice, names_of(r)))
    same(text, *(x[:1] for x in results))
    for i in (1, 2):
        ours, theirs = (x[i].detach().numpy(force=True) if x[i] is not 0 else 0 for x in results)  # noqa: F632
        np.testing.assert_allclose(ours, theirs, 1e-9, 1e-10, err_msg=text)
    if "real(y)" not in text or "complex" in text:
        assert results[0][3] == results[1][3], text


@cases("text", GRADIENTS_OF_WRITES)
def test_gradients_of_writes(text):
    results = []
    for m in (torchlab, torch):
        x, u = (m.tensor(BASE.astype(np.complex128) + k, requires_grad=True) for k in (0, 1j))
        names = {"m": m, "y": x * (1 + 0.5j), "u": u}
        exec(text, names)
        y = names["y"]
        weights = (m.arange(y.numel(), dtype=m.float64) - 1.5).reshape(y.shape)
        weights = (weights * (1 - 2j) if y.is_complex() else weights).to(y.dtype)
        grads = m.autograd.grad(y, (x, u), weights, allow_unused=True)
        results.append((y, *(m.zeros(1) if g is None else g for g in grads)))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(
            ours.detach().numpy(force=True),
            theirs.detach().numpy(force=True),
            1e-9,
            1e-10,
            err_msg=text,
        )


def test_leaves():
    for m in (torchlab, torch):
        leaf = m.tensor(BASE).conj().requires_grad_()
        assert leaf.is_conj() and leaf.is_leaf and leaf.grad_fn is None
        (leaf * leaf).abs().sum().backward()
        assert leaf.grad.shape == leaf.shape and not leaf.grad.is_conj()
        x = m.tensor(BASE, requires_grad=True)
        x.mH.backward(m.ones(2, 3, dtype=m.complex64) * 1j)
        assert x.grad.stride() == (2, 1) and not x.grad.is_conj()
        assert x.grad[0, 0].item() == -1j
        x.mH.backward((m.ones(3, 2, dtype=m.complex64) * 1j).mH)
        assert x.grad[0, 0].item() == 0


@cases("text", ["y.mul_(y.conj())", "y.conj().mul_(y.conj())", "y.imag.mul_(y.imag)"])
def test_saved_views_of_what_is_written(text):
    for m in (torchlab, torch):
        y = m.tensor(BASE, requires_grad=True) * 1
        exec(text, {"y": y})
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.abs().sum().backward()


def test_set():
    for m in (torchlab, torch):
        z, w = m.tensor(BASE), m.tensor(SQUARE)[0].to(m.complex64)
        v = z.conj()
        v.set_(w)
        assert v.is_conj() and m.equal(v, w.conj()) and m.equal(z, m.tensor(BASE))


def test_saved_values_are_checked():
    for m in (torchlab, torch):
        x = m.tensor(BASE, requires_grad=True)
        y = x * 1
        r = (y.conj() * y.conj()).abs().sum()
        y.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            r.backward()
        y = x * 1
        c = m.tensor(BASE).conj()
        y.mul_(c)
        c.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.abs().sum().backward()


def test_nothing_else_notices():
    """Modules, generators of views and comparison take such tensors as any other."""
    for m in (torchlab, torch):
        z = m.tensor(SQUARE)
        m.testing.assert_close(z.conj(), z.conj().clone())
        with pytest.raises(AssertionError):
            m.testing.assert_close(z.conj(), z)
        layer = m.nn.Linear(3, 3, dtype=m.complex128)
        layer.weight = m.nn.Parameter(z.conj())
        assert [n for n, _ in layer.named_parameters()] == ["weight", "bias"]
        assert layer.weight.is_conj()
        x = m.ones(2, 3, dtype=m.complex128)
        m.testing.assert_close(layer(x), x @ z.mH + layer.bias)
        with m.inference_mode():
            assert (z.conj() * 2).is_inference() and z.conj().is_conj()
        with m.no_grad():
            assert z.conj().imag.is_neg()
        meta = m.empty(2, 3, dtype=m.complex64, device="meta").conj()
        assert meta.is_conj() and (meta * 2).shape == (2, 3) and meta.imag.is_neg()
        assert meta.resolve_conj().stride() == (3, 1)
