"""The same seeds give the batches that PyTorch's loaders give, in workers too; and pinned memory
warns as there."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import warnings

import pytest

import torchlab
from torchlab.utils import data as ours

torch = pytest.importorskip("torch")
PROGRAM = pathlib.Path(__file__).with_name("loader_programs.py")


def gives(library):
    """Run in a process of its own: it forks workers."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), library], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_same_seeds_same_batches():
    found, wanted = gives("torchlab"), gives("torch")
    assert found.keys() == wanted.keys() and len(found) == 56
    assert {name for name in wanted if found[name] != wanted[name]} == set()
    assert wanted["shuffle_0"] != wanted["shuffle_2"]  # workers have seeds of their own


def told(data, **arguments):
    """What is warned of in two passes, and the batches."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        loader = data.DataLoader(list(range(4)), 2, **arguments)
        batches = [b for _ in range(2) for b in loader]
    texts = [(w.category, str(w.message)) for w in seen if "pin" in str(w.message)]
    return texts, [b.tolist() for b in batches], [b.is_pinned() for b in batches]


@pytest.mark.skipif(torch.accelerator.is_available(), reason="what PyTorch does without one")
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"pin_memory": True},
        {"pin_memory_device": "cuda"},
        {"pin_memory": True, "pin_memory_device": "cuda"},
        {"pin_memory": True, "pin_memory_device": "nonsense"},
        {"pin_memory": True, "persistent_workers": True},
    ],
)
def test_pinned_memory(workers, arguments):
    if "persistent_workers" in arguments:
        arguments = arguments | {"persistent_workers": bool(workers)}
    if workers:
        arguments = arguments | {"num_workers": workers}
    assert told(ours, **arguments) == told(torch.utils.data, **arguments)


@pytest.mark.skipif(torch.accelerator.is_available(), reason="what PyTorch does without one")
def test_pinned_tensors():
    for library in (torchlab, torch):
        x = library.ones(2)
        assert not x.is_pinned() and not x.untyped_storage().is_pinned()
        for pin in (x.pin_memory, x.untyped_storage().pin_memory):
            with pytest.raises(RuntimeError, match="Cannot access accelerator device when none"):
                pin()
        with pytest.raises(RuntimeError, match="pin_memory=True requires a CUDA"):
            library.empty(2, pin_memory=True)
        with pytest.warns(DeprecationWarning, match=r"'device' of Tensor.is_pinned\(\) is depr"):
            assert not x.is_pinned("cuda")
