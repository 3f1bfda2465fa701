"""The `torch` alias."""

from __future__ import annotations

import importlib
import multiprocessing
import pickle
import subprocess
import sys
import types
from importlib import metadata
from typing import Any

import pytest

from torchlab import compat


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch and torchvision as if they had not been imported, and all as it was afterwards."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    # Through monkeypatch, so that what a test sets is undone before these come back.
    for name in [name for name in sys.modules if name.split(".")[0] in compat.ALIASES]:
        monkeypatch.delitem(sys.modules, name)
    yield
    compat.uninstall()


@pytest.fixture
def alias(no_torch: None) -> None:
    compat.install()


def test_torch_is_torchlab(alias: None) -> None:
    torch = importlib.import_module("torch")
    assert torch is importlib.import_module("torchlab")
    assert (torch.__name__, torch.__spec__.name) == ("torch", "torchlab")
    compat.uninstall()
    assert torch.__name__ == "torchlab"


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
    assert finder.find_spec("torchvisions") is None
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
    assert not any(name.split(".")[0] in compat.ALIASES for name in sys.modules)
    assert "torchlab._core.events" in sys.modules


def test_block(no_torch: None) -> None:
    with compat.torch_alias():
        with compat.torch_alias():
            importlib.import_module("torch")
        assert importlib.import_module("torch._core.lazy")
    assert "torch" not in sys.modules


@pytest.mark.parametrize("name", ["torch", "torchvision"])
def test_a_loaded_library_is_refused(
    name: str, no_torch: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    before = list(sys.meta_path)
    with pytest.raises(ImportError, match=f"'{name}' is taken.*already imported"):
        compat.install()
    assert sys.meta_path == before


SPAWNING = """
import multiprocessing
import sys

import torch
import torch.nn.functional as F
import torchvision


def work(x):
    return torch.__spec__.name, torchvision.__spec__.name, F.relu(x).tolist()


if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print(pool.apply(work, (torch.tensor([-1.0, 2.0]),)))
"""


def run(script, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "torchlab", "run", str(script), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_have_the_alias(tmp_path, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        return
    script = tmp_path / "script.py"
    script.write_text(SPAWNING)
    done = run(script, method)
    assert done.stdout.strip() == "('torchlab', 'torchlab.vision', [0.0, 2.0])", done.stderr


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
    done = run(script)
    assert done.stdout.startswith("fine"), done.stderr


def test_torchvision_is_torchlab_vision(alias: None) -> None:
    namespace: dict[str, Any] = {}
    exec(
        "import torchvision, torchvision.transforms.functional as F, torchvision.models as models\n"
        "from torchvision import datasets, io, ops, transforms, tv_tensors, utils\n"
        "import torchvision.transforms.v2.functional as v2F\n"
        "from torchvision.models.detection import fasterrcnn_resnet50_fpn\n"
        "from torchvision.models.resnet import ResNet\n",
        namespace,
    )
    vision = importlib.import_module("torchlab.vision")
    assert namespace["torchvision"] is vision
    assert (vision.__name__, vision.__spec__.name) == ("torchvision", "torchlab.vision")
    assert namespace["v2F"] is vision.transforms.v2.functional
    for name in ("datasets", "io", "models", "ops", "transforms", "tv_tensors", "utils"):
        assert namespace[name] is getattr(vision, name)
        assert importlib.import_module(f"torchvision.{name}") is namespace[name]
    assert namespace["F"] is vision.transforms.functional
    assert namespace["fasterrcnn_resnet50_fpn"] is vision.models.detection.fasterrcnn_resnet50_fpn
    assert tuple(int(part) for part in vision.__version__.split(".")) >= (0, 28)
    assert vision.__version__ == importlib.import_module("torchvision.version").__version__


def test_a_module_does_not_take_the_name_of_a_function(alias: None) -> None:
    from_file: dict[str, Any] = {}
    exec(
        "import torchvision\nfrom torchvision.models.googlenet import GoogLeNet\n"
        "import torchvision.models.alexnet\nimport torchvision.models.video.s3d as s3d\n",
        from_file,
    )
    models = from_file["torchvision"].models
    assert from_file["GoogLeNet"] is models.GoogLeNet
    for function in (models.googlenet, models.alexnet, models.video.s3d, from_file["s3d"]):
        assert isinstance(function, types.FunctionType)


def test_pickles_name_the_same_objects(alias: None) -> None:
    made = importlib.import_module("torchvision.transforms").Resize(3)
    there = pickle.dumps(made)
    assert b"torchlab.vision" in there
    assert type(pickle.loads(there)) is type(made)
    written = b"ctorchvision.models.resnet\nResNet\n."  # by torchvision itself
    resnet = importlib.import_module("torchlab.vision.models.resnet")
    assert pickle.loads(written) is resnet.ResNet


def test_what_is_missing_of_torchvision_is_named(alias: None) -> None:
    says = r"no 'torchlab\.vision\.nonesuch'.*'torchvision\.nonesuch'.*of torchvision is missing"
    with pytest.raises(ModuleNotFoundError, match=says):
        importlib.import_module("torchvision.nonesuch")
    with pytest.raises(ImportError, match="nonesuch"):
        exec("from torchvision import nonesuch")
    with pytest.raises(AttributeError, match="'nonesuch'.*torchvision is missing"):
        _ = importlib.import_module("torchvision").nonesuch
    with pytest.raises(ImportError, match="nonesuch"):
        exec("from torchvision.models import nonesuch")


def test_parts_of_torchvision_are_loaded_when_asked_for(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, torchvision\n"
        "def loaded():\n"
        "    return sorted(m[16:] for m in sys.modules if m.startswith('torchlab.vision.'))\n"
        "print(loaded())\n"
        "torchvision.ops.nms\n"
        "print('ops' in loaded(), 'datasets' in loaded(), 'models' in loaded())\n"
        "assert torchvision.get_image_backend() == 'PIL'\n"
        "torchvision.set_image_backend('PIL')\n"
        "torchvision.disable_beta_transforms_warning()\n"
    )
    done = run(script)
    assert done.stdout == "['version']\nTrue False False\n", done.stderr


def test_libraries_find_the_versions(alias: None) -> None:
    import torch
    import torchvision

    assert metadata.version("torch") == str(torch.__version__)
    assert metadata.version("torchvision") == torchvision.__version__
    found = metadata.distribution("torch")
    assert found.metadata["Name"] == "torch"
    assert (found.requires, found.read_text("RECORD")) == (None, None)
    assert metadata.packages_distributions()["torchvision"][0] == "torchvision"
    compat.uninstall()
    assert not any(type(d).__name__ == "StandIn" for d in metadata.distributions())


def test_the_package_is_an_attribute_of_itself(alias: None) -> None:
    torch = importlib.import_module("torch")
    assert torch.torch is torch and torch.torch.Tensor is torch.Tensor
