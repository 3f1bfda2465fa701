"""What may stand for a number, a size or a flag in a call: torchlab takes and refuses what
PyTorch's parser does."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab

torch = pytest.importorskip("torch")

VALUES = {
    "True": lambda m: True, "1": lambda m: 1, "1.0": lambda m: 1.0, "None": lambda m: None,
    "str": lambda m: "a", "list": lambda m: [1], "tuple": lambda m: (1,),
    "Size": lambda m: m.Size([1]),
    "list of tensors": lambda m: [m.tensor(1)], "list of NumPy's": lambda m: [np.int64(1)],
    "np.bool": lambda m: np.bool_(True), "np.int64": lambda m: np.int64(1),
    "np.float32": lambda m: np.float32(1), "np.float64": lambda m: np.float64(1),
    "float array": lambda m: np.array(1.0), "int tensor": lambda m: m.tensor(1),
    "int32 tensor": lambda m: m.tensor(1, dtype=m.int32), "float tensor": lambda m: m.tensor(1.0),
    "leaf": lambda m: m.tensor(1.0, requires_grad=True),
}  # fmt: skip

CALLS = """
torch.unsqueeze(x, v)| x.unsqueeze(v)| torch.cumsum(x, v)| x.transpose(0, v)| x.select(0, v)
torch.softmax(x, v)| torch.diag(x, v)| torch.tril(x, v)| torch.topk(x, v)[0]| torch.argmax(x, v)
torch.gather(x, v, torch.zeros(2, 3, dtype=torch.long))| torch.flatten(x, v)| torch.chunk(x, v)
x.narrow(1, v, 1)| x.unfold(1, v, 1)| torch.movedim(x, v, 0)| x.unbind(v)
torch.nn.functional.one_hot(torch.zeros(2, dtype=torch.long), v)| x.sort(v)[0]| x.kthvalue(v)[0]
torch.nn.functional.pixel_shuffle(torch.ones(1, 4, 2, 2), v)| x.index_select(v, torch.tensor([0]))
torch.diff(x, v)| torch.matrix_power(torch.eye(2), v)
torch.bincount(torch.tensor([0]), minlength=v)| torch.dropout(x, v, False)| torch.isclose(x, x, v)
torch.layer_norm(x, (3,), eps=v)| x.clone().uniform_(v, 2)| x.clone().normal_(0, v)
x.clone().exponential_(v)| torch.cdist(x, x, v)| torch.nan_to_num(x, v)
torch.nn.functional.huber_loss(x, x, delta=v)| torch.pdist(x, v)
torch.nn.functional.smooth_l1_loss(x, x + 2, beta=v)
torch.nn.functional.cosine_similarity(x, x, 1, v)| torch.allclose(x, x, v)
torch.logit(torch.tensor([0.5]), v)| torch.normal(x, v)| torch.hann_window(v)
torch.nn.functional.cross_entropy(x, torch.tensor([0, 0]), label_smoothing=v)
torch.add(x, x, alpha=v)| torch.sub(x, x, alpha=v)| torch.nn.functional.leaky_relu(x, v)
x.clone().add_(x, alpha=v)| torch.add(x, x, alpha=v, out=torch.empty(0))
torch.nn.functional.elu(x, v)| torch.addmm(x, x, torch.eye(3), beta=v)| torch.clamp(x, max=v)
torch.threshold(x, v, 0)| torch.linspace(v, 2, 3)| x.masked_fill(x > 2, v)
torch.renorm(x, v, 0, 1)| torch.norm(x, v)| torch.nn.functional.hardtanh(x, v, 3)
torch.nn.functional.softplus(x, v)| torch.lerp(x, x, v)| torch.nn.functional.hardshrink(x, v)
torch.linalg.vector_norm(x, v)| torch.std(x, correction=v)| torch.pow(x, v)| torch.div(x, v)
torch.addcmul(x, x, x, value=v)| torch.histc(x, 3, v, 5)
x.scatter(0, torch.zeros(1, 3, dtype=torch.long), v)| x.index_fill(0, torch.tensor([0]), v)
torch.eq(x, v)| torch.where(x > 1, x, v)| torch.remainder(x, v)| torch.celu(x, v)| torch.rsub(x, v)
torch.sum(x, 0, v)| torch.dropout(x, 0.5, v)| torch.topk(x, 1, 1, v)[0]| torch.argsort(x, 0, v)
torch.isclose(x, x, equal_nan=v)| torch.linalg.cholesky(torch.eye(2), upper=v)
torch.rand(2, requires_grad=v)| x.reshape(v)| torch.zeros(v)| torch.zeros(v, 2)| torch.sum(x, v)
torch.nn.functional.pad(x, v)| torch.layer_norm(torch.ones(2, 1), v)| torch.mean(x, v)
torch.amax(x, v)| torch.rand(v)| torch.randn(v)| torch.randint(0, 5, v)| x.new_zeros(v)
x.new_empty(v)| torch.empty(v)| torch.ones(v)| torch.broadcast_to(torch.ones(1), v)
torch.ones(1).unflatten(0, v)| torch.rot90(x, v)| torch.empty_strided(v, [1])| torch.all(x, v)
torch.count_nonzero(x, v)| torch.linalg.vector_norm(x, 2, v)
torch.nn.functional.normalize(x, dim=v)
"""


def outcome(module, call, value):
    """The values of the result, "random" numbers' shape; of an error, whether it is a TypeError."""
    x = module.arange(6.0).reshape(2, 3)
    module.manual_seed(0)
    try:
        r = eval(call, {"torch": module, "x": x, "v": VALUES[value](module)})
    except Exception:
        return "error"
    parts = r if isinstance(r, (tuple, list)) else [r]
    return [
        (tuple(p.shape), str(p.dtype).split(".")[-1], p.detach().double().numpy())
        if hasattr(p, "shape") else p
        for p in parts
    ]  # fmt: skip


@pytest.mark.parametrize("call", [c.strip() for c in CALLS.strip().replace("\n", "|").split("|")])
def test_takes_and_refuses_what_pytorch_does(call):
    for value in VALUES:
        ours, theirs = outcome(torchlab, call, value), outcome(torch, call, value)
        assert (ours == "error") == (theirs == "error"), (value, ours, theirs)
        if ours == "error":
            continue
        assert [p[:2] if isinstance(p, tuple) else p for p in ours] == [
            p[:2] if isinstance(p, tuple) else p for p in theirs
        ], value
        if not call.startswith(("torch.empty", "x.new_empty")):
            for a, b in zip(ours, theirs):
                if isinstance(a, tuple):
                    np.testing.assert_allclose(a[2], b[2], rtol=1e-6, err_msg=value)
