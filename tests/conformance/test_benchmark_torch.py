"""`torch.utils.benchmark` against PyTorch's: the same measurements are told in the same words."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from torchlab.utils import benchmark as ours

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.utils.benchmark")


def measured(b: Any, times: list[float], n: int = 1, **task: Any) -> Any:
    task.setdefault("stmt", "x + y")
    task.setdefault("setup", "pass")
    return b.Measurement(n, [t * n for t in times], b.TaskSpec(**task))


TIMES = {
    "even": [1e-3, 1.1e-3, 1.2e-3, 1.05e-3] * 5,
    "few": [2.34567e-6] * 3,
    "wild": [1e-6, 2e-6, 3e-6, 9e-6] * 4,
    "tiny": [3e-9, 3.1e-9],
    "one": [3.0],
    "slow": [500.0] * 4,
    **{f"spread {s}": [1 - s / 2] * 9 + [1.0] * 9 + [1 + s / 2] * 9 for s in (0.09, 0.2, 0.3, 2)},
}
TASKS: list[dict[str, Any]] = [
    {},
    {"label": "L", "sub_label": "s", "description": "d", "num_threads": 4},
    {"stmt": "a\n  b", "setup": "x = 1\ny = 2", "sub_label": "s"},
    {"stmt": "a", "setup": "x = 1", "env": "E", "description": "d"},
    {"label": "", "sub_label": "", "setup": ""},
]


def _told(m: Any) -> list[Any]:
    text = re.sub(r"<.*?>\n", "", repr(m), count=1)
    return [
        text, m.median, m.mean, m.iqr, m.significant_figures, m.has_warnings, m.title, m.env,
        m.as_row_name, m.times, m.task_spec.summarize(), m.task_spec.setup_str(),
    ]  # fmt: skip


@pytest.mark.parametrize("name", sorted(TIMES))
@pytest.mark.parametrize("task", range(len(TASKS)))
def test_measurements(name: str, task: int) -> None:
    a, b = (_told(measured(x, TIMES[name], 10, **TASKS[task])) for x in (ours, theirs))
    for x, y in zip(a, b, strict=True):
        assert x == (pytest.approx(y, rel=1e-12) if isinstance(y, (float, list)) else y)


def _grid(b: Any, sub_labels: list[Any], envs: list[Any], ratio: float) -> list[Any]:
    found = []
    axes = itertools.product(["l1", "l2"], sub_labels, ["d1", "d2 is long"], [1, 4], envs)
    for i, (label, sub, description, threads, env) in enumerate(axes):
        if i % 7 != 3:
            times = [(1 + i * ratio) * 1e-6 * (1 + 0.001 * j * (i % 3)) for j in range(10)]
            found.append(
                measured(
                    b, times, 10, label=label, sub_label=sub, description=description,
                    num_threads=threads, env=env,
                )
            )  # fmt: skip
    return found


@pytest.mark.parametrize("trim", [False, True])
@pytest.mark.parametrize("color", [None, False, True])
@pytest.mark.parametrize("envs", [[None], ["e1", "env2"]])
@pytest.mark.parametrize("ratio", [0.004, 0.05, 3.7])
def test_tables(trim: bool, color: bool | None, envs: list[Any], ratio: float) -> None:
    texts = []
    for b in (ours, theirs):
        c = b.Compare(_grid(b, ["s1", "longer", None], envs, ratio))
        c.extend_results([measured(b, TIMES["wild"], label="l2", sub_label="w", description="d1",
                                   env=envs[0])])  # fmt: skip
        if trim:
            c.trim_significant_figures()
        if color is not None:
            c.colorize(rowwise=color)
        c.highlight_warnings()
        texts.append(str(c))
    assert texts[0] == texts[1]


def test_helpers() -> None:
    for t in (1e-10, 1e-9, 5e-7, 1e-6, 1e-4, 1e-3, 0.5, 1, 100, 1e5):
        assert ours.select_unit(t) == theirs.select_unit(t)
    for x, n in itertools.product((123.456, 0.00123456, 9.99, 1e10), (1, 2, 3, 5)):
        assert ours.trim_sigfig(x, n) == theirs.trim_sigfig(x, n)
    assert ours.unit_to_english("us") == "microsecond"
    assert ours.ordered_unique([3, 1, 3]) == [3, 1]
    assert [x.name for x in ours.Language] == [x.name for x in theirs.Language]


def _fails(call: Any) -> str:
    with pytest.raises(Exception) as e:
        call()
    return f"{type(e.value).__name__}: {e.value}"


@pytest.mark.parametrize(
    "call",
    [
        lambda b: b.Timer("1+"),
        lambda b: b.Timer("x + 1").timeit(1),
        lambda b: b.Timer(3),
        lambda b: b.Timer("x", setup=3),
        lambda b: b.Timer("x", language="fortran"),
        lambda b: b.Timer("x", language="c++", globals={"x": 1}),
        lambda b: b.Compare([1]),
        lambda b: b.unit_to_english("q"),
    ],
)
def test_errors(call: Any) -> None:
    assert _fails(lambda: call(ours)) == _fails(lambda: call(theirs))
