"""`torch.export` against PyTorch: the same signatures, names, ranges and results."""

from __future__ import annotations

import copy
import warnings

import pytest

import torchlab
from tests.export.programs import models

torch = pytest.importorskip("torch")
pytest.importorskip("torch.export")

OURS, THEIRS = models(torchlab), models(torch)


def numbers(x):
    if isinstance(x, dict):
        return {k: numbers(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [numbers(v) for v in x]
    return x.detach().numpy() if hasattr(x, "detach") else x


def close(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    return abs(a - b).max() < 1e-4 if hasattr(a, "shape") else a == b


def as_ours(x):
    if isinstance(x, dict):
        return {k: as_ours(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(as_ours(v) for v in x)
    return torchlab.from_numpy(x.numpy().copy())


@pytest.mark.parametrize("name", THEIRS)
def test_programs(name):
    ours, theirs = copy.deepcopy(OURS[name][0]), copy.deepcopy(THEIRS[name][0])
    state = {k: torchlab.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()}
    ours.load_state_dict(state)
    args = THEIRS[name][1](3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = torch.export.export(theirs, args, dynamic_shapes=THEIRS[name][2])
    got = torchlab.export.export(ours, as_ours(args), dynamic_shapes=OURS[name][2])
    a, b = got.graph_signature, wanted.graph_signature
    assert [(s.kind.name, s.arg.name, s.target, s.persistent) for s in a.input_specs] == [
        (s.kind.name, s.arg.name, s.target, s.persistent) for s in b.input_specs
    ]
    assert [s.kind.name for s in a.output_specs] == [s.kind.name for s in b.output_specs]
    assert sorted(map(str, got.range_constraints.values())) == sorted(
        map(str, wanted.range_constraints.values())
    )
    assert str(got.call_spec.in_spec) == str(wanted.call_spec.in_spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, reference = got.module(), wanted.module()
        for n in (5, 2):
            args = THEIRS[name][1](n)
            assert close(numbers(made(*as_ours(args))), numbers(reference(*args)))
