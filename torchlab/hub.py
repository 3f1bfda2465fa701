"""`torch.hub`: pre-trained weights and models by their address.

    state = torch.hub.load_state_dict_from_url("https://…/net-5c106cde.pth", check_hash=True)
    net = torch.hub.load("path/to/repository", "net", source="local")
    net = torch.hub.load("owner/repository:branch", "net", trust_repo=True)

A repository names its models in a file `hubconf.py`: `load` runs it, so it has to be trusted. What
was downloaded stays in `get_dir()`.

Source: https://docs.pytorch.org/docs/2.13/hub.html
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import os
import re
import secrets
import shutil
import sys
import types
import urllib.error
import urllib.request
import warnings
import zipfile
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlparse

from torchlab.serialization.loading import MapLocation
from torchlab.serialization.loading import load as _load_file

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

GITHUB = "https://github.com"
CONFIG = "hubconf.py"
DEPENDENCIES = "dependencies"
# How the content's SHA-256 begins, in a file's name. Libraries take this and `urlparse` from here.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_CHUNK = 1 << 17
_folder: str | None = None


# ---- folders ------------------------------------------------------------------------------------


def _get_torch_home() -> str:
    """PyTorch's folder of kept things: `$TORCH_HOME`, or `$XDG_CACHE_HOME/torch`
    (`~/.cache/torch`)."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """Where downloads are kept: what `set_dir` said, or the folder `hub` in `_get_torch_home()`."""
    if os.getenv("TORCH_HUB"):
        warnings.warn("TORCH_HUB is deprecated, please use env TORCH_HOME instead", stacklevel=2)
    if _folder is not None:
        return _folder
    return os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep downloads in this folder."""
    global _folder
    _folder = os.path.expanduser(os.fspath(d))


# ---- files --------------------------------------------------------------------------------------


class _Progress:
    """How far a download is, on the terminal."""

    def __init__(self, total: int | None, shown: bool) -> None:
        self._total, self._seen, self._last = total, 0, -1
        self._shown = shown and sys.stderr.isatty()

    def step(self, n: int) -> None:
        """n bytes more."""
        self._seen += n
        if not self._shown:
            return
        now = self._seen * 100 // self._total if self._total else self._seen >> 20
        if now != self._last:
            self._last = now
            sys.stderr.write(f"\r{now}%" if self._total else f"\r{now} MiB")

    def close(self) -> None:
        """The end of the line."""
        if self._shown:
            sys.stderr.write("\n")


def _open_url(url: str) -> Any:
    if "://" not in url:
        raise ValueError(f"unknown url type: {url!r:.200}; it needs a scheme such as https://")
    return urllib.request.urlopen(urllib.request.Request(url, headers={"User-Agent": "torch.hub"}))


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Load what is at an address into the file `dst`. The name appears when all is there.

    hash_prefix: how the SHA-256 of the content (hexadecimal) has to begin.

    Raises:
        RuntimeError: the content is another, or ended early.
        urllib.error.URLError: the address does not answer.
    """
    dst = os.path.expanduser(os.fspath(dst))
    partial = f"{dst}.{secrets.token_hex(8)}.partial"
    digest = hashlib.sha256()
    with _open_url(url) as source:
        length = source.headers.get("Content-Length")
        total = int(length) if length is not None and length.isdigit() else None
        bar, seen = _Progress(total, progress), 0
        try:
            with open(partial, "xb") as file:
                while part := source.read(_CHUNK):
                    digest.update(part)
                    file.write(part)
                    seen += len(part)
                    bar.step(len(part))
            bar.close()
            if total is not None and seen != total:
                raise RuntimeError(
                    f"download of {url} ended after {seen} of {total} bytes; try it again"
                )
            _check_hash(digest.hexdigest(), hash_prefix)
            os.replace(partial, dst)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(partial)


def _check_hash(found: str, prefix: str | None) -> None:
    if prefix is not None and found[: len(prefix)] != prefix:
        raise RuntimeError(f'invalid hash value (expected "{prefix}", got "{found}")')


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: MapLocation = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """`torch.load` of a file at an address, which is kept in `model_dir` and downloaded once.

    model_dir: by default `get_dir()/checkpoints`.
    check_hash: the file's name ends in `-<begin of its SHA-256>.ext`, and what is downloaded must
        fit. As in PyTorch, a file that is there already is taken as it is.
    weights_only: as for `torch.load`. False, the default as in PyTorch, runs code that the file
        contains: give True for files that you do not trust.
    """
    if os.getenv("TORCH_MODEL_ZOO"):
        warnings.warn(
            "TORCH_MODEL_ZOO is deprecated, please use env TORCH_HOME instead", stacklevel=2
        )
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = os.path.basename(urlparse(url).path) if file_name is None else file_name
    if not name:
        raise ValueError(f"the address {url!r:.200} names no file; give file_name=")
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        found = HASH_REGEX.search(name) if check_hash else None
        prefix = None if found is None else found[1]
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        download_url_to_file(url, path, prefix, progress)
    inner = _zipped(path)
    return _load_file(
        path if inner is None else io.BytesIO(inner),
        map_location=map_location,
        weights_only=weights_only,
    )


def _zipped(path: str) -> bytes | None:
    """The one file in a plain zip archive: some weights from before PyTorch 1.6 came that way."""
    if not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if any(n.endswith(("/version", "/data.pkl")) for n in names):
            return None
        if len(names) != 1:
            raise RuntimeError("Only one file(not dir) is allowed in the zipfile")
        return archive.read(names[0])


# ---- repositories -------------------------------------------------------------------------------


def _parse(github: str) -> tuple[str, str, str]:
    """(owner, name, branch or tag) of "owner/name[:ref]"."""
    found = re.fullmatch(r"([\w.-]+)/([\w.-]+)(?::([\w./-]+))?", github)
    if found is None or ".." in github:
        raise ValueError(
            f"expected a repository as 'owner/name' or 'owner/name:ref', not {github!r:.200}"
        )
    owner, name, ref = found.groups()
    return owner, name, ref if ref is not None else _default_branch(owner, name)


def _default_branch(owner: str, name: str) -> str:
    try:
        with _open_url(f"{GITHUB}/{owner}/{name}/tree/main/"):
            return "main"
    except urllib.error.HTTPError as e:
        if e.code == 404:
            return "master"
        raise
    except urllib.error.URLError:
        # Without a net, what was fetched before will do.
        for branch in ("main", "master"):
            if os.path.exists(os.path.join(get_dir(), _place(owner, name, branch))):
                return branch
        raise


def _place(owner: str, name: str, ref: str) -> str:
    return "_".join((owner, name, re.sub(r"[^\w.-]", "_", ref)))


def _trusted(owner: str, name: str, trust_repo: Any, calling: str) -> None:
    """Whether the user lets the repository's code run; an error if not."""
    if trust_repo not in (True, False, None, "check"):
        raise ValueError(
            f"torch.hub.{calling}: trust_repo must be True, False, None or 'check', not"
            f" {trust_repo!r}"
        )
    path = os.path.join(get_dir(), "trusted_list")
    known: set[str] = set()
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            known = {line.strip() for line in file}
    repository = f"{owner}_{name}"
    if repository in known or owner in (
        "facebookresearch",
        "facebookincubator",
        "pytorch",
        "fairinternal",
    ):
        return
    if trust_repo is None:
        warnings.warn(
            "You are about to download and run code from an untrusted repository. Give"
            " trust_repo=True to say that it is meant, or trust_repo='check' to be asked.",
            stacklevel=4,
        )
        return
    if trust_repo is not True:
        answer = input(
            f"The repository {owner}/{name} does not belong to the list of trusted repositories and"
            " as such cannot be downloaded. Do you trust this repository and wish to add it to the"
            " trusted list of repositories (y/N)?"
        )
        if answer.strip().lower() not in ("y", "yes"):
            raise RuntimeError(f"Untrusted repository: {owner}/{name}.")
    with open(path, "a", encoding="utf-8") as file:
        file.write(repository + "\n")


def _fetched(
    github: str, force_reload: bool, trust_repo: Any, calling: str, verbose: bool = True
) -> str:
    """The folder with the repository's files."""
    owner, name, ref = _parse(github)
    os.makedirs(get_dir(), exist_ok=True)
    folder = os.path.join(get_dir(), _place(owner, name, ref))
    _trusted(owner, name, trust_repo, calling)
    if os.path.exists(folder) and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    address = f"{GITHUB}/{owner}/{name}/zipball/{ref}"
    archive = f"{folder}.{secrets.token_hex(4)}.zip"
    unpacked = archive + ".d"
    sys.stdout.write(f'Downloading: "{address}" to {archive}\n')
    try:
        download_url_to_file(address, archive, progress=False)
        with zipfile.ZipFile(archive) as z:
            z.extractall(unpacked)  # takes ".." and roots out of the names
        (top,) = os.listdir(unpacked)
        if os.path.exists(folder):
            shutil.rmtree(folder)
        os.replace(os.path.join(unpacked, top), folder)
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(archive)
    return folder


@contextlib.contextmanager
def _config(folder: str) -> Iterator[Any]:
    """The module hubconf.py of a folder; inside, its neighbours can be imported."""
    path = os.path.join(folder, CONFIG)
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no {CONFIG} in {folder}: it names the models")
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location(CONFIG, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(folder)


def _entry(module: Any, name: Any) -> Callable[..., Any]:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    missing = [d for d in getattr(module, DEPENDENCIES, ()) if importlib.util.find_spec(d) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    found = getattr(module, name, None)
    if found is None or not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
) -> Any:
    """The names of the models of a repository "owner/name[:ref]"."""
    folder = _fetched(github, force_reload, trust_repo, "list", verbose)
    with _config(folder) as module:
        names = [n for n in dir(module) if callable(getattr(module, n)) and n[:1] != "_"]
        return [n for n in names if not isinstance(getattr(module, n), types.ModuleType)]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
) -> Any:
    """The docstring of a model of a repository."""
    folder = _fetched(github, force_reload, trust_repo, "help")
    with _config(folder) as module:
        return _entry(module, model).__doc__


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """`model(*args, **kwargs)` of the file hubconf.py in a repository or (source="local") folder.

    trust_repo: "check" asks on the terminal for repositories that are not known; True enters them;
        None warns.
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = repo_or_dir
    if source == "github":
        folder = _fetched(repo_or_dir, force_reload, trust_repo, "load", verbose)
    with _config(folder) as module:
        return _entry(module, model)(*args, **kwargs)
