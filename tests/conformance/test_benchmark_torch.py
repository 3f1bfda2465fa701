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


@pytest.mark.parametrize("rowwise", [False, True])
def test_colors_by_ratio(rowwise: bool) -> None:
    ratios = [1, 1.009, 1.011, 1.09, 1.11, 1.99, 2.01, 4.99, 5.01, 50]
    texts = []
    for b in (ours, theirs):
        for base in (1.0, 2e-7):  # of times that short, 100 ns more is as good
            c = b.Compare([measured(b, [base], label="L", sub_label="a", description="d")])
            for i, ratio in enumerate(ratios):
                where = {"sub_label": "a", "description": f"d{i}"}
                if not rowwise:
                    where = {"sub_label": f"a{i}", "description": "d"}
                c.extend_results([measured(b, [base * ratio], label="L", **where)])
            c.colorize(rowwise)
            texts.append(str(c))
    assert texts[:2] == texts[2:]


@pytest.mark.parametrize("trim", [False, True])
def test_forms_of_tables(trim: bool) -> None:
    cases: list[list[dict[str, Any]]] = [
        [],
        [{"times": [1e-3], "label": "a label that is much wider than its table"}],
        [{"times": [1e-3]}, {"times": [2e-3], "stmt": "y"}, {"times": [3e-3], "stmt": "y"}],
        [{"times": [1e-3], "env": "E"}, {"times": [123e-3], "description": "a wide header"}],
        [{"times": [1.2345e-3] * 9, "sub_label": "a"}, {"times": [9.87e-6] * 9, "stmt": "b"}],
        [{"times": [5e3], "env": "E"}, {"times": [2e-9], "env": "F"}, {"times": [3], "env": "F"}],
        [{"times": [1e-3], "num_threads": 8}, {"times": [2e-3], "label": "M"}, {"times": [1]}],
    ]
    for case in cases:
        texts = []
        for b in (ours, theirs):
            given = [{"description": "d", "env": "E", "label": "L", **task} for task in case]
            c = b.Compare([measured(b, task.pop("times"), **task) for task in given])
            if trim:
                c.trim_significant_figures()
            texts.append(str(c))
        assert texts[0] == texts[1]


class _World:
    """A statement that takes `each` seconds, and a clock whose reading takes some, too."""

    def __init__(self, each: float, reading: float) -> None:
        self.each, self.reading, self.now, self.runs = each, reading, 0.0, 0
        self.read: list[int] = []

    def run(self) -> None:
        self.now += self.each
        self.runs += 1

    def clock(self) -> float:
        self.now += self.reading
        self.read.append(self.runs)
        return self.now


@pytest.mark.parametrize("each", [1e-5, 3e-4, 2.5e-2, 0.7, 30.0])
@pytest.mark.parametrize("reading", [0.0, 1.3e-6, 1e-4])
def test_blocks(each: float, reading: float) -> None:
    calls: list[Any] = [
        lambda t: t.timeit(7),
        lambda t: t.timeit(250),
        lambda t: t.blocked_autorange(min_run_time=0.02),
        lambda t: t.adaptive_autorange(),
        lambda t: t.adaptive_autorange(threshold=0.0, min_run_time=0.002, max_run_time=0.05),
        lambda t: t.adaptive_autorange(min_run_time=0.5, max_run_time=0.05),
    ]
    for call in calls:
        found = []
        for b in (ours, theirs):
            w = _World(each, reading)
            m = call(b.Timer("w.run()", globals={"w": w}, timer=w.clock))
            found.append((w.read, m.number_per_run, m.raw_times))
        assert found[0] == found[1]


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
        lambda b: b.Timer("x", language="PYTHON"),
        lambda b: b.Timer("x", language=7),
        lambda b: b.Timer("x", global_setup="#include <vector>"),
        lambda b: b.Timer("x", globals=3),
        lambda b: b.Timer("x").repeat(),
        lambda b: b.Timer("x").autorange(),
        lambda b: b.Timer("x", language="c++", globals={"x": 1}),
        lambda b: b.Compare([1]),
        lambda b: b.unit_to_english("q"),
    ],
)
def test_errors(call: Any) -> None:
    assert _fails(lambda: call(ours)) == _fails(lambda: call(theirs))
