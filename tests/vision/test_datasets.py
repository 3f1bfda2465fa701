"""torchlab.vision.datasets on files that the test makes; downloads from a server on this host."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import pickle
import tarfile
import threading

import numpy as np
import pytest

import torchlab as tl
from torchlab.utils.data import DataLoader
from torchlab.vision import datasets as D
from torchlab.vision import transforms as T
from torchlab.vision.datasets.mnist import read_idx
from torchlab.vision.datasets.utils import download_url

Image = pytest.importorskip("PIL.Image")

RNG = np.random.default_rng(0)


def md5(data):
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path):
    """(address, folder) of a server."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}/", folder
        found.shutdown()


def test_fake_data_is_torchvisions():
    """The first bytes were recorded with torchvision 0.28 on PyTorch."""
    before = tl.get_rng_state()
    data = D.FakeData(3, (3, 4, 5), 7, random_offset=2)
    assert [target for _, target in (data[i] for i in range(3))] == [4, 0, 3]
    assert np.asarray(data[0][0]).ravel()[:8].tolist() == [247, 7, 38, 233, 244, 109, 180, 15]
    assert tl.equal(tl.get_rng_state(), before)
    with pytest.raises(IndexError):
        data[3]
    images, targets = next(iter(DataLoader(D.FakeData(6, (3, 4, 5), 7, T.ToTensor()), 6)))
    assert images.shape == (6, 3, 4, 5) and targets.dtype == tl.int64


def folders(root):
    for k, name in enumerate(("cat", "dog")):
        (root / name / "deep").mkdir(parents=True)
        for i in range(2):
            Image.new("L", (4, 3), 10 * k + i).save(root / name / f"{i}.png")
    Image.new("RGB", (4, 3), (1, 2, 3)).save(root / "dog" / "deep" / "z.PNG")
    (root / "cat" / "notes.txt").write_text("no image")


def test_image_folder(tmp_path):
    folders(tmp_path)
    data = D.ImageFolder(tmp_path, transform=T.PILToTensor(), target_transform=lambda t: t + 100)
    assert data.classes == ["cat", "dog"] and data.class_to_idx == {"cat": 0, "dog": 1}
    assert data.targets == [0, 0, 1, 1, 1] and len(data) == 5
    image, target = data[3]
    assert image.shape == (3, 3, 4) and image.unique().tolist() == [11] and target == 101
    assert data[4][0][:, 0, 0].tolist() == [1, 2, 3]
    texts = D.DatasetFolder(tmp_path, str, is_valid_file=lambda p: "notes" in p, allow_empty=True)
    assert [path.endswith("notes.txt") for path, _ in texts] == [True]
    assert repr(data).startswith("Dataset ImageFolder\n    Number of datapoints: 5\n    Root loc")


def test_folders_without_what_is_needed(tmp_path):
    with pytest.raises(FileNotFoundError, match="any class folder"):
        D.ImageFolder(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no valid file for the classes empty"):
        D.ImageFolder(tmp_path)
    assert len(D.ImageFolder(tmp_path, allow_empty=True)) == 0
    with pytest.raises(ValueError, match="at the same time"):
        D.DatasetFolder(tmp_path, str)
    with pytest.raises(ValueError, match="Only transforms or"):
        D.VisionDataset(tmp_path, transforms=lambda a, b: (a, b), transform=abs)


def idx(array, code=8):
    shape = np.asarray(array.shape, ">i4").tobytes()
    return bytes([0, 0, code, array.ndim]) + shape + array.tobytes()


def small_mnist():
    """Names and contents of the four files: 5 images for training, 2 for tests."""
    files = {}
    for part, count in (("train", 5), ("t10k", 2)):
        images = RNG.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        files[f"{part}-images-idx3-ubyte"] = images
        files[f"{part}-labels-idx1-ubyte"] = RNG.integers(0, 10, count, dtype=np.uint8)
    return files


def test_mnist_reads_idx_files(tmp_path):
    files = small_mnist()
    with pytest.raises(RuntimeError, match="download=True"):
        D.MNIST(tmp_path)
    for cls in (D.MNIST, D.FashionMNIST, D.KMNIST):
        raw = tmp_path / cls.__name__ / "raw"
        raw.mkdir(parents=True)
        for name, array in files.items():
            (raw / name).write_bytes(idx(array))
        data = cls(tmp_path, train=False)
        np.testing.assert_array_equal(data.data.numpy(), files["t10k-images-idx3-ubyte"])
        assert data.targets.tolist() == files["t10k-labels-idx1-ubyte"].tolist()
        image, target = data[1]
        assert image.mode == "L" and target == data.targets[1] and len(data.classes) == 10
        np.testing.assert_array_equal(np.asarray(image), files["t10k-images-idx3-ubyte"][1])
    assert "Split: Test" in repr(data)


@pytest.mark.parametrize(("code", "kind"), [(9, "i1"), (11, ">i2"), (12, ">i4"), (13, ">f4")])
def test_idx_types(tmp_path, code, kind):
    array = np.arange(6).reshape(2, 3).astype(kind)
    (tmp_path / "a").write_bytes(idx(array, code))
    found = read_idx(tmp_path / "a")
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype.newbyteorder("=")


def test_idx_files_that_are_none(tmp_path):
    (tmp_path / "a").write_bytes(b"no idx file")
    with pytest.raises(ValueError, match="no IDX file"):
        read_idx(tmp_path / "a")
    (tmp_path / "a").write_bytes(idx(np.zeros((2, 3), np.uint8))[:-1])
    with pytest.raises(ValueError, match="17 bytes"):
        read_idx(tmp_path / "a")


def test_mnist_downloads_with_checksum(tmp_path, server):
    address, folder = server
    files = small_mnist()
    resources = []
    for name, array in files.items():
        packed = gzip.compress(idx(array))
        (folder / f"{name}.gz").write_bytes(packed)
        resources.append((f"{name}.gz", md5(packed)))

    class Small(D.MNIST):
        mirrors = [address + "missing/", address]

    Small.resources = resources
    data = Small(tmp_path, download=True)
    np.testing.assert_array_equal(data.data.numpy(), files["train-images-idx3-ubyte"])
    assert data.raw_folder == str(tmp_path / "Small" / "raw")

    class Other(Small):
        mirrors = [address]
        resources = [(name, "0" * 32) for name, _ in Small.resources]

    with pytest.raises(RuntimeError, match="corrupted"):
        Other(tmp_path, download=True)
    assert not any((tmp_path / "Other" / "raw").iterdir())

    class Nowhere(Small):
        mirrors = [address + "missing/"]

    with pytest.raises(RuntimeError, match="Error downloading"):
        Nowhere(tmp_path, download=True)


def batch(count, key):
    rows = RNG.integers(0, 256, (count, 3072), dtype=np.uint8)
    return {"data": rows, key: RNG.integers(0, 3, count).tolist()}


def test_cifar(tmp_path, server):
    address, folder = server
    train, test = batch(4, "labels"), batch(2, "fine_labels")
    names = {"names": ["ant", "bee", "cow"]}
    contents = {"one": train, "two": train, "test": test, "meta": names}
    made = tmp_path / "made" / "few"
    made.mkdir(parents=True)
    for name, content in contents.items():
        (made / name).write_bytes(pickle.dumps(content, protocol=2))
    sums = {name: md5((made / name).read_bytes()) for name in contents}
    with tarfile.open(folder / "few.tar.gz", "w:gz") as archive:
        archive.add(made, "few")

    class Few(D.CIFAR10):
        base_folder = "few"
        url = address + "few.tar.gz"
        filename = "few.tar.gz"
        tgz_md5 = md5((folder / "few.tar.gz").read_bytes())
        train_list = [["one", sums["one"]], ["two", sums["two"]]]
        test_list = [["test", sums["test"]]]
        meta = {"filename": "meta", "key": "names", "md5": sums["meta"]}

    root = tmp_path / "root"
    with pytest.raises(RuntimeError, match="not found or corrupted"):
        Few(root)
    data = Few(root, download=True)
    assert len(data) == 8 and data.targets == train["labels"] * 2
    assert data.classes == names["names"] and data.class_to_idx["cow"] == 2
    image, target = data[5]
    wanted = train["data"][1].reshape(3, 32, 32).transpose(1, 2, 0)
    np.testing.assert_array_equal(np.asarray(image), wanted)
    assert target == train["labels"][1]
    assert Few(root, train=False).targets == test["fine_labels"]
    assert D.CIFAR100.base_folder == "cifar-100-python"

    class Evil:
        def __reduce__(self):
            return print, ("run",)

    (root / "few" / "test").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(RuntimeError, match="corrupted"):
        Few(root, train=False)
    Few.test_list = [["test", md5((root / "few" / "test").read_bytes())]]
    with pytest.raises(pickle.UnpicklingError, match="arrays and lists"):
        Few(root, train=False)


def test_a_file_that_is_there_is_not_loaded_again(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    download_url("http://127.0.0.1:1/a", tmp_path, md5=md5(b"abc"))
    assert (tmp_path / "a").read_bytes() == b"abc"
