"""torch.hub and torch.utils.model_zoo against a server on this machine."""

from __future__ import annotations

import hashlib
import http.server
import io
import os
import threading
import urllib.error
import zipfile

import pytest

import torchlab as torch
import torchlab.utils.model_zoo as model_zoo
from tests.serialization.tools import saved

STATE = saved({"w": torch.ones(3)})
DIGEST = hashlib.sha256(STATE).hexdigest()
HUBCONF = '''
dependencies = ["json"]
from neighbour import VALUE as _value
def net(n, scale=1):
    """A net of n parameters."""
    import torchlab as torch
    return torch.nn.Linear(n, 1), scale * _value
_hidden = 3
'''


def _zipball():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("owner-repo-123/hubconf.py", HUBCONF)
        archive.writestr("owner-repo-123/neighbour.py", "VALUE = 5\n")
    return out.getvalue()


def _zipped():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(
            "weights.pth", saved({"w": torch.zeros(2)}, _use_new_zipfile_serialization=False)
        )
    return out.getvalue()


PAGES = {
    f"/net-{DIGEST[:8]}.pth": STATE,
    "/net-00000000.pth": STATE,
    "/plain.pth": STATE,
    "/zipped.zip": _zipped(),
    "/owner/repo/zipball/main": _zipball(),
    "/owner/repo/tree/main/": b"yes",
}


class Handler(http.server.BaseHTTPRequestHandler):
    asked: list[str] = []

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.asked.append(path)
        if path == "/short.pth":
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(STATE)
            return
        if path not in PAGES:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(PAGES[path])))
        self.end_headers()
        self.wfile.write(PAGES[path])

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as s:
        thread = threading.Thread(target=s.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{s.server_address[1]}"
        s.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(torch.hub, "_folder", None)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    Handler.asked.clear()


def test_download(server, tmp_path):
    path = tmp_path / "x"
    torch.hub.download_url_to_file(f"{server}/plain.pth", str(path), DIGEST[:10], progress=False)
    assert path.read_bytes() == STATE
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError, match=r'invalid hash value \(expected "ff", got'):
        torch.hub.download_url_to_file(f"{server}/plain.pth", str(path), "ff")
    with pytest.raises(RuntimeError, match="ended after"):
        torch.hub.download_url_to_file(f"{server}/short.pth", str(path))
    with pytest.raises(urllib.error.HTTPError):
        torch.hub.download_url_to_file(f"{server}/none", str(path))
    with pytest.raises(ValueError, match="unknown url type"):
        torch.hub.download_url_to_file("no address", str(path))
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("load", [torch.hub.load_state_dict_from_url, model_zoo.load_url])
def test_weights_are_kept(server, load, tmp_path):
    url = f"{server}/net-{DIGEST[:8]}.pth?download=1"
    for _ in range(2):
        state = load(url, check_hash=True, progress=False, weights_only=True)
        assert state["w"].tolist() == [1, 1, 1]
    assert len(Handler.asked) == 1
    kept = os.path.join(torch.hub.get_dir(), "checkpoints", f"net-{DIGEST[:8]}.pth")
    torch.save({"w": torch.zeros(2)}, kept)  # a user's own: only what is downloaded is checked
    assert load(url, check_hash=True)["w"].tolist() == [0, 0]
    load(f"{server}/plain.pth", model_dir=str(tmp_path / "m"), file_name="other.pth")
    assert os.listdir(tmp_path / "m") == ["other.pth"]


def test_another_hash(server):
    with pytest.raises(RuntimeError, match="invalid hash value"):
        torch.hub.load_state_dict_from_url(f"{server}/net-00000000.pth", check_hash=True)
    assert os.listdir(os.path.join(torch.hub.get_dir(), "checkpoints")) == []
    with pytest.raises(ValueError, match="names no file"):
        torch.hub.load_state_dict_from_url(f"{server}/")


def test_old_weights_in_a_plain_zip(server):
    state = torch.hub.load_state_dict_from_url(f"{server}/zipped.zip", weights_only=True)
    assert state["w"].tolist() == [0, 0]


def test_folders(monkeypatch, tmp_path):
    assert torch.hub.get_dir() == str(tmp_path / "home" / "hub")
    torch.hub.set_dir(tmp_path / "other")
    assert torch.hub.get_dir() == str(tmp_path / "other")
    monkeypatch.setattr(torch.hub, "_folder", None)
    monkeypatch.delenv("TORCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert torch.hub.get_dir() == os.path.join("/c", "torch", "hub")
    assert torch.hub._get_torch_home() == os.path.join("/c", "torch")


def test_names_that_libraries_take():
    from torchlab.hub import HASH_REGEX, urlparse

    name = os.path.basename(urlparse("https://h/net-5c106cde.pth?download=1").path)
    assert HASH_REGEX.search(name)[1] == "5c106cde"
    assert HASH_REGEX.search("net-v2.pth") is None
    assert HASH_REGEX.search("net-5c.pth")[1] == "5c"


def test_local_repositories(tmp_path):
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    (tmp_path / "neighbour.py").write_text("VALUE = 7\n")
    net, value = torch.hub.load(str(tmp_path), "net", 3, source="local", scale=2)
    assert net.in_features == 3 and value == 14
    with pytest.raises(RuntimeError, match="Cannot find callable other"):
        torch.hub.load(str(tmp_path), "other", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        torch.hub.load(str(tmp_path), "net", source="disk")
    (tmp_path / "hubconf.py").write_text('dependencies = ["no_such_module_here"]\nnet = print\n')
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_module_here"):
        torch.hub.load(str(tmp_path), "net", source="local")


def test_remote_repositories(server, monkeypatch):
    import sys

    monkeypatch.setattr(torch.hub, "GITHUB", server)
    sys.modules.pop("neighbour", None)
    monkeypatch.setattr("builtins.input", lambda text: "n")
    with pytest.raises(RuntimeError, match="Untrusted repository"):
        torch.hub.load("owner/repo", "net", 2)
    assert not any("zipball" in path for path in Handler.asked)
    net, value = torch.hub.load("owner/repo", "net", 2, trust_repo=True)
    assert net.in_features == 2 and value == 5
    assert torch.hub.list("owner/repo:main") == ["net"]
    assert torch.hub.help("owner/repo:main", "net") == "A net of n parameters."
    assert sum("zipball" in path for path in Handler.asked) == 1
    torch.hub.list("owner/repo:main", force_reload=True)
    assert sum("zipball" in path for path in Handler.asked) == 2
    for bad in ("owner", "owner/repo/x", "../repo:main", "owner/repo:../../x"):
        with pytest.raises(ValueError, match="owner/name"):
            torch.hub.list(bad)
