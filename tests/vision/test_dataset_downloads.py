"""Every data set loads its archive from a server on this host, checks it and unpacks it; archives
that would write elsewhere do not."""

from __future__ import annotations

import functools
import http.server
import io
import pathlib
import tarfile
import threading
import zipfile

import pytest

pytest.importorskip("PIL.Image")

from tests.vision import dataset_files as files
from torchlab.vision import datasets as D
from torchlab.vision.datasets import utils, voc
from torchlab.vision.datasets.utils import extract_archive


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def served(tmp_path):
    """(address, folder) of a server."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}/", folder
        found.shutdown()


@pytest.fixture
def pack(served, tmp_path):
    """`pack(make, name)` packs what `make(folder)` makes; gives (address, MD5)."""
    address, folder = served

    def do(make, name):
        source = tmp_path / "sources" / name
        make(source)
        target = folder / name
        if name.endswith(".zip"):
            with zipfile.ZipFile(target, "w") as archive:
                for path in sorted(source.rglob("*")):
                    archive.write(path, path.relative_to(source))
        else:
            mode = "w" if name.endswith(".tar") else "w:gz"
            with tarfile.open(target, mode) as archive:
                for path in sorted(source.iterdir()):
                    archive.add(path, path.name)
        return address + name, files.md5(target)

    return do


def loads_once(make, root, served, length):
    """Download; again with the server's files gone; then without."""
    with pytest.raises((RuntimeError, FileNotFoundError)):
        make(root, download=False)
    assert len(make(root, download=True)) == length
    for path in served[1].iterdir():
        path.unlink()
    for again in (True, False):
        data = make(root, download=again)
        assert len(data) == length
    return data


def set_archive(monkeypatch, cls, found):
    monkeypatch.setattr(cls, "_URL", found[0])
    monkeypatch.setattr(cls, "_MD5", found[1])


ARCHIVES = {
    "Caltech256": (files.caltech256, "256.tar", {}, 5),
    "Country211": (files.country211, "country211.tgz", {"split": "valid"}, 4),
    "DTD": (files.dtd, "dtd.tar.gz", {}, 3),
    "EuroSAT": (
        lambda f: files.classes(f / "2750", ("Forest", "River"), ".jpg"), "EuroSAT.zip", {}, 4,
    ),
    "FGVCAircraft": (files.fgvc_aircraft, "fgvc.tar.gz", {}, 2),
    "Food101": (files.food101, "food.tar.gz", {}, 3),
    "RenderedSST2": (files.rendered_sst2, "sst2.tgz", {"split": "val"}, 4),
}  # fmt: skip


@pytest.mark.parametrize("name", ARCHIVES)
def test_one_archive(name, tmp_path, served, pack, monkeypatch):
    make, archive, arguments, length = ARCHIVES[name]
    cls = getattr(D, name)
    found = pack(make, archive)
    monkeypatch.setattr(cls, "_URL", found[0])
    if hasattr(cls, "_MD5"):
        monkeypatch.setattr(cls, "_MD5", "0" * 32)
        with pytest.raises(RuntimeError, match="corrupted"):
            cls(tmp_path / "other", download=True, **arguments)
        monkeypatch.setattr(cls, "_MD5", found[1])
    loads_once(functools.partial(cls, **arguments), tmp_path / "root", served, length)


def test_caltech101(tmp_path, served, pack, monkeypatch):
    def both(folder):
        content = tmp_path / "content"
        files.caltech101(content)
        (folder / "caltech-101").mkdir(parents=True)
        for part, name, mode in (
            ("101_ObjectCategories", "101_ObjectCategories.tar.gz", "w:gz"),
            ("Annotations", "Annotations.tar", "w"),
        ):
            with tarfile.open(folder / "caltech-101" / name, mode) as archive:
                archive.add(content / part, part)

    set_archive(monkeypatch, D.Caltech101, pack(both, "caltech-101.zip"))
    data = loads_once(
        functools.partial(D.Caltech101, target_type=["category", "annotation"]),
        tmp_path / "root",
        served,
        5,
    )
    assert data[2][1][0] == 1 and data[2][1][1].shape == (2, 7)


def test_celeba(tmp_path, served, monkeypatch):
    address, folder = served
    files.celeba(folder, unpacked=False)
    asked = []

    def load(url, path, progress):
        asked.append(url)
        name = url.partition("?id=")[2].partition("&")[0]
        load_from_server(address + name, path, progress=progress)

    load_from_server = utils.hub.download_url_to_file
    monkeypatch.setattr(utils.hub, "download_url_to_file", load)
    known = [(name, files.md5(folder / name), name) for _, _, name in D.CelebA.file_list]
    monkeypatch.setattr(D.CelebA, "file_list", [(a, "0" * 32, b) for a, _, b in known])
    with pytest.raises(RuntimeError, match="corrupted"):
        D.CelebA(tmp_path / "other", download=True)
    monkeypatch.setattr(D.CelebA, "file_list", known)
    data = loads_once(D.CelebA, tmp_path / "root", served, 2)
    assert asked[0] == (
        "https://drive.usercontent.google.com/download?id=img_align_celeba.zip&export=download"
        "&confirm=t"
    )
    assert data[0][0].size == (6, 5)
    (tmp_path / "root" / "celeba" / "img_align_celeba.zip").unlink()
    assert len(D.CelebA(tmp_path / "root", "all")) == 4  # the images are there


def test_omniglot(tmp_path, served, pack, monkeypatch):
    for part in ("images_background", "images_evaluation"):
        url, md5 = pack(lambda f, part=part: files.omniglot(f / part), part + ".zip")
        monkeypatch.setitem(D.Omniglot.zips_md5, part, md5)
    monkeypatch.setattr(D.Omniglot, "download_url_prefix", url.rpartition("/")[0])
    root = tmp_path / "root"
    assert len(D.Omniglot(root, background=False, download=True)) == 6
    assert not (root / "omniglot-py" / "images_background").exists()
    loads_once(D.Omniglot, tmp_path / "other", served, 6)


def test_kitti(tmp_path, served, monkeypatch):
    address, folder = served
    files.kitti(tmp_path / "content")
    for part, name in (("image_2", "image"), ("label_2", "label")):
        with zipfile.ZipFile(folder / f"data_object_{name}_2.zip", "w") as archive:
            for path in sorted((tmp_path / "content").glob(f"*/{part}/*")):
                archive.write(path, path.relative_to(tmp_path / "content"))
    monkeypatch.setattr(D.Kitti, "data_url", address)
    loads_once(D.Kitti, tmp_path / "root", served, 3)
    assert len(D.Kitti(tmp_path / "root", train=False, download=True)) == 2


@pytest.mark.parametrize(
    ("mode", "split", "names"),
    [
        ("fine", "test", ("leftImg8bit_trainvaltest.zip", "gtFine_trainvaltest.zip")),
        ("coarse", "train", ("leftImg8bit_trainvaltest.zip", "gtCoarse.zip")),
        ("coarse", "train_extra", ("leftImg8bit_trainextra.zip", "gtCoarse.zip")),
    ],
)
def test_archives_of_cityscapes(tmp_path, mode, split, names):
    """Those a user has put there are unpacked."""
    folder = "gtFine" if mode == "fine" else "gtCoarse"
    content, root = tmp_path / "content", tmp_path / "root"
    files.cityscapes(content, folder, split)
    root.mkdir()
    for part, name in zip(("leftImg8bit", folder), names, strict=True):
        with pytest.raises(RuntimeError, match="Dataset not found or incomplete"):
            D.Cityscapes(root, split, mode)
        with zipfile.ZipFile(root / name, "w") as archive:
            for path in sorted((content / part).rglob("*")):
                archive.write(path, path.relative_to(content))
    assert len(D.Cityscapes(root, split, mode)) == 3
    for name in names:
        (root / name).unlink()
    assert len(D.Cityscapes(root, split, mode, ["semantic", "polygon"])) == 3


def test_emnist(tmp_path, served, pack, monkeypatch):
    url, md5 = pack(functools.partial(files.emnist, packed=True), "gzip.zip")
    monkeypatch.setattr(D.EMNIST, "url", url)
    monkeypatch.setattr(D.EMNIST, "md5", md5)
    make = functools.partial(D.EMNIST, split="letters")
    data = loads_once(make, tmp_path / "root", served, 4)
    assert not (pathlib.Path(data.raw_folder) / "gzip").exists()


def test_qmnist(tmp_path, served, monkeypatch):
    address, folder = served
    files.qmnist(folder, packed=True)
    found = {
        part: [
            (address + pathlib.PurePosixPath(url).name, files.md5(folder / url.split("/")[-1]))
            for url, _ in resources
        ]
        for part, resources in D.QMNIST.resources.items()
    }
    monkeypatch.setattr(D.QMNIST, "resources", found)
    for what, length in (("nist", 2), ("train", 3)):
        root = tmp_path / what
        assert len(D.QMNIST(root, what, download=True)) == length
        assert len(D.QMNIST(root, what)) == length


def test_single_files(tmp_path, served, monkeypatch):
    address, folder = served
    for make in (files.usps, files.svhn, files.semeion, files.moving_mnist):
        make(folder)
    for cls in (D.USPS, D.SVHN):
        found = {
            part: [address + name, name, files.md5(folder / name)]
            for part, (_, name, _) in cls.split_list.items()
        }
        monkeypatch.setattr(cls, "split_list", found)
    monkeypatch.setattr(D.SEMEION, "url", address + "semeion.data")
    monkeypatch.setattr(D.SEMEION, "md5_checksum", files.md5(folder / "semeion.data"))
    name = "mnist_test_seq.npy"
    set_archive(monkeypatch, D.MovingMNIST, (address + name, files.md5(folder / name)))
    for cls, length in ((D.USPS, 3), (D.SVHN, 3), (D.SEMEION, 3), (D.MovingMNIST, 3)):
        root = tmp_path / cls.__name__
        with pytest.raises((RuntimeError, FileNotFoundError)):
            cls(root, download=False)
        assert len(cls(root, download=True)) == length
        assert len(cls(root, download=False)) == length


def test_stl10(tmp_path, served, pack, monkeypatch):
    url, md5 = pack(files.stl10, "stl10_binary.tar.gz")
    source = tmp_path / "sources" / "stl10_binary.tar.gz" / "stl10_binary"
    monkeypatch.setattr(D.STL10, "url", url)
    monkeypatch.setattr(D.STL10, "tgz_md5", md5)
    for part in ("train_list", "test_list"):
        known = [[name, files.md5(source / name)] for name, _ in getattr(D.STL10, part)]
        monkeypatch.setattr(D.STL10, part, known)
    loads_once(D.STL10, tmp_path / "root", served, 4)


def test_voc(tmp_path, served, pack, monkeypatch):
    url, md5 = pack(files.voc, "VOCtrainval.tar")
    known = voc.DATASET_YEAR_DICT["2012"] | {"url": url, "md5": md5}
    monkeypatch.setitem(voc.DATASET_YEAR_DICT, "2012", known)
    root = tmp_path / "root"
    with pytest.raises(RuntimeError, match="not found or corrupted"):
        D.VOCDetection(root)
    assert len(D.VOCDetection(root, download=True)) == 2
    assert len(D.VOCSegmentation(root)) == 2


def test_several_archives(tmp_path, served, pack, monkeypatch):
    images = pack(lambda f: files.oxford_iiit_pet(f), "pets.tar.gz")
    monkeypatch.setattr(D.OxfordIIITPet, "_RESOURCES", (images,))
    loads_once(D.OxfordIIITPet, tmp_path / "pets", served, 3)
    signs = pack(files.gtsrb, "signs.zip")
    monkeypatch.setattr(D.GTSRB, "_from", served[0])
    monkeypatch.setattr(D.GTSRB, "_archives", {"train": [("signs.zip", signs[1])]})
    loads_once(D.GTSRB, tmp_path / "signs", served, 4)
    small = pack(files.imagenette, "imagenette2-160.tgz")
    monkeypatch.setattr(D.Imagenette, "_ARCHIVES", {"160px": small})
    loads_once(functools.partial(D.Imagenette, size="160px"), tmp_path / "few", served, 4)


def test_flowers102(tmp_path, served, pack, monkeypatch):
    address, folder = served
    images = pack(files.flowers102, "102flowers.tgz")
    source = tmp_path / "sources" / "102flowers.tgz"
    known = {"image": ("102flowers.tgz", images[1])}
    for what, name in (("label", "imagelabels.mat"), ("setid", "setid.mat")):
        (folder / name).write_bytes((source / name).read_bytes())
        known[what] = (name, files.md5(source / name))
    monkeypatch.setattr(D.Flowers102, "_download_url_prefix", address)
    monkeypatch.setattr(D.Flowers102, "_file_dict", known)
    loads_once(D.Flowers102, tmp_path / "root", served, 2)


def test_the_cars_are_gone(tmp_path):
    with pytest.raises(ValueError, match="cannot be downloaded anymore"):
        D.StanfordCars(tmp_path, download=True)


@pytest.mark.parametrize("name", ["a.tar", "a.tgz", "a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.zip"])
def test_archives_write_below_their_folder(tmp_path, name):
    path = tmp_path / "in" / name
    path.parent.mkdir()
    members = ["deep/one.txt", "../out.txt", "/out2.txt", "deep/../../out.txt", "./two.txt"]
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            for member in members:
                archive.writestr(member, member)
    else:
        mode = "w:" + {"tgz": "gz", "tar": ""}.get(name.split(".")[-1], name.split(".")[-1])
        with tarfile.open(path, mode) as archive:
            for member in members:
                info = tarfile.TarInfo(member)
                info.size = len(member)
                archive.addfile(info, io.BytesIO(member.encode()))
            for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
                info = tarfile.TarInfo(f"odd{kind!r}")
                info.type, info.linkname = kind, "/etc/passwd"
                archive.addfile(info)
    target = tmp_path / "to" / "folder"
    assert extract_archive(path, target) == str(target)
    found = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if not p.is_dir()}
    assert found == {f"in/{name}", "to/folder/deep/one.txt", "to/folder/two.txt"}
    extract_archive(path, remove_finished=True)
    assert not path.exists() and (path.parent / "two.txt").read_text() == "./two.txt"


def test_files_that_are_only_compressed(tmp_path):
    files.usps(tmp_path)
    assert extract_archive(tmp_path / "usps.bz2") == str(tmp_path / "usps")
    assert (tmp_path / "usps").read_text().startswith("1 1:-1.0 2:1.0 ")
    with pytest.raises(RuntimeError, match="no suffixes"):
        extract_archive(tmp_path / "usps")


def test_helpers(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a.png").write_bytes(b"")
    assert utils.list_dir(tmp_path) == ["b"]
    assert utils.list_files(tmp_path, (".png", ".jpg"), prefix=True) == [str(tmp_path / "a.png")]
    assert utils.verify_str_arg("a", "split", ("a", "b")) == "a"
    with pytest.raises(ValueError, match="Unknown value 'x' for argument split. Valid values are"):
        utils.verify_str_arg("x", "split", ("a", "b"))
    with pytest.raises(ValueError, match="Expected type str for argument split, but got type"):
        utils.verify_str_arg(3, "split")
