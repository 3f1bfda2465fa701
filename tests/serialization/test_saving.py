"""The file under a name is always whole; options of save and load; places of storages."""

from __future__ import annotations

import errno
import io
import mmap
import os
import signal
import stat
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import torchlab as torch
from tests.serialization.tools import saved
from torchlab.serialization import atomic

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and signals of POSIX")


def leftovers(folder):
    return [x for x in os.listdir(folder) if x.endswith(".tmp")]


def test_what_cannot_be_pickled_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.ones(2), path)
    with pytest.raises((AttributeError, TypeError, Exception), match="lambda"):
        torch.save({"a": torch.zeros(2), "f": lambda: 1}, path)
    assert torch.load(path).tolist() == [1, 1] and not leftovers(tmp_path)


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.pt"
    torch.save(torch.ones(2), path)

    def full(handle, mode):
        file = os.fdopen(handle, mode)

        class Full:
            written = 0

            def write(self, data):
                self.written += len(data)
                if self.written > 3000:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return file.write(data)

            def __enter__(self):
                return self

            def __exit__(self, *exc):
                file.close()

        return Full()

    class Os:
        def __getattr__(self, name):
            return full if name == "fdopen" else getattr(os, name)

    monkeypatch.setattr(atomic, "os", Os())
    with pytest.raises(RuntimeError, match="No space left on device"):
        torch.save(torch.zeros(5000), path)
    monkeypatch.undo()
    assert torch.load(path).tolist() == [1, 1] and not leftovers(tmp_path)


@posix
def test_dying_while_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.ones(2), path)
    program = f"""
        import os, signal
        import torchlab as torch
        from torchlab.serialization import saving
        def die(storage):
            os.kill(os.getpid(), signal.SIGKILL)
        saving.host_bytes = die
        torch.save(torch.zeros(100000), {str(path)!r})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=os.environ)
    assert done.returncode == -signal.SIGKILL
    assert torch.load(path).tolist() == [1, 1]


@posix
def test_permissions_are_those_of_open(tmp_path):
    before = os.umask(0o027)
    try:
        torch.save(1, tmp_path / "new")
        assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o640
        os.chmod(tmp_path / "new", 0o604)
        torch.save(2, tmp_path / "new")
        assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o604
    finally:
        os.umask(before)


@posix
def test_links_are_followed_and_pipes_written(tmp_path):
    torch.save(1, tmp_path / "real")
    os.symlink(tmp_path / "real", tmp_path / "link")
    torch.save(2, tmp_path / "link")
    assert os.path.islink(tmp_path / "link") and torch.load(tmp_path / "real") == 2
    torch.save(torch.ones(2), "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
        torch.save(1, tmp_path / "no" / "x")
    with pytest.raises(RuntimeError, match="Is a directory"):
        torch.save(1, tmp_path)
    for f in (3, None):
        with pytest.raises(AttributeError, match="'write' attribute"):
            torch.save(1, f)


def test_paths_of_all_kinds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("plain", "é ü.pt", tmp_path / "p.pt", str(tmp_path / "s.tar.gz")):
        torch.save(torch.ones(1), path)
        assert torch.load(path).tolist() == [1] and torch.load(path, mmap=True).tolist() == [1]


# ---- memory maps --------------------------------------------------------------------------------


def test_a_map_is_private(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"a": torch.arange(6.0), "b": torch.empty(0)}, path)
    state = torch.load(path, mmap=True)
    assert isinstance(state["a"]._s.owner.base, np.ndarray)
    state["a"][0] = 100
    assert torch.load(path)["a"][0] == 0 and state["a"][0] == 100
    assert state["b"].shape == (0,)


def test_a_shared_map_writes_through(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.arange(6.0), path)
    with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        t = torch.load(path, mmap=True)
        t[0] = 100
    t._s.owner.base.flush() if hasattr(t._s.owner.base, "flush") else None
    assert torch.load(path)[0] == 100
    assert torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with pytest.raises(ValueError, match="MAP_PRIVATE"):
        torch.serialization.set_default_mmap_options(77)


def test_mapped_tensors_live_longer_than_the_name(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.ones(1000), path)
    t = torch.load(path, mmap=True)
    torch.save(torch.zeros(1000), path)  # a new file takes the name
    assert t.sum() == 1000


def test_skip_data(tmp_path):
    path = tmp_path / "x.pt"
    t = torch.ones(4)
    with torch.serialization.skip_data():
        torch.save(t, path)
    size = os.path.getsize(path)
    assert torch.load(path).tolist() == [0, 0, 0, 0]
    torch.save(t, path)
    assert os.path.getsize(path) == size
    with torch.serialization.skip_data():
        assert torch.load(path).shape == (4,)
    assert torch.load(path).tolist() == [1, 1, 1, 1]


# ---- places -------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", [False, True])
def test_map_location(old):
    base = torch.arange(4.0)
    data = saved([base, base[1:]], _use_new_zipfile_serialization=not old)

    def load(where):
        return torch.load(io.BytesIO(data), map_location=where)

    seen = []
    for where in (
        "cpu",
        torch.device("cpu"),
        {"cpu": "cpu"},
        {},
        lambda s, loc: s,
        lambda s, loc: seen.append((type(s), loc)),
        b"cpu",
    ):
        assert load(where)[1].tolist() == [1, 2, 3]
    assert seen == [(torch.UntypedStorage, "cpu")]
    a, b = load("meta")
    assert a.is_meta and b.shape == (3,)
    for where in ("sim", "sim:0", torch.device("sim"), {"cpu": "sim:0"}):
        a, b = load(where)
        assert a.device == torch.device("sim", 0) and b.tolist() == [1, 2, 3]
        a[1] = 9
        assert b[0] == 9
    for where, match in (("cuda", "CUDA device"), ("foo", "tagged with foo"), ("sim:77", "sim")):
        if where == "cuda" and torch.serialization.locations._available("cuda"):
            continue
        with pytest.raises(RuntimeError, match=match):
            load(where)
    with pytest.raises(TypeError, match="not callable"):
        load(3)


def test_tensors_of_the_simulated_accelerator():
    t = torch.arange(4.0).to("sim")
    data = saved([t, t[2:]])
    a, b = torch.load(io.BytesIO(data))
    assert a.device.type == "sim" and b.tolist() == [2, 3]
    a[2] = 7
    assert b[0] == 7
    assert torch.load(io.BytesIO(data), map_location="cpu")[0].device.type == "cpu"


def test_register_package():
    from torchlab.serialization import locations

    before = list(locations._packages)
    try:
        torch.serialization.register_package(
            1,
            lambda s: "moon" if s.nbytes() == 12 else None,
            lambda s, where: s if where == "moon" else None,
        )
        assert torch.serialization.location_tag(torch.ones(3).untyped_storage()) == "moon"
        data = saved(torch.ones(3))
        assert b"moon" in data and torch.load(io.BytesIO(data)).tolist() == [1, 1, 1]
    finally:
        locations._packages[:] = before
    with pytest.raises(RuntimeError, match="tagged with moon"):
        torch.load(io.BytesIO(data))
    with pytest.raises(TypeError):
        torch.serialization.register_package("first", print, print)


# ---- options ------------------------------------------------------------------------------------


def test_names_in_files():
    net = torch.nn.Sequential(torch.nn.Linear(1, 1))
    unsafe = torch.serialization.get_unsafe_globals_in_checkpoint
    assert unsafe(io.BytesIO(saved(net.state_dict()))) == []
    expected = ["torch.nn.modules.container.Sequential", "torch.nn.modules.linear.Linear"]
    for protocol in (2, 4):
        assert unsafe(io.BytesIO(saved(net, pickle_protocol=protocol))) == expected
    with torch.serialization.safe_globals([torch.nn.Linear]):
        assert unsafe(io.BytesIO(saved(net))) == expected[:1]
    with pytest.raises(ValueError, match="torch.save"):
        unsafe(io.BytesIO(saved(net, _use_new_zipfile_serialization=False)))


def test_safe_globals():
    s = torch.serialization
    assert s.get_safe_globals() == []
    s.add_safe_globals([torch.nn.Linear, (torch.nn.ReLU, "other.Name")])
    assert s.get_safe_globals() == [torch.nn.Linear, (torch.nn.ReLU, "other.Name")]
    with s.safe_globals([torch.nn.Linear, torch.nn.Tanh]):
        assert len(s.get_safe_globals()) == 3
    assert len(s.get_safe_globals()) == 2
    s.clear_safe_globals()
    assert s.get_safe_globals() == []
    with pytest.raises(ValueError, match="tuple"):
        s.add_safe_globals([(1, 2, 3)])
    with pytest.raises(TypeError):
        s.add_safe_globals(3)


def test_numpy_arrays_when_they_are_allowed():
    a = np.arange(4.0)
    data = saved({"a": a})
    with pytest.raises(Exception, match="numpy"):
        torch.load(io.BytesIO(data))
    allowed = [
        np._core.multiarray._reconstruct, np.ndarray, np.dtype, type(np.dtype(np.float64)),
    ]  # fmt: skip
    with torch.serialization.safe_globals(allowed):
        assert np.array_equal(torch.load(io.BytesIO(data))["a"], a)


def test_forced_by_the_environment(monkeypatch):
    data = saved(torch.nn.Linear(1, 1))
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(Exception, match="Weights only load failed"):
        torch.load(io.BytesIO(data), weights_only=False)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="both"):
        torch.load(io.BytesIO(data))
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    assert type(torch.load(io.BytesIO(data))) is torch.nn.Linear


def test_names_that_torchlab_has_not():
    data = saved(torch.nn.Linear(1, 1)).replace(
        b"torch.nn.modules.linear\nLinear", b"torch.nn.modules.linear\nLinexr"
    )
    with pytest.raises(AttributeError, match=r"torchlab has no 'torch.nn.modules.linear.Linexr'"):
        torch.load(io.BytesIO(data), weights_only=False)


def test_private_files_that_torchvision_has():
    models = torch.vision.models
    obj = models._utils.IntermediateLayerGetter(torch.nn.Sequential(torch.nn.ReLU()), {"0": "a"})
    data = saved(obj)
    assert b"torchvision.models._utils\nIntermediateLayerGetter" in data
    assert type(torch.load(io.BytesIO(data), weights_only=False)) is type(obj)
    matcher = saved(models.detection._utils.Matcher(0.7, 0.3))
    assert b"torchvision.models.detection._utils\nMatcher" in matcher


def test_vision_is_torchvision_on_disk():
    obj = torch.vision.models.alexnet(num_classes=2), torch.vision.transforms.Resize(4)
    data = saved(obj)
    for name in (b"torchvision.models.alexnet\nAlexNet", b"torchvision.transforms\nResize"):
        assert name in data
    net, resize = torch.load(io.BytesIO(data), weights_only=False)
    assert type(net) is type(obj[0]) and resize.size == 4
    old = data.replace(b"torchvision.transforms\nResize", b"torchvision.transformz\nResize")
    with pytest.raises(AttributeError, match=r"no 'torchvision.transformz.Resize'"):
        torch.load(io.BytesIO(old), weights_only=False)
