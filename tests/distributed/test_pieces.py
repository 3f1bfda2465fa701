"""What lies in pieces on several processes, of which torchlab has one: the names are there, and
none of it is ever made."""

from __future__ import annotations

import pytest

import torchlab as tl
from torchlab.distributed import fsdp
from torchlab.distributed.algorithms.join import Join, Joinable, JoinHook
from torchlab.distributed.checkpoint import hf_storage
from torchlab.distributed.fsdp.wrap import (
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
)
from torchlab.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
)
from torchlab.distributed.tensor._utils import compute_local_shape_and_global_offset


def test_placements():
    """As PyTorch 2.13 prints and compares them."""
    assert [repr(p) for p in (Shard(1), Replicate(), Partial(), Partial("avg"))] == [
        "Shard(dim=1)", "Replicate()", "Partial(sum)", "Partial(avg)",
    ]  # fmt: skip
    assert [str(p) for p in (Shard(1), Replicate(), Partial())] == ["S(1)", "R", "P(sum)"]
    assert Shard(0) == Shard(0) != Shard(1) and Partial() == Partial("sum")
    assert Shard(1).is_shard() and Shard(1).is_shard(1) and not Shard(1).is_shard(0)
    assert Replicate().is_replicate() and Partial("avg").is_partial()
    assert len({Shard(0), Shard(0), Replicate()}) == 2
    assert compute_local_shape_and_global_offset((4, 3), None, [Shard(0)]) == ((4, 3), (0, 0))


@pytest.mark.parametrize(
    "make",
    [
        lambda: DTensor(), lambda: DTensor.from_local(tl.ones(1)),
        lambda: distribute_tensor(tl.ones(1)), lambda: distribute_module(tl.nn.Linear(1, 1)),
        lambda: fsdp.FullyShardedDataParallel(tl.nn.Linear(1, 1)), lambda: fsdp.FSDPModule(),
        lambda: fsdp.fully_shard(tl.nn.Linear(1, 1)),
        lambda: hf_storage.HuggingFaceStorageWriter("x"),
        lambda: hf_storage.HuggingFaceStorageReader("x"),
    ],
)  # fmt: skip
def test_nothing_is_made(make):
    with pytest.raises(RuntimeError, match="one process"):
        make()
    assert not isinstance(tl.ones(1), DTensor)


def test_a_missing_part_says_what_to_do():
    with pytest.raises(AttributeError, match="torch.save"):
        tl.distributed.checkpoint.save  # noqa: B018


def test_policies():
    layer, model = tl.nn.TransformerEncoderLayer(4, 2), tl.nn.Linear(2, 2)
    kinds = {tl.nn.TransformerEncoderLayer}
    assert transformer_auto_wrap_policy(layer, False, 0, kinds)
    assert not transformer_auto_wrap_policy(model, False, 0, kinds)
    assert transformer_auto_wrap_policy(model, True, 0, kinds)
    assert size_based_auto_wrap_policy(model, False, 10, 10)
    assert not size_based_auto_wrap_policy(model, False, 9, 10)
    assert not size_based_auto_wrap_policy(tl.nn.ModuleList(), False, 10, 10)


def test_join_of_one_process():
    log = []

    class Hook(JoinHook):
        def post_hook(self, is_last_joiner):
            log.append(is_last_joiner)

    class Model(Joinable):
        join_device = join_process_group = None

        def __init__(self):
            super().__init__()

        def join_hook(self, **kwargs):
            log.append(kwargs)
            return Hook()

    with Join([Model()], divide=2):
        log.append("steps")
    assert log == [{"divide": 2}, "steps", True]
    with pytest.raises(ValueError):
        Join([])
    with pytest.raises(TypeError):
        Join([1])
