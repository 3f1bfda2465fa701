"""`torchlab.distributed`: the group of one process."""

from __future__ import annotations

import warnings
from datetime import timedelta

import pytest

import torchlab as torch
from torchlab import distributed as dist
from torchlab.distributed import constants, distributed_c10d
from torchlab.distributed.optim import ZeroRedundancyOptimizer


@pytest.fixture
def world():
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_names_of_backends() -> None:
    assert dist.Backend("GLOO") == dist.Backend.GLOO == "gloo" and type(dist.Backend("x")) is str
    assert dist.Backend.default_device_backend_map["cpu"] == "gloo"
    assert dist.Backend.backend_capability["nccl"] == ["cuda"]
    with pytest.raises(ValueError, match="must be string-ish"):
        dist.Backend(3)
    assert dist.is_backend_available("GLOO") and not dist.is_backend_available("nccl")


def test_what_there_is_without_a_group() -> None:
    assert constants.default_pg_timeout == timedelta(minutes=30)
    assert dist.GroupMember.WORLD is None and dist.GroupMember.NON_GROUP_MEMBER == -100
    assert dist.get_group_rank(None, 0) == dist.get_global_rank(None, 0) == 0
    with pytest.raises(ValueError, match="has not been initialized"):
        distributed_c10d._get_default_group()
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.gather_object(1, [None])
    assert distributed_c10d.all_reduce is dist.all_reduce


def test_the_local_rank(monkeypatch) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert dist.get_node_local_rank(3) == 3
    with pytest.raises(RuntimeError, match="LOCAL_RANK is not in the environment"):
        dist.get_node_local_rank()
    monkeypatch.setenv("LOCAL_RANK", "2")
    assert dist.get_node_local_rank(3) == 2


def test_members(world) -> None:
    assert dist.GroupMember.WORLD is world is distributed_c10d._get_default_group()
    out = dist.GroupMember.NON_GROUP_MEMBER
    assert dist.get_rank(out) == dist.get_world_size(out) == -1
    assert dist._rank_not_in_group(out) and not dist._rank_not_in_group(None)


def test_objects(world) -> None:
    got = [None]
    dist.gather_object({"a": 1}, got)
    assert got == [{"a": 1}]
    dist.scatter_object_list(got, [5])
    assert got == [5]
    with pytest.raises(ValueError, match="must be specified on destination rank"):
        dist.gather_object(1)
    with pytest.raises(ValueError, match="list of size at least 1"):
        dist.scatter_object_list([], [5])
    with pytest.raises(RuntimeError, match="Incorrect input list size 2"):
        dist.scatter_object_list([None], [5, 6])
    assert dist.monitored_barrier(wait_all_ranks=True) is None


@pytest.mark.parametrize(
    "exchange",
    [
        lambda x, y: dist.all_to_all([y], [x]),
        lambda x, y: dist.all_to_all_single(y, x, [3], [3]),
        lambda x, y: dist.reduce_scatter(y, [x]),
        lambda x, y: dist.reduce_scatter_single(y, x),
        lambda x, y: dist.all_gather_single(y, x, async_op=True).wait(),
    ],
)
def test_a_process_exchanges_with_itself(world, exchange) -> None:
    x, y = torch.arange(3.0), torch.zeros(3)
    exchange(x, y)
    assert y.tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError):
        exchange(x, torch.zeros(1, 3))
    with pytest.raises(RuntimeError):
        exchange(x, torch.zeros(3, dtype=torch.int32))


def test_what_exchanges_refuse(world) -> None:
    x = torch.arange(3.0)
    with pytest.raises(RuntimeError, match="Split sizes doesn't match total dim 0 size"):
        dist.all_to_all_single(x, x, [2], [3])
    with pytest.raises(TypeError, match="Expected parameter `output_tensor_list`"):
        dist.all_to_all(3, [x])
    with pytest.raises(TypeError, match="Expected parameter `input_list`"):
        dist.reduce_scatter(x, 3)


def test_earlier_names_warn(world) -> None:
    x, y = torch.arange(3.0), torch.zeros(3)
    with pytest.warns(FutureWarning, match="Please use `torch.distributed.all_gather_single`"):
        dist.all_gather_into_tensor(y, x)
    with pytest.warns(FutureWarning, match="Please use `torch.distributed.reduce_scatter_single`"):
        dist.reduce_scatter_tensor(y, x)
    assert y.tolist() == [0, 1, 2]


def model():
    torch.manual_seed(0)
    return torch.nn.Linear(2, 2)


def test_the_optimizer_steps_as_its_class_does(world) -> None:
    nets = model(), model()
    a = ZeroRedundancyOptimizer(nets[0].parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    b = torch.optim.SGD(nets[1].parameters(), lr=0.1, momentum=0.9)
    plans = [torch.optim.lr_scheduler.ExponentialLR(o, 0.5) for o in (a, b)]
    for _ in range(3):
        for net, optimizer, plan in zip(nets, (a, b), plans, strict=True):
            optimizer.zero_grad()
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            plan.step()
    assert torch.equal(nets[0].weight, nets[1].weight)
    with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
        a.state_dict()
    a.consolidate_state_dict()
    state = a.state_dict()
    assert str(state) == str(b.state_dict()) and state["param_groups"][0]["lr"] == 0.0125
    a.load_state_dict(state)
    assert a.state is a.optim.state
    assert a.step(lambda: 3.0) == 3.0


def test_the_optimizer_takes_more_parameters(world) -> None:
    a = ZeroRedundancyOptimizer(model().parameters(), torch.optim.Adam, lr=0.1)
    p = torch.nn.Parameter(torch.ones(1))
    a.add_param_group({"params": [p], "lr": 0.3})
    p.grad = torch.ones(1)
    a.step()
    assert len(a.param_groups) == len(a.optim.param_groups) == 2
    assert p.item() == pytest.approx(0.7) and a.param_groups[1]["betas"] == (0.9, 0.999)
    given = [{"params": p, "lr": 0.2}]
    assert ZeroRedundancyOptimizer(given, torch.optim.SGD, lr=0.1).param_groups[0]["lr"] == 0.2


def test_what_the_optimizer_refuses(world) -> None:
    sgd, one = torch.optim.SGD, torch.ones(1)
    for params, error, text in [
        ([], ValueError, "got an empty parameter list"),
        (3, TypeError, "but got int"),
        ([3], TypeError, "iterable of Tensors or dicts"),
        (one, TypeError, "but got torch.FloatTensor"),
        ([one, one.double()], ValueError, "torch.FloatTensor and torch.DoubleTensor"),
    ]:
        with pytest.raises(error, match=text):
            ZeroRedundancyOptimizer(params, sgd, lr=0.1)


def test_the_optimizer_needs_a_group() -> None:
    with pytest.raises(ValueError, match="has not been initialized"):
        ZeroRedundancyOptimizer(model().parameters(), torch.optim.SGD, lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not dist.is_initialized()
