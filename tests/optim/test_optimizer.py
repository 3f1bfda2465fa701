"""torchlab.optim.optimizer: groups, state, hooks."""

from __future__ import annotations

import copy
import pickle

import pytest

import torchlab as torch
from torchlab import nn, optim
from torchlab._core import blocks
from torchlab.optim.optimizer import register_optimizer_step_post_hook


def parameter(*values):
    p = nn.Parameter(torch.tensor(values or (1.0, 2.0)))
    p.grad = torch.ones(len(values) or 2)
    return p


def test_groups_have_their_own_options():
    a, b = parameter(1.0), parameter(1.0)
    o = optim.SGD([{"params": a, "lr": 0.5}, {"params": [b]}], lr=0.1)
    o.step()
    assert (a.item(), b.item()) == pytest.approx((0.5, 0.9))


def test_named_parameters():
    m = nn.Linear(1, 1)
    o = optim.SGD(m.named_parameters(), lr=0.1)
    assert o.param_groups[0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="cannot add param group without names"):
        o.add_param_group({"params": [parameter()]})
    assert len(o.param_groups) == 1


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: optim.SGD(torch.ones(2)), TypeError, "an iterable of Tensors or dicts"),
        (lambda: optim.SGD([]), ValueError, "optimizer got an empty parameter list"),
        (lambda: optim.SGD([3]), TypeError, "one of the params is int"),
        (lambda: optim.SGD([parameter() * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: optim.SGD([{"params": {parameter()}}]), TypeError, "ordered collections"),
        (lambda: optim.Optimizer([parameter()], {}).step(), NotImplementedError, "no step"),
        (
            lambda: optim.Optimizer([parameter()], {"lr": optim.optimizer.required}),
            ValueError,
            "didn't specify a value of required optimization parameter lr",
        ),
    ],
)
def test_what_is_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_a_refused_group_changes_nothing():
    p = parameter()
    o = optim.SGD([p], lr=0.1)
    for group, error in ((3, TypeError), ({"params": [p]}, ValueError)):
        with pytest.raises(error):
            o.add_param_group(group)
    assert len(o.param_groups) == 1
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([p, p])


def test_zero_grad_and_missing_gradients():
    p, q = parameter(), nn.Parameter(torch.ones(1))
    o = optim.Adam([p, q])
    o.step()
    assert q.item() == 1.0 and q not in o.state
    o.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0, 0.0]
    o.zero_grad()
    assert p.grad is None


def test_closure_is_recorded_and_returned():
    p = nn.Parameter(torch.tensor([3.0]))
    o = optim.SGD([p], lr=1.0)

    def closure():
        o.zero_grad()
        loss = (p * 2).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert o.step(closure).item() == 6.0
    assert p.item() == 1.0


def test_state_round_trip_and_casting():
    p = parameter()
    o = optim.Adam([p], lr=0.1)
    o.step()
    saved = copy.deepcopy(o.state_dict())
    assert list(saved["state"][0]) == ["step", "exp_avg", "exp_avg_sq"]
    assert saved["param_groups"][0]["params"] == [0]
    q = nn.Parameter(p.detach().double())
    q.grad = torch.ones(2, dtype=torch.float64)
    other = optim.Adam([q], lr=9.0)
    other.load_state_dict(saved)
    assert other.param_groups[0]["lr"] == 0.1
    state = other.state[q]
    assert state["exp_avg"].dtype is torch.float64 and state["step"].dtype is torch.float32
    other.step()
    assert state["step"].item() == 2.0


def test_a_state_that_does_not_fit_is_refused():
    o = optim.SGD([parameter()], lr=0.1)
    before = o.state_dict()
    with pytest.raises(ValueError, match="different number of parameter groups"):
        o.load_state_dict({"state": {}, "param_groups": []})
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        o.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})
    assert o.state_dict() == before


def test_wrappers_that_leave_out_the_constructor():
    class Wrapper(optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner

        @property
        def param_groups(self):
            return self.inner.param_groups

        def step(self, closure=None):
            return self.inner.step(closure)

    p = parameter()
    w = Wrapper(optim.SGD([p], lr=1.0))
    before = p.detach().clone()
    p.grad = torch.ones_like(p)
    with register_optimizer_step_post_hook(lambda opt, *a: seen.append(type(opt).__name__)):
        seen = []
        w.step()
    assert torch.equal(p.detach(), before - 1)
    assert seen == ["SGD"]  # as in PyTorch, whose hooks come with the constructor


def test_hooks():
    o = optim.SGD([parameter()], lr=0.1)
    seen = []
    o.register_step_pre_hook(lambda opt, args, kwargs: seen.append("before"))
    last = o.register_step_post_hook(lambda opt, args, kwargs: seen.append("after"))
    with register_optimizer_step_post_hook(lambda *a: seen.append("everywhere")):
        o.step()
    last.remove()
    o.step()
    assert seen == ["before", "after", "everywhere", "before"]
    o.register_state_dict_post_hook(lambda opt, state: {**state, "more": 1})
    assert o.state_dict()["more"] == 1


class Outer(optim.SGD):
    def step(self, closure=None):
        return super().step(closure)


class Beside:
    def step(self, closure=None):
        self.went_by = True
        return super().step(closure)


class Mixed(Beside, optim.SGD):
    pass


@pytest.mark.parametrize("kind", [Outer, Mixed])
def test_hooks_run_once_around_the_outermost_step(kind):
    o = kind([parameter(1.0)], lr=0.1)
    seen = []
    o.register_step_pre_hook(lambda opt, args, kwargs: seen.append(hasattr(opt, "went_by")))
    o.register_step_post_hook(lambda opt, args, kwargs: seen.append(opt.param_groups[0]["lr"]))
    o.step()
    assert seen == [False, 0.1]
    assert o.param_groups[0]["params"][0].item() == pytest.approx(0.9)


class Listening:
    """Writes down the blocks."""

    def __init__(self):
        self.told = []

    def block_begins(self, name):
        self.told.append(name)
        return name

    def block_ends(self, token):
        self.told.append("end of " + token)


def test_steps_are_blocks_of_those_who_look_on():
    o = Outer([parameter()], lr=0.1)
    o.step()
    look = Listening()
    blocks.LISTENERS.append(look)
    try:
        o.register_step_pre_hook(lambda *_: look.told.append("hook"))
        o.zero_grad()
        o.step()
        broken = optim.SGD([parameter()], lr=0.1)
        with pytest.raises(ZeroDivisionError):
            broken.step(lambda: 1 / 0)
    finally:
        blocks.LISTENERS.remove(look)
    o.step()
    assert look.told == [
        "Optimizer.zero_grad#Outer.zero_grad",
        "end of Optimizer.zero_grad#Outer.zero_grad",
        "Optimizer.step#Outer.step",
        "hook",
        "end of Optimizer.step#Outer.step",
        "Optimizer.step#SGD.step",
        "end of Optimizer.step#SGD.step",
        "hook",
    ]


def test_repr_and_pickle():
    o = optim.SGD([parameter()], lr=0.1, momentum=0.9)
    assert (
        repr(o)
        == "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach:"
        " None\n"
        "    fused: None\n    lr: 0.1\n    maximize: False\n    momentum: 0.9\n"
        "    nesterov: False\n"
        "    weight_decay: 0\n)"
    )
    o.step()
    c = pickle.loads(pickle.dumps(o))
    (p,) = c.param_groups[0]["params"]
    assert c.state[p]["momentum_buffer"].tolist() == [1.0, 1.0]


def test_betas_that_are_no_floats() -> None:
    p = nn.Parameter(torch.ones(1))
    for made in (optim.Adam, optim.AdamW):
        with pytest.raises(ValueError, match="both floats or both Tensors"):
            made([p], betas=(0, 0.99))
