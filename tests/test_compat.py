"""The `torch` alias."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types

import pytest

from torchlab import compat


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch as if it had not been imported, and everything as it was afterwards."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    # Through monkeypatch, so that what a test sets is undone before these come back.
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    yield
    compat.uninstall()


@pytest.fixture
def alias(no_torch: None) -> None:
    compat.install()


def test_torch_is_torchlab(alias: None) -> None:
    assert importlib.import_module("torch") is importlib.import_module("torchlab")


def test_submodules_are_the_same_objects(alias: None) -> None:
    one = importlib.import_module("torch._core.layout")
    other = importlib.import_module("torchlab._core.layout")
    assert one is other
    assert one.__name__ == "torchlab._core.layout"
    assert one.__spec__.name == "torchlab._core.layout"


def test_a_plain_module_does_not_become_a_package(alias: None) -> None:
    module = importlib.import_module("torch._core.events")
    assert not hasattr(module, "__path__")


def test_from_import_and_as(alias: None) -> None:
    namespace: dict[str, object] = {}
    exec(
        "from torch._core import events\nfrom torch._core.events import Topic as T\n"
        "import torch._core.lazy as z\n",
        namespace,
    )
    events = importlib.import_module("torchlab._core.events")
    assert namespace["events"] is events
    assert namespace["T"] is events.Topic
    assert namespace["z"] is importlib.import_module("torchlab._core.lazy")


def test_what_is_missing_is_named(alias: None) -> None:
    says = r"no 'torchlab\.nonesuch'.*'torch\.nonesuch'"
    with pytest.raises(ModuleNotFoundError, match=says) as e:
        importlib.import_module("torch.nonesuch.deeper")
    assert e.value.name == "torch.nonesuch"
    with pytest.raises(ModuleNotFoundError, match=r"torch\._core\.events\.deeper"):
        importlib.import_module("torch._core.events.deeper")
    with pytest.raises(ImportError, match="nonesuch"):
        exec("from torch import nonesuch")


def test_an_error_inside_a_module_is_not_called_missing(
    alias: None, monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    (tmp_path / "fails_inside.py").write_text("import not_installed_anywhere\n")
    core = importlib.import_module("torchlab._core")
    monkeypatch.setattr(core, "__path__", [*core.__path__, str(tmp_path)])
    with pytest.raises(ModuleNotFoundError) as e:
        importlib.import_module("torch._core.fails_inside")
    assert e.value.name == "not_installed_anywhere"


def test_other_names_are_left_alone(alias: None) -> None:
    finder = next(f for f in sys.meta_path if isinstance(f, compat.TorchAlias))
    assert finder.find_spec("torchvision") is None
    assert finder.find_spec("torchlab.nn") is None
    assert finder.find_spec("json") is None


def test_install_twice_is_once_and_uninstall_takes_all_back(no_torch: None) -> None:
    before = list(sys.meta_path)
    compat.install()
    compat.install()
    assert len(sys.meta_path) == len(before) + 1
    importlib.import_module("torch._core.events")
    compat.uninstall()
    compat.uninstall()
    assert sys.meta_path == before
    assert not any(name.split(".")[0] == "torch" for name in sys.modules)
    assert "torchlab._core.events" in sys.modules


def test_block(no_torch: None) -> None:
    with compat.torch_alias():
        with compat.torch_alias():
            importlib.import_module("torch")
        assert importlib.import_module("torch._core.lazy")
    assert "torch" not in sys.modules


def test_a_loaded_pytorch_is_refused(no_torch: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    before = list(sys.meta_path)
    with pytest.raises(ImportError, match="already imported"):
        compat.install()
    assert sys.meta_path == before


SPAWNING = """
import multiprocessing

import torch
import torch.nn.functional as F


def work(x):
    return torch.__name__, F.relu(x).tolist()


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(work, (torch.tensor([-1.0, 2.0]),)))
"""


def test_spawned_processes_have_the_alias(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SPAWNING)
    done = subprocess.run(
        [sys.executable, "-m", "torchlab", "run", str(script)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == "('torchlab', [0.0, 2.0])", done.stderr


FACES = """
import torch, torch.cuda, torch.nn as nn, torch.nn.functional as F, torch.nn.parallel, torch.optim
import torch.backends.cudnn as cudnn, torch.backends.mkldnn, torch.backends.cuda, torch.backends.mps
import torch.distributed as dist, torch.multiprocessing as mp, torch.utils.data.distributed
import torch.cuda.amp, torch.onnx, torch.version, torch.accelerator, torch.linalg, torch.fft
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DataParallel, DistributedDataParallel as DDP
from torch.nn.utils.rnn import pack_padded_sequence
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from torch.utils.data.dataloader import DataLoader as D2
cudnn.benchmark = True
torch.backends.cudnn.deterministic = True
torch.backends.cuda.matmul.allow_tf32 = True
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
for name in ("torch.nn", "torch.backends.cudnn", "torch.cuda.amp"):
    import sys
    assert sys.modules[name] is sys.modules["torchlab" + name[5:]], name
for code in ("import torch.no_such_part", "from torch import no_such_name", "torch.no_such_name",
             "torch.cuda.no_such_name"):
    try:
        exec(code)
    except (ImportError, AttributeError) as e:
        assert "torchlab" in str(e) and "no_such" in str(e), str(e)
    else:
        raise SystemExit(code)
print("fine", device)
"""


def test_what_programs_import(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(FACES)
    done = subprocess.run(
        [sys.executable, "-m", "torchlab", "run", str(script)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.startswith("fine"), done.stderr
