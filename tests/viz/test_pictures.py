"""What a picture gives to a notebook, to a file and to graphviz."""

from __future__ import annotations

import base64
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from tests.viz import samples
from torchlab.viz import capsule
from torchlab.viz.pictures import PICTURES, StaticPicture, picture, read_html

KINDS = sorted(samples.ALL)


@pytest.mark.parametrize("kind", KINDS)
def test_a_notebook_gets_a_static_picture(kind: str) -> None:
    shown = picture(samples.ALL[kind]())
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "text/html", "text/plain"}
    assert bundle["image/svg+xml"] == shown.svg == shown._repr_svg_()
    data = bundle["text/html"].partition("base64,")[2].partition('"')[0]
    assert base64.b64decode(data).decode() == shown.svg
    assert " at 0x" not in bundle["text/plain"]
    assert set(StaticPicture(shown)._repr_mimebundle_()) == {"text/html", "text/plain"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_needs_no_network_and_can_be_read_back(kind: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "picture.html"
    shown = picture(samples.ALL[kind]())
    page = shown.to_html(path)
    assert path.read_text(encoding="utf-8") == page
    assert "default-src 'none'" in page
    assert page.count("</script>") == 3
    for address in ("http://", "https://", "@import", "import("):
        assert address not in page.replace("http://www.w3.org/2000/svg", ""), address
    again = read_html(path)
    assert type(again) is PICTURES[kind]
    assert again.snapshot == shown.snapshot and again.svg == shown.svg


def test_hostile_snapshots_survive_a_page(tmp_path: pathlib.Path) -> None:
    snapshot = samples.hostile("autograd")
    path = tmp_path / "picture.html"
    page = picture(snapshot).to_html(path)
    assert page.count("</script>") == 3
    assert read_html(path).snapshot == snapshot


def test_reading_another_page() -> None:
    with pytest.raises(ValueError, match="holds no torchlab snapshot"):
        capsule.read("<html></html>")


def test_json_for_html() -> None:
    text = capsule.json_for_html({"a": "</script><!--", "b": float("nan"), "c": [float("inf")]})
    assert "<" not in text and ">" not in text
    assert json.loads(text) == {"a": "</script><!--", "b": "nan", "c": ["inf"]}


def test_digraphs_need_no_dot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    tape = picture(samples.autograd()).digraph()  # type: ignore[attr-defined]
    assert "n2 -> n4" in tape.source and "AddmmBackward0" in tape.source
    assert tape.source.count(" -> ") == 11
    fused = picture(samples.fusion()).digraph()  # type: ignore[attr-defined]
    assert "subgraph cluster_k0" in fused.source and "buf4 -> buf5" in fused.source


def test_hostile_names_in_a_digraph() -> None:
    snapshot = samples.autograd()
    snapshot["nodes"][0]["name"] = '"]; evil [label="'
    snapshot["nodes"][1]["name"] = "<b>x</b>\\l"
    source = picture(snapshot).digraph().source  # type: ignore[attr-defined]
    assert '\\"]; evil' in source and "label=<" not in source


def test_the_drawing_is_made_once() -> None:
    shown = picture(samples.autograd())
    assert shown.drawing() is shown.drawing()
    ET.fromstring(shown.to_svg("dark"))


def test_importing_loads_no_widget_library() -> None:
    code = (
        "import sys, torchlab.viz, torchlab.viz.pictures;"
        "heavy = {'anywidget', 'ipywidgets', 'traitlets', 'IPython', 'matplotlib', 'graphviz'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
