"""Hand-made snapshots with known numbers, for the views, the widgets and the browser."""

from __future__ import annotations

import copy
from typing import Any

F4 = "float32"


def _saved(name: str, shape: list[int], nbytes: int, storage: str, now: int = 0) -> dict[str, Any]:
    return {
        "name": name,
        "shape": shape,
        "dtype": F4,
        "bytes": nbytes,
        "storage": storage,
        "version": 0,
        "current_version": now,
        "freed": False,
    }


def _node(
    k: int,
    name: str,
    op: str,
    shape: list[int],
    saved: list[dict[str, Any]] | None = None,
    grad: float | str | None = None,
    state: str = "waiting",
    module: str = "",
    line: int = 0,
    code: str = "",
) -> dict[str, Any]:
    return {
        "id": f"n{k}",
        "kind": "op",
        "name": name,
        "op": op,
        "label": "",
        "module": module,
        "inputs": [{"shape": shape, "dtype": F4}],
        "outputs": [{"shape": shape, "dtype": F4}],
        "saved": saved or [],
        "grad_norm": grad,
        "state": state,
        "runs": int(state == "done"),
        "source": {"file": "/home/ada/train.py", "line": line, "code": code} if line else None,
    }


def _leaf(k: int, label: str, shape: list[int], grad: float | str | None = None) -> dict[str, Any]:
    return {
        "id": f"n{k}",
        "kind": "leaf",
        "name": "AccumulateGrad",
        "op": "accumulate",
        "label": label,
        "module": "",
        "inputs": [{"shape": shape, "dtype": F4}],
        "outputs": [],
        "saved": [],
        "grad_norm": grad,
        "state": "waiting" if grad is None else "done",
        "runs": 0 if grad is None else 1,
        "source": None,
    }


def autograd() -> dict[str, Any]:
    """A small CNN in the middle of backward; one saved tensor was changed in place."""
    code = "x = self.pool(torch.relu(self.conv1(x)))"
    nodes = [
        _node(
            0,
            "NllLossBackward0",
            "nll_loss",
            [],
            [_saved("self", [64, 10], 2560, "s0"), _saved("target", [64], 512, "s1")],
            1.0,
            "done",
            "",
            31,
            "loss = F.cross_entropy(model(x), y)",
        ),
        _node(
            1,
            "LogSoftmaxBackward0",
            "log_softmax",
            [64, 10],
            [_saved("result", [64, 10], 2560, "s0")],
            0.117,
            "done",
            "",
            31,
            "loss = F.cross_entropy(model(x), y)",
        ),
        _node(
            2,
            "AddmmBackward0",
            "addmm",
            [64, 10],
            [_saved("mat1", [64, 256], 65536, "s2"), _saved("mat2", [256, 10], 10240, "s3")],
            0.0874,
            "running",
            "fc",
            18,
            "return self.fc(x)",
        ),
        _leaf(3, "fc.bias", [10], 0.0432),
        _node(
            4, "TBackward0", "t", [256, 10], None, None, "waiting", "fc", 18, "return self.fc(x)"
        ),
        _leaf(5, "fc.weight", [10, 256]),
        _node(
            6, "ViewBackward0", "view", [64, 256], None, None, "waiting", "", 17, "x = x.flatten(1)"
        ),
        _node(
            7,
            "MaxPool2DWithIndicesBackward0",
            "max_pool2d_with_indices",
            [64, 16, 4, 4],
            [
                _saved("self", [64, 16, 8, 8], 262144, "s4"),
                _saved("result1", [64, 16, 4, 4], 131072, "s5"),
            ],
            None,
            "waiting",
            "pool",
            16,
            code,
        ),
        _node(
            8,
            "ReluBackward0",
            "relu",
            [64, 16, 8, 8],
            [_saved("result", [64, 16, 8, 8], 262144, "s4", 1)],
            None,
            "waiting",
            "",
            16,
            code,
        ),
        _node(
            9,
            "ConvolutionBackward0",
            "convolution",
            [64, 16, 8, 8],
            [
                _saved("input", [64, 1, 8, 8], 16384, "s6"),
                _saved("weight", [16, 1, 3, 3], 576, "s7"),
            ],
            None,
            "waiting",
            "conv1",
            16,
            code,
        ),
        _leaf(10, "conv1.weight", [16, 1, 3, 3]),
        _leaf(11, "conv1.bias", [16]),
    ]
    pairs = [
        (0, 1, 0),
        (1, 2, 0),
        (2, 3, 0),
        (2, 6, 1),
        (2, 4, 2),
        (4, 5, 0),
        (6, 7, 0),
        (7, 8, 0),
        (8, 9, 0),
        (9, 10, 1),
        (9, 11, 2),
    ]
    return {
        "kind": "autograd",
        "version": 1,
        "roots": ["n0"],
        "nodes": nodes,
        "edges": [{"src": f"n{a}", "dst": f"n{b}", "index": i} for a, b, i in pairs],
    }


def strides() -> dict[str, Any]:
    """`arange(12).view(3, 4).t()`, asked to be viewed as one dimension."""
    return {
        "kind": "strides",
        "version": 1,
        "name": "y",
        "dtype": "int64",
        "itemsize": 8,
        "device": "cpu",
        "storage": {
            "id": "s0",
            "numel": 12,
            "bytes": 96,
            "address": 0x5000,
            "values": [str(i) for i in range(12)],
        },
        "chain": [
            {"op": "arange(12)", "shape": [12], "stride": [1], "offset": 0},
            {"op": ".view(3, 4)", "shape": [3, 4], "stride": [4, 1], "offset": 0},
            {"op": ".t()", "shape": [4, 3], "stride": [1, 4], "offset": 0},
        ],
        "asked_view": [12],
    }


def sliced() -> dict[str, Any]:
    """A 3-d tensor with an offset that leaves cells unread."""
    snapshot = strides()
    snapshot["storage"] = {
        "id": "s1",
        "numel": 60,
        "bytes": 240,
        "address": None,
        "values": [f"{i / 8:.2f}" for i in range(60)],
    }
    snapshot |= {"name": "crop", "dtype": F4, "itemsize": 4, "asked_view": [3, 12]}
    snapshot["chain"] = [
        {"op": "randn(3, 4, 5)", "shape": [3, 4, 5], "stride": [20, 5, 1], "offset": 0},
        {"op": "[:, :, 1:4]", "shape": [3, 4, 3], "stride": [20, 5, 1], "offset": 1},
    ]
    return snapshot


def _block(
    k: int, offset: int, size: int, state: str, owner: str = "", requested: int = 0
) -> dict[str, Any]:
    source = (
        {"file": "/home/ada/train.py", "line": 10 + k, "code": f"{owner} = make()"}
        if owner
        else None
    )
    return {
        "id": f"b{k}",
        "offset": offset,
        "size": size,
        "requested": requested or (size if state != "free" else 0),
        "state": state,
        "owner": owner,
        "source": source,
    }


MIB = 2**20


def memory() -> dict[str, Any]:
    """Two pools on the simulated accelerator, with an out-of-memory at the end."""
    events = []
    allocated = reserved = 0
    script = [
        ("segment_alloc", 2 * MIB),
        *[("alloc", 131072)] * 5,
        ("segment_alloc", 20 * MIB),
        ("alloc", 6 * MIB),
    ]
    script += [
        ("alloc", 4 * MIB),
        ("free", 4 * MIB),
        ("alloc", 5 * MIB),
        ("free", 131072),
        ("alloc", 3 * MIB),
    ]
    script += [
        ("segment_alloc", 12 * MIB),
        ("alloc", 11 * MIB),
        ("free", 5 * MIB),
        ("oom", 16 * MIB),
    ]
    for i, (kind, size) in enumerate(script):
        reserved += size if kind == "segment_alloc" else 0
        allocated += size if kind == "alloc" else -size if kind == "free" else 0
        events.append(
            {
                "i": i,
                "kind": kind,
                "size": size,
                "allocated": allocated,
                "reserved": reserved,
                "label": "",
            }
        )
    return {
        "kind": "memory",
        "version": 1,
        "device": "sim:0",
        "limit": 40 * MIB,
        "allocated": allocated,
        "reserved": reserved,
        "peak_allocated": max(e["allocated"] for e in events),
        "peak_reserved": reserved,
        "segments": [
            {
                "id": "seg0",
                "address": 0x7F0000000000,
                "size": 2 * MIB,
                "pool": "small",
                "stream": 0,
                "blocks": [
                    _block(0, 0, 131072, "allocated", "conv1.weight", 130000),
                    _block(1, 131072, 131072, "allocated", "conv1.bias"),
                    _block(2, 262144, 131072, "pending", "x"),
                    _block(3, 393216, 131072, "allocated", "fc.bias"),
                    _block(4, 524288, 2 * MIB - 524288, "free"),
                ],
            },
            {
                "id": "seg1",
                "address": 0x7F0000400000,
                "size": 20 * MIB,
                "pool": "large",
                "stream": 0,
                "blocks": [
                    _block(5, 0, 6 * MIB, "allocated", "fc.weight"),
                    _block(6, 6 * MIB, 5 * MIB, "free"),
                    _block(7, 11 * MIB, 3 * MIB, "allocated", "saved for ReluBackward0"),
                    _block(8, 14 * MIB, 6 * MIB, "free"),
                ],
            },
            {
                "id": "seg2",
                "address": 0x7F0002000000,
                "size": 12 * MIB,
                "pool": "large",
                "stream": 1,
                "blocks": [
                    _block(9, 0, 11 * MIB, "allocated", "activations[3]"),
                    _block(10, 11 * MIB, MIB, "free"),
                ],
            },
        ],
        "events": events,
    }


KERNEL_0 = """#include <cmath>
#include <cstdint>
extern "C" void fused_mul_add_gelu(const float* in0, const float* in1, float* out0, int64_t n) {
    #pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
        float t0 = in0[i] * in1[i];   // buf0: train.py:7
        float t1 = t0 + 1.0f;         // buf1: train.py:7
        float t2 = 0.5f * t1 * (1.0f + std::erf(t1 * 0.70710678f));
        out0[i] = t2;
    }
}
"""
KERNEL_1 = """#include <cstdint>
extern "C" void fused_sum_div(const float* in0, float* out0, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        float acc = 0.0f;
        for (int64_t c = 0; c < columns; ++c) acc += in0[r * columns + c];
        out0[r] = acc / static_cast<float>(columns);
    }
}
"""


def fusion() -> dict[str, Any]:
    """`gelu(x * w + 1).mean(1) @ v`: two kernels, a matrix product that stays outside."""

    def node(
        i: str, kind: str, op: str, shape: list[int], lines: list[int], line: int = 0
    ) -> dict[str, Any]:
        code = {7: "h = F.gelu(x * w + 1)", 8: "m = h.mean(1)", 9: "return m @ v"}.get(line, "")
        origin = {"file": "/home/ada/train.py", "line": line, "code": code} if line else None
        return {
            "id": i,
            "kind": kind,
            "op": op,
            "shape": shape,
            "dtype": F4,
            "origin": origin,
            "lines": lines,
        }

    return {
        "kind": "fusion",
        "version": 1,
        "name": "forward",
        "nodes": [
            node("x", "input", "placeholder", [512, 256], []),
            node("w", "input", "placeholder", [512, 256], []),
            node("v", "input", "placeholder", [512, 16], []),
            node("buf0", "op", "mul", [512, 256], [6], 7),
            node("buf1", "op", "add", [512, 256], [7], 7),
            node("buf2", "op", "gelu", [512, 256], [8, 9], 7),
            node("buf3", "op", "sum", [512], [4, 5], 8),
            node("buf4", "op", "div", [512], [6], 8),
            node("buf5", "op", "mm", [16], [], 9),
            node("out", "output", "output", [16], []),
        ],
        "edges": [
            ["x", "buf0"],
            ["w", "buf0"],
            ["buf0", "buf1"],
            ["buf1", "buf2"],
            ["buf2", "buf3"],
            ["buf3", "buf4"],
            ["buf4", "buf5"],
            ["v", "buf5"],
            ["buf5", "out"],
        ],
        "groups": [
            {
                "id": "k0",
                "name": "fused_mul_add_gelu",
                "nodes": ["buf0", "buf1", "buf2"],
                "language": "cpp",
                "source": KERNEL_0,
            },
            {
                "id": "k1",
                "name": "fused_sum_div",
                "nodes": ["buf3", "buf4"],
                "language": "cpp",
                "source": KERNEL_1,
            },
        ],
        "rejections": [
            {
                "first": "buf2",
                "second": "buf3",
                "reason": (
                    "buf2 is also an output of the graph, and its loop has 131072 steps while the "
                    "reduction runs over 512 rows of 256: fusing would recompute gelu"
                ),
            },
            {
                "first": "buf4",
                "second": "buf5",
                "reason": "mm is an extern kernel (BLAS); its body cannot be joined with a loop",
            },
        ],
    }


def backward() -> dict[str, Any]:
    """A recording of six steps with a NaN that starts in the forward's log, played to the end."""

    def info(shape: list[int]) -> list[dict[str, Any]]:
        return [{"shape": shape, "dtype": F4}]

    def values(name: str, shape: list[int], **found: Any) -> dict[str, Any]:
        base = {"low": None, "high": None, "nan": 0, "inf": 0, "zero": 0, "negative": 0}
        return {"name": name, "shape": shape, "dtype": F4, "count": 15, **base, **found}

    def node(k: int, name: str, op: str, shape: list[int], **more: Any) -> dict[str, Any]:
        base = {
            "id": f"n{k}",
            "kind": "op",
            "name": name,
            "op": op,
            "label": "",
            "module": "",
            "group": [],
            "inputs": info(shape),
            "outputs": info(shape),
            "saved": [],
            "fed": [],
            "source": {"file": "/home/ada/train.py", "line": 9, "code": "loss = y.log().mean()"},
        }
        return {**base, **more}

    def leaf(k: int, label: str, shape: list[int]) -> dict[str, Any]:
        return node(
            k,
            "AccumulateGrad",
            "",
            shape,
            kind="leaf",
            label=label,
            inputs=[],
            source=None,
            **inside,
        )

    def flow(to: str, shape: list[int], size: Any, summed: list[int] | None = None) -> Any:
        return {"to": to, "shape": shape, "norm": size, "summed": summed or []}

    def step(k: int, got: Any, sent: list[Any], held: list[int], **more: Any) -> dict[str, Any]:
        base = {"node": f"n{k}", "kind": "op", "run": 0, "leaf": None, "freed": []}
        sizes = dict(zip(("saved_bytes", "flight_bytes", "leaf_bytes"), held, strict=True))
        return {**base, "received": [got], "sent": sent, **sizes, **more}

    def grown(size: Any, first: bool = True) -> dict[str, Any]:
        return {"first": first, "incoming": size, "norm": size}

    inside = {"group": ["0: Linear"], "module": "0"}
    line = {"file": "/home/ada/train.py", "line": 8, "code": "y = model(x)"}
    log = node(
        4,
        "LogBackward0",
        "log",
        [5, 3],
        saved=[_saved("self", [5, 3], 60, "s2")],
        fed=[values("input 0", [5, 3], low=-1.5, high=2.25, negative=7)],
    )
    addmm = node(
        3,
        "AddmmBackward0",
        "addmm",
        [5, 3],
        saved=[_saved("mat1", [5, 4], 80, "s0"), _saved("mat2", [4, 3], 48, "s1")],
        **{**inside, "source": line},
    )
    return {
        "kind": "backward",
        "version": 1,
        "roots": ["n5"],
        "nodes": [
            leaf(0, "0.bias", [3]),
            node(1, "TBackward0", "t", [4, 3], **{**inside, "source": line}),
            leaf(2, "0.weight", [3, 4]),
            addmm,
            log,
            node(5, "MeanBackward0", "mean", []),
        ],
        "edges": [
            {"src": "n5", "dst": "n4", "index": 0},
            {"src": "n4", "dst": "n3", "index": 0},
            {"src": "n3", "dst": "n0", "index": 0},
            {"src": "n3", "dst": "n1", "index": 2},
            {"src": "n1", "dst": "n2", "index": 0},
        ],
        "steps": [
            step(5, flow("", [], 1.0), [flow("n4", [5, 3], 0.258)], [188, 60, 12]),
            step(
                4,
                flow("", [5, 3], 0.258),
                [flow("n3", [5, 3], "nan")],
                [128, 60, 12],
                freed=[{"name": "self", "bytes": 60, "storage": "s2", "returned": True}],
            ),
            step(
                3,
                flow("", [5, 3], "nan"),
                [flow("n0", [3], "nan", [0]), flow("n1", [4, 3], "nan")],
                [0, 60, 12],
                freed=[
                    {"name": "mat1", "bytes": 80, "storage": "s0", "returned": False},
                    {"name": "mat2", "bytes": 48, "storage": "s1", "returned": False},
                ],
            ),
            step(0, flow("", [3], "nan"), [], [0, 48, 12], kind="leaf", leaf=grown("nan", False)),
            step(1, flow("", [4, 3], "nan"), [flow("n2", [3, 4], "nan")], [0, 48, 12]),
            step(2, flow("", [3, 4], "nan"), [], [0, 0, 60], kind="leaf", leaf=grown("nan")),
        ],
        "start": {"saved_bytes": 188, "flight_bytes": 4, "leaf_bytes": 12},
        "broadcasts": [
            {
                "node": "n3",
                "index": 0,
                "into": "n0",
                "shape": [3],
                "to": [5, 3],
                "dims": [0],
                "each": 5,
                "source": line,
            }
        ],
        "origins": [
            {
                "what": "nan",
                "where": "forward",
                "op": "log",
                "node": "n4",
                "module": "",
                "source": log["source"],
                "fed": log["fed"],
                "gave": values("result", [5, 3], low=-0.7, high=0.81, nan=7),
                "why": "the logarithm of 7 negative values",
                "path": [
                    {"op": op, "node": k, "module": "", "source": log["source"]}
                    for op, k in (("log", "n4"), ("mean", "n5"))
                ],
                "reaches": True,
            }
        ],
        "writes": [],
        "error": None,
        "position": 6,
        "cut": False,
    }


def loader(workers: int = 5, epochs: int = 2, each: int = 12) -> dict[str, Any]:
    """Two epochs with five workers; reading takes 40 ms, the loop's step 2 ms, batch 7 of the
    first epoch 120 ms more, and batch 10 of the second fails."""
    passes, batches, blocked = [], [], []
    now = 0.0
    for run in range(epochs):
        began = now
        free = [began + 0.01 + 0.002 * w for w in range(workers)]
        now = began + 0.012
        passes.append(
            {
                "loader": 0,
                "epoch": run,
                "begin": [began, now],
                "end": None,
                "base_seed": 2**62 + run,
                "resumed": 0,
            }  # fmt: skip
        )
        for k in range(each):
            w = k % workers
            slow = 0.12 if (run, k) == (0, 7) else 0.0
            spans = {"start": [began + 0.002 * w, free[w]]} if k < workers else {}
            fetch = free[w] + 0.001
            collate = fetch + 0.04 + slow
            pack = collate + 0.003
            made = pack + 0.002
            spans |= {
                "idle": [free[w], fetch], "fetch": [fetch, collate], "collate": [collate, pack],
                "pack": [pack, made], "send": [made, made + 0.0005],
            }  # fmt: skip
            free[w] = made
            asked = now
            came = max(asked, made + 0.0005)
            given = came + 0.001
            blocked.append({"run": run, "due": k, "came": k, "span": [asked, came]})
            spans |= {"receive": [came, given], "queued": [made, given]}
            fails = (run, k) == (1, 10)
            batches.append(
                {
                    "run": run,
                    "number": k,
                    "index": k,
                    "worker": w,
                    "seed": 2**62 + run + w,
                    "indices": [f"cat/{2 * k}.png", 2 * k + 1],
                    "size": 2,
                    "bytes": 0 if fails else 2048,
                    "pickled": 0 if fails else 48,
                    "error": "ValueError: no such picture" if fails else "",
                    "spans": spans,
                    "cpu": {"fetch": 0.002, "collate": 0.0029},
                    "slowest": [2 * k + 1, 0.03 + slow],
                    "asked": asked,
                    "given": given,
                    "back": given + 0.0001,
                }  # fmt: skip
            )
            now = given + 0.0021
        passes[-1]["end"] = [now, now + 0.006]
        now += 0.02
    return {
        "kind": "loader",
        "version": 1,
        "seconds": now,
        "running": False,
        "cpus": 8,
        "loaders": [
            {
                "label": "Pictures (24)",
                "dataset": "Pictures",
                "samples": 24,
                "length": 12,
                "batch_size": 2,
                "num_workers": workers,
                "prefetch_factor": 2,
                "persistent_workers": False,
                "in_order": True,
                "streams": False,
                "start_method": "fork",
                "source": {"file": "/home/ada/train.py", "line": 31, "code": "for x in loader:"},
            }  # fmt: skip
        ],
        "passes": passes,
        "batches": batches,
        "blocked": blocked,
        "cut": False,
    }


ALL = {
    "autograd": autograd,
    "backward": backward,
    "strides": strides,
    "memory": memory,
    "fusion": fusion,
    "loader": loader,
}
HOSTILE = "<script>alert(1)</script>\"'&]]>\x00\ud800"


def hostile(kind: str) -> dict[str, Any]:
    """The sample with every free text replaced by something that tries to break out."""
    snapshot = copy.deepcopy(ALL[kind]())
    keys = {
        "name",
        "op",
        "label",
        "module",
        "owner",
        "code",
        "file",
        "reason",
        "language",
        "source",
        "dtype",
        "device",
        "pool",
        "storage",
        "values",
        "dataset",
        "error",
        "start_method",
    }

    def spoil(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                k: (
                    HOSTILE
                    if k in keys and isinstance(v, str)
                    else [HOSTILE] * len(v)
                    if k in ("values", "indices") and v
                    else spoil(v)
                )
                for k, v in value.items()
            }
        return [spoil(v) for v in value] if isinstance(value, list) else value

    return spoil(snapshot)
