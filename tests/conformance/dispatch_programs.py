"""Small programs whose operators, forward and backward, a dispatch mode writes down. They are run
with PyTorch and with torchlab by test_dispatch_torch.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def t(torch: Any, *shape: int, g: bool = True, off: float = 0.0) -> Any:
    n = 1
    for s in shape:
        n *= s
    x = ((torch.arange(n, dtype=torch.float32) * 7 % 11) / 11 + 0.1 + off).reshape(shape)
    return x.requires_grad_(g)


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}


def program(make: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def deco(f: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[f.__name__] = (make, f)
        return f

    return deco


def two(torch: Any) -> Any:
    return t(torch, 3, 4), t(torch, 3, 4, off=0.5)


def one(torch: Any) -> Any:
    return (t(torch, 3, 4),)


@program(two)
def add_mul(torch: Any, x: Any, y: Any) -> None:
    ((x + y) * y).sum().backward()


@program(two)
def sub_div(torch: Any, x: Any, y: Any) -> None:
    ((x - y) / y).sum().backward()


@program(one)
def numbers(torch: Any, x: Any) -> None:
    (2 * x + 1 - x / 3).sum().backward()


@program(one)
def mean(torch: Any, x: Any) -> None:
    x.mean().backward()


@program(one)
def mean_dim(torch: Any, x: Any) -> None:
    x.mean(1).sum().backward()


@program(one)
def sum_dim(torch: Any, x: Any) -> None:
    x.sum(0, keepdim=True).sum().backward()


@program(one)
def exp_log(torch: Any, x: Any) -> None:
    torch.log(torch.exp(x) + 1).sum().backward()


@program(one)
def sin_cos(torch: Any, x: Any) -> None:
    (x.sin() * x.cos()).sum().backward()


@program(one)
def relu(torch: Any, x: Any) -> None:
    torch.nn.functional.relu(x - 0.5).sum().backward()


@program(one)
def sigmoid_tanh(torch: Any, x: Any) -> None:
    (x.sigmoid() + x.tanh()).sum().backward()


@program(one)
def gelu(torch: Any, x: Any) -> None:
    torch.nn.functional.gelu(x).sum().backward()


@program(one)
def silu(torch: Any, x: Any) -> None:
    torch.nn.functional.silu(x).sum().backward()


@program(one)
def power(torch: Any, x: Any) -> None:
    (x**2 + x.pow(3)).sum().backward()


@program(one)
def sqrt(torch: Any, x: Any) -> None:
    (x.sqrt() + x.rsqrt()).sum().backward()


@program(lambda torch: (t(torch, 2, 4), t(torch, 3, 4), t(torch, 3)))
def linear(torch: Any, x: Any, w: Any, b: Any) -> None:
    torch.nn.functional.linear(x, w, b).sum().backward()


@program(lambda torch: (t(torch, 2, 5, 4), t(torch, 3, 4), t(torch, 3)))
def linear3d(torch: Any, x: Any, w: Any, b: Any) -> None:
    torch.nn.functional.linear(x, w, b).sum().backward()


@program(lambda torch: (t(torch, 2, 4), t(torch, 4, 3)))
def matmul(torch: Any, x: Any, y: Any) -> None:
    (x @ y).sum().backward()


@program(lambda torch: (t(torch, 2, 3, 4), t(torch, 2, 4, 3)))
def bmm(torch: Any, x: Any, y: Any) -> None:
    torch.matmul(x, y).sum().backward()


@program(lambda torch: (t(torch, 2, 3, 4), t(torch, 4)))
def matvec(torch: Any, x: Any, y: Any) -> None:
    torch.matmul(x, y).sum().backward()


@program(one)
def views(torch: Any, x: Any) -> None:
    x.view(4, 3).t().reshape(12)[2:5].sum().backward()


@program(one)
def transposes(torch: Any, x: Any) -> None:
    x.transpose(0, 1).permute(1, 0).unsqueeze(0).squeeze(0).sum().backward()


@program(one)
def index(torch: Any, x: Any) -> None:
    (x[0] + x[:, 1].sum()).sum().backward()


@program(one)
def index_tensor(torch: Any, x: Any) -> None:
    x[torch.tensor([0, 2])].sum().backward()


@program(two)
def cat_stack(torch: Any, x: Any, y: Any) -> None:
    (torch.cat([x, y]).sum() + torch.stack([x, y]).sum()).backward()


@program(one)
def split_chunk(torch: Any, x: Any) -> None:
    a, b = x.chunk(2, 1)
    (a * b).sum().backward()


@program(one)
def softmax(torch: Any, x: Any) -> None:
    (torch.softmax(x, 1) ** 2).sum().backward()


@program(lambda torch: (t(torch, 3, 4),))
def cross_entropy(torch: Any, x: Any) -> None:
    torch.nn.functional.cross_entropy(x, torch.tensor([0, 1, 2])).backward()


@program(two)
def mse(torch: Any, x: Any, y: Any) -> None:
    torch.nn.functional.mse_loss(x, y).backward()


@program(lambda torch: (t(torch, 3, 4), t(torch, 4), t(torch, 4)))
def layer_norm(torch: Any, x: Any, w: Any, b: Any) -> None:
    torch.nn.functional.layer_norm(x, (4,), w, b).sum().backward()


@program(lambda torch: (t(torch, 1, 2, 5, 5), t(torch, 3, 2, 3, 3), t(torch, 3)))
def conv(torch: Any, x: Any, w: Any, b: Any) -> None:
    torch.nn.functional.conv2d(x, w, b, padding=1).sum().backward()


@program(lambda torch: (t(torch, 1, 2, 4, 4),))
def max_pool(torch: Any, x: Any) -> None:
    torch.nn.functional.max_pool2d(x, 2).sum().backward()


@program(lambda torch: (t(torch, 1, 2, 4, 4),))
def avg_pool(torch: Any, x: Any) -> None:
    torch.nn.functional.avg_pool2d(x, 2).sum().backward()


@program(lambda torch: (t(torch, 2, 3, 4, 4), t(torch, 3), t(torch, 3)))
def batch_norm(torch: Any, x: Any, w: Any, b: Any) -> None:
    torch.nn.functional.batch_norm(x, None, None, w, b, True).sum().backward()


@program(lambda torch: (t(torch, 5, 4),))
def embedding(torch: Any, w: Any) -> None:
    torch.nn.functional.embedding(torch.tensor([1, 3]), w).sum().backward()


@program(lambda torch: (t(torch, 1, 2, 4, 8), t(torch, 1, 2, 4, 8), t(torch, 1, 2, 4, 8)))
def sdpa(torch: Any, q: Any, k: Any, v: Any) -> None:
    torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()


@program(lambda torch: (t(torch, 3, 4, g=False), t(torch, 3, 4, g=False)))
def inplace(torch: Any, x: Any, y: Any) -> None:
    x.add_(y)
    x.mul_(2)
    x[0] = 1.0
    x[1].zero_()
    x.fill_(3.0)
    x.clamp_(0, 1)
    x.copy_(y)


@program(lambda torch: (t(torch, 3, 4, g=False), t(torch, 3, 4, g=False)))
def out(torch: Any, x: Any, y: Any) -> None:
    o = torch.empty(3, 4)
    torch.add(x, y, out=o)
    torch.mul(x, y, out=o)
    torch.exp(x, out=o)


@program(one)
def inplace_grad(torch: Any, x: Any) -> None:
    y = x * 2
    y.mul_(3)
    y.add_(x)
    y.sum().backward()


@program(lambda torch: ())
def factories(torch: Any) -> None:
    torch.ones(2)
    torch.zeros(2, 3)
    torch.empty(2)
    torch.full((2,), 1.0)
    torch.arange(3)
    torch.eye(2)
    torch.linspace(0, 1, 3)
    torch.tensor([1.0, 2.0])
    torch.zeros_like(torch.ones(2))
    torch.scalar_tensor(1.0)


@program(lambda torch: ())
def random(torch: Any) -> None:
    torch.manual_seed(0)
    torch.rand(2)
    torch.randn(2, 2)
    torch.randint(0, 3, (2,))
    torch.randperm(3)
    torch.empty(2).normal_()
    torch.empty(2).uniform_()
    torch.bernoulli(torch.ones(2))
    torch.rand_like(torch.ones(2))


@program(one)
def dropout(torch: Any, x: Any) -> None:
    torch.manual_seed(0)
    torch.nn.functional.dropout(x, 0.5, True).sum().backward()


@program(two)
def where_compare(torch: Any, x: Any, y: Any) -> None:
    torch.where(x > y, x, y).sum().backward()
    (x == y).all()
    (x < 1).any()
    x.argmax()


@program(one)
def max_sort(torch: Any, x: Any) -> None:
    (x.max(1)[0].sum() + x.max() + x.sort(1)[0].sum()).backward()


@program(one)
def conversion(torch: Any, x: Any) -> None:
    x.double().float().sum().backward()
    x.detach().to(torch.int64)
    x.clone()
    x.detach().contiguous()


@program(one)
def item(torch: Any, x: Any) -> None:
    x.sum().item()


@program(lambda torch: (t(torch, 3, 1), t(torch, 1, 4)))
def broadcast(torch: Any, x: Any, y: Any) -> None:
    (x * y + x).sum().backward()


@program(one)
def second(torch: Any, x: Any) -> None:
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    g.sum().backward()


@program(lambda torch: (torch.nn.Linear(3, 4), torch.nn.Linear(4, 1), t(torch, 2, 3, g=False)))
def mlp_step(torch: Any, a: Any, b: Any, x: Any) -> None:
    opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
    loss = b(torch.relu(a(x))).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()


@program(lambda torch: (torch.nn.Linear(3, 4), t(torch, 2, 3, g=False)))
def adam_step(torch: Any, a: Any, x: Any) -> None:
    opt = torch.optim.Adam(a.parameters(), lr=0.1, foreach=False)
    a(x).sum().backward()
    opt.step()


@program(lambda torch: (t(torch, 3, 4),))
def norms(torch: Any, x: Any) -> None:
    (x.norm() + x.var(1).sum() + x.std()).backward()


@program(lambda torch: (t(torch, 3, 4),))
def clamp_abs(torch: Any, x: Any) -> None:
    (x.clamp(min=0.3, max=0.8) + x.abs() - x.neg()).sum().backward()


@program(lambda torch: (t(torch, 3, 4),))
def cumsum_flip(torch: Any, x: Any) -> None:
    (x.cumsum(1).flip(0) + x.roll(1, 0)).sum().backward()


@program(lambda torch: (t(torch, 3, 4),))
def gather_scatter(torch: Any, x: Any) -> None:
    i = torch.tensor([[0, 1], [1, 2], [3, 0]])
    x.gather(1, i).sum().backward()
    torch.zeros(3, 4).scatter_(1, i, 1.0)
    torch.zeros(3, 4).scatter_add(1, i, torch.ones(3, 2))


@program(lambda torch: (t(torch, 2, 3), t(torch, 3, 4), t(torch, 2, 4)))
def addmm(torch: Any, a: Any, b: Any, c: Any) -> None:
    torch.addmm(c, a, b).sum().backward()


@program(lambda torch: (t(torch, 2, 3), t(torch, 4, 3)))
def einsum(torch: Any, a: Any, b: Any) -> None:
    torch.einsum("ij,kj->ik", a, b).sum().backward()


@program(one)
def expand_repeat(torch: Any, x: Any) -> None:
    (x.unsqueeze(1).expand(3, 2, 4).sum() + x.repeat(2, 1).sum()).backward()


@program(one)
def flatten_unbind(torch: Any, x: Any) -> None:
    a, b, c = x.unbind(0)
    (x.flatten().sum() + a.dot(b) + c.sum()).backward()


@program(one)
def tri_mask(torch: Any, x: Any) -> None:
    (x.tril() + x.masked_fill(x.detach() > 0.5, 0.0)).sum().backward()


def arg(torch: Any, x: Any) -> str:
    if isinstance(x, torch.Tensor):
        return f"T{tuple(x.shape)}"
    if isinstance(x, (list, tuple)):
        return "[" + ",".join(arg(torch, y) for y in x) + "]"
    return str(x).replace("torchlab", "torch")


def run(torch: Any, mode: type, name: str) -> tuple[list[str], list[Any]]:
    """(what the mode was told, the gradients) of a program."""
    log: list[str] = []

    class Writes(mode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            told = [arg(torch, x) for x in args]
            told += [f"{k}={arg(torch, v)}" for k, v in (kwargs or {}).items()]
            log.append(f"{func}({', '.join(told)})")
            return func(*args, **(kwargs or {}))

    make, f = PROGRAMS[name]
    args = make(torch)
    torch.manual_seed(0)
    with Writes():
        f(torch, *args)
    grads = [a.grad for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
    return [x for x in log if not x.startswith("profiler")], grads
