"""A tensor in a notebook: well-formed, escaped, bounded, for every kind of tensor."""

from __future__ import annotations

import re
import time
import xml.dom.minidom
from typing import Any

import pytest

import torchlab as torch
from torchlab.viz import tensor_html

nan, inf = float("nan"), float("inf")
TENSORS: dict[str, Any] = {
    "matrix": lambda: torch.arange(600.0).reshape(20, 30),
    "scalar": lambda: torch.tensor(3.5),
    "empty": lambda: torch.empty(0, 3),
    "complex": lambda: torch.ones(4, 5, dtype=torch.complex64),
    "bool": lambda: torch.ones(7, 9) > 0,
    "meta": lambda: torch.empty(3, 4, device="meta"),
    "special": lambda: torch.tensor([[1, nan, inf], [2, 3, -inf]]),
    "nan": lambda: torch.full((3, 3), nan),
    "huge": lambda: torch.tensor([1e308, -1e308], dtype=torch.float64),
    "bfloat16": lambda: torch.ones(3, 8, 8, dtype=torch.bfloat16),
    "float8": lambda: torch.ones(4).to(torch.float8_e5m2),
    "sim": lambda: torch.ones(3, device="sim"),
    "history": lambda: torch.ones(3, requires_grad=True) * 2,
    "view": lambda: torch.arange(24).reshape(2, 3, 4).transpose(0, 2),
}


@pytest.mark.parametrize("name", TENSORS)
def test_it_is_well_formed(name: str) -> None:
    html = TENSORS[name]()._repr_html_()
    xml.dom.minidom.parseString(html)
    assert len(html) < 30_000


def test_it_tells_shape_and_statistics() -> None:
    html = TENSORS["special"]()._repr_html_()
    text = " ".join(re.sub("<[^>]*>", " ", html).split())
    assert "shape (2, 3) stride (3, 1) dtype torch.float32 device cpu size 24 B" in text
    assert "min 1 mean 2 max 3 NaN 1 Inf 2" in text


def test_names_of_subclasses_are_escaped() -> None:
    cls = type("A<b>&", (torch.Tensor,), {})
    html = torch.ones(2).as_subclass(cls)._repr_html_()
    assert "A<b>" not in html and "A&lt;b&gt;&amp;(" in html


def test_time_and_size_do_not_grow_with_the_tensor() -> None:
    big = torch.ones(1).expand(10**5, 10**4)
    start = time.perf_counter()
    html = big._repr_html_()
    assert time.perf_counter() - start < 5
    assert len(html) < 30_000
    assert "of 1,000,000,000 elements" in html


def test_a_sample_reaches_all_parts() -> None:
    for shape in ((10**7,), (3, 10**6), (2, 2, 10**6), (300, 300, 300)):
        steps = tensor_html._steps(shape, tensor_html.MOST)
        read = 1
        for n, step in zip(shape, steps, strict=True):
            read *= -(-n // step)
        assert tensor_html.MOST / 20 < read <= tensor_html.MOST, (shape, steps)
