"""torchlab.nn._state: saving and loading."""

from __future__ import annotations

from collections import OrderedDict

import pytest

import torchlab as torch
from torchlab import nn


def net():
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))


KEYS = [
    "0.weight",
    "0.bias",
    "1.weight",
    "1.bias",
    "1.running_mean",
    "1.running_var",
    "1.num_batches_tracked",
]


def values(m):
    return {k: v.tolist() for k, v in m.state_dict().items()}


def test_keys_metadata_and_sharing():
    m = net()
    state = m.state_dict(prefix="a.")
    assert list(state) == ["a." + k for k in KEYS]
    assert state._metadata == OrderedDict(
        [("a", {"version": 1}), ("a.0", {"version": 1}), ("a.1", {"version": 2})]
    )
    assert state["a.0.weight"].data_ptr() == m[0].weight.data_ptr()
    assert not state["a.0.weight"].requires_grad
    assert m.state_dict(keep_vars=True)["0.weight"] is m[0].weight


def test_round_trip():
    a, b = net(), net()
    a(torch.tensor([[1.0, 2.0], [3.0, 5.0]]))
    assert repr(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    assert values(a) == values(b)
    assert b[0].weight.requires_grad


def test_a_load_that_fails_changes_nothing_and_lists_everything():
    m = net()
    before = values(m)
    state = net().state_dict()
    del state["0.bias"]
    state["zzz"] = torch.ones(1)
    state["1.bias"] = torch.ones(3)
    with pytest.raises(RuntimeError) as caught:
        m.load_state_dict(state)
    assert (
        str(caught.value) == "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "0.bias". \n'
        '\tUnexpected key(s) in state_dict: "zzz". \n'
        "\tsize mismatch for 1.bias: copying a param with shape torch.Size([3]) from checkpoint, "
        "the shape in current model is torch.Size([2])."
    )
    assert values(m) == before


def test_not_strict():
    m = net()
    keys = m.load_state_dict({"0.bias": torch.tensor([7.0, 8.0]), "x": torch.ones(1)}, strict=False)
    assert m[0].bias.tolist() == [7.0, 8.0]
    assert keys.unexpected_keys == ["x"] and keys.missing_keys == [
        "0.weight",
        "1.weight",
        "1.bias",
        "1.running_mean",
        "1.running_var",
    ]
    assert str(keys).startswith("_IncompatibleKeys(missing_keys=")


def test_wrong_types():
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'int'>"):
        net().load_state_dict(3)
    state = net().state_dict()
    state["0.bias"] = 3
    with pytest.raises(RuntimeError, match='named "0.bias", expected torch.Tensor'):
        net().load_state_dict(state)


def test_assign_takes_the_tensors_themselves():
    with torch.device("meta"):
        m = nn.Linear(2, 1)
    given = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    m.load_state_dict(given, assign=True)
    assert m.weight.data_ptr() == given["weight"].data_ptr() and m.weight.requires_grad
    assert m(torch.ones(1, 2)).item() == 2.0


def test_values_are_converted_to_the_parameters_type():
    m = nn.Linear(1, 1).double()
    m.load_state_dict({"weight": torch.tensor([[0.5]]), "bias": torch.tensor([1.0])})
    assert m.weight.dtype is torch.float64 and m.weight.item() == 0.5


def test_old_batch_norm_without_a_count_loads():
    m = nn.BatchNorm1d(2)
    state = m.state_dict()
    del state["num_batches_tracked"]
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        m.load_state_dict(state)
    state._metadata[""]["version"] = 1
    m.load_state_dict(state)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = 0

    def get_extra_state(self):
        return self.seen

    def set_extra_state(self, state):
        self.seen = state


def test_extra_state():
    a, b = nn.Sequential(Counting()), nn.Sequential(Counting())
    a[0].seen = 5
    state = a.state_dict()
    assert dict(state) == {"0._extra_state": 5}
    b.load_state_dict(state)
    assert b[0].seen == 5
    with pytest.raises(RuntimeError, match='Missing key.*"0._extra_state"'):
        b.load_state_dict({})


def test_hooks():
    m = nn.Linear(1, 1)
    m.register_state_dict_post_hook(lambda mod, sd, prefix, meta: sd.pop(prefix + "bias"))
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        m.state_dict()
    m = nn.Linear(1, 1)

    def rename(module, state, prefix, *rest):
        state[prefix + "weight"] = state.pop(prefix + "w")

    m.register_load_state_dict_pre_hook(rename)
    m.load_state_dict({"w": torch.tensor([[4.0]]), "bias": torch.tensor([2.0])})
    assert m.weight.item() == 4.0
    forgive = m.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear())
    m.load_state_dict({"w": torch.tensor([[5.0]])})
    assert (m.weight.item(), m.bias.item()) == (5.0, 2.0)
    forgive.remove()
    m.register_load_state_dict_post_hook(lambda mod, keys: None)
    with pytest.raises(RuntimeError, match="Missing key"):
        m.load_state_dict({"w": torch.tensor([[6.0]])})
    assert m.weight.item() == 5.0


def test_the_class_of_keys_without_partner():
    from torchlab.nn.modules.module import _IncompatibleKeys

    keys = nn.Linear(1, 1).load_state_dict({"weight": torch.zeros(1, 1)}, strict=False)
    assert type(keys) is _IncompatibleKeys
    assert keys == _IncompatibleKeys(missing_keys=["bias"], unexpected_keys=[])


def test_names_that_are_a_modules_own_are_free() -> None:
    class Counted(nn.Linear):
        def __init__(self) -> None:
            super().__init__(1, 1)
            self._persistent = {"a": True}
            self._put = self._has_extra = self._member = self._floats = None
            self._forget = self._check_name = 3

    m = Counted().double()
    m.load_state_dict(Counted().double().state_dict())
    m.register_buffer("b", torch.ones(1))
    m.c = nn.Parameter(torch.ones(1))
    assert m.get_parameter("c") is m.c and m._persistent == {"a": True} and m._forget == 3
