"""Kernels built here go to a folder of the test run, never to the user's cache."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest

from torchlab._core.codegen import toolchain

# Which tests exist depends on the compiler, so it is looked for while they are collected. What was
# found is remembered; what the search itself writes must not reach the user's cache either.
with tempfile.TemporaryDirectory() as _folder, pytest.MonkeyPatch.context() as _environment:
    _environment.setenv("TORCHLAB_CACHE_DIR", _folder)
    LANGUAGES = ["python"] if toolchain.find_compiler() is None else ["python", "cpp"]


@pytest.fixture(scope="session", autouse=True)
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One cache for all tests of this folder."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TORCHLAB_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
        yield


@pytest.fixture(params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    """Every language that programs can be compiled to here."""
    return str(request.param)
