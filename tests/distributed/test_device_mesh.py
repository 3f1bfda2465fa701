"""torch.distributed for one process: meshes, functional collectives, rpc."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import torchlab as torch
import torchlab.distributed as dist
import torchlab.distributed._functional_collectives as fc
from torchlab.distributed import rpc
from torchlab.distributed.device_mesh import DeviceMesh, init_device_mesh


@pytest.fixture(autouse=True)
def group() -> Iterator[None]:
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_mesh() -> None:
    m = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    assert repr(m) == "DeviceMesh((dp=1, tp=1), 'cpu', stride=((), ()))"
    assert (m.ndim, m.shape, m.size(), m.size(1)) == (2, (1, 1), 1, 1)
    assert m.mesh.dtype is torch.int32 and m.get_coordinate() == (0, 0)
    assert (m.get_rank(), m.get_local_rank("tp"), m.get_group("dp").size()) == (0, 0, 1)
    assert repr(m["dp"]) == "DeviceMesh((dp=1), 'cpu', stride=((),))" and m["dp", "tp"] == m
    assert m == init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp")) and m != m["dp"]
    n = init_device_mesh("cpu", (1,))
    assert repr(n) == "DeviceMesh((1,), 'cpu', stride=((),))" and n.get_local_rank() == 0
    assert len(m.get_all_groups()) == 2 and DeviceMesh("cpu", [0]) == n


def test_mesh_errors() -> None:
    m = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    with pytest.raises(RuntimeError, match="bigger than default world size 1, but found 2"):
        init_device_mesh("cpu", (2,))
    with pytest.raises(RuntimeError, match="should have same length"):
        init_device_mesh("cpu", (1, 1), mesh_dim_names=("a",))
    with pytest.raises(RuntimeError, match="must be unique"):
        init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "a"))
    with pytest.raises(RuntimeError, match="Device type with index"):
        init_device_mesh("cpu:0", (1,))
    with pytest.raises(RuntimeError, match="have 2 dimensions"):
        m.get_group()
    with pytest.raises(KeyError, match="Invalid mesh_dim_names"):
        m["x"]
    with pytest.raises(KeyError, match="does not exist"):
        m.get_group("x")
    with pytest.raises(RuntimeError, match="without mesh_dim_names"):
        init_device_mesh("cpu", (1,))["x"]


def test_functional_collectives() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    world = dist.group.WORLD
    mesh = init_device_mesh("cpu", (1, 1))
    for made in (
        fc.all_reduce(x, "sum", world), fc.all_reduce(x, "sum", (mesh, 0)),
        fc.all_gather_tensor(x, 1, world), fc.reduce_scatter_tensor(x, "sum", 0, world),
        fc.all_to_all_single(x, None, None, world), fc.permute_tensor(x, [0], world),
        fc.broadcast(x, 0, world), *fc.all_reduce_coalesced([x, x], "sum", world),
    ):  # fmt: skip
        assert made is not x and fc.wait_tensor(made).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="Split sizes doesn't match total dim 0 size"):
        fc.all_to_all_single(x, [1], [1], world)
    w = x.clone().requires_grad_()
    fc.all_gather_tensor_autograd(w, 0, world).sum().backward()
    assert w.grad is not None and w.grad.tolist() == torch.ones(2, 3).tolist()
    with pytest.raises(ValueError, match="ProcessGroup or a DeviceMesh"):
        fc.all_reduce(x, "sum", 3)


def test_there_is_no_rpc() -> None:
    assert rpc.is_available() is False and not hasattr(rpc, "api")
