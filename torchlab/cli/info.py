"""`torchlab info`: versions, devices, compiler, BLAS, and what is missing with what that costs."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

from torchlab._core.lazy import lazy
from torchlab.cli import environment

numpy = lazy("numpy")
cupy = lazy("cupy", needs="pip install 'torchlab[cuda12]' or 'torchlab[cuda13]'")

_CORE = ("torchlab", "numpy", "scipy", "ml_dtypes")
_OPTIONAL = (
    "jupyterlab",
    "ipykernel",
    "ipywidgets",
    "anywidget",
    "graphviz",
    "matplotlib",
    "scikit-learn",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "mkl",
    "onednn-cpu-gomp",
    "torch",
)


@dataclass
class Missing:
    """Something that is not here, what one goes without, and how to get it."""

    what: str
    cost: str
    remedy: str


@dataclass
class Report:
    """Everything that `torchlab info` tells."""

    versions: dict[str, str]
    optional: dict[str, str]
    devices: dict[str, str]
    compilers: list[str]
    blas: str
    chromium: str | None
    missing: list[Missing] = field(default_factory=list)


def blas_of(config: dict[str, Any]) -> str:
    """The BLAS in the answer of `numpy.show_config(mode="dicts")`, such as "openblas 0.3.31"."""
    blas = config.get("Build Dependencies", {}).get("blas", {})
    if not blas.get("found", bool(blas.get("name"))):
        return "none (NumPy's own loops)"
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def cuda_devices() -> tuple[str | None, str]:
    """The names of the GPUs that CuPy sees, or None; and why there are none."""
    if not environment.has_module("cupy"):
        return None, "CuPy is not installed"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
        names = [
            cupy.cuda.runtime.getDeviceProperties(i)["name"].decode(errors="replace")
            for i in range(count)
        ]
    except Exception as e:  # CuPy raises its own classes, a broken driver also OSError, ImportError
        return None, f"CuPy is installed but reaches no GPU ({type(e).__name__}: {e})"
    return (", ".join(names), "") if names else (None, "CuPy is installed but sees no GPU")


def _missing(report: Report, no_cuda: str) -> list[Missing]:
    result = []
    if not report.compilers:
        result.append(
            Missing(
                "a C++ compiler",
                "compile() runs its Python reference kernels: the same results, no speed-up",
                "install g++ or clang++ (Debian: apt-get install g++), or set CXX",
            )
        )
    if "cuda" not in report.devices:
        result.append(
            Missing(
                f"cuda: {no_cuda}",
                'device("cuda") raises; device("sim") simulates an accelerator on host memory',
                "on a machine with an NVIDIA GPU: pip install 'torchlab[cuda12]' or "
                "'torchlab[cuda13]'",
            )
        )
    lab = ("jupyterlab", "ipywidgets", "anywidget", "matplotlib", "graphviz")
    gone = [name for name in lab if name not in report.optional]
    if gone:
        result.append(
            Missing(
                ", ".join(gone),
                "`torchlab lab` or some of the lab's live widgets do not work; tensors, training "
                "and compile() do",
                "pip install 'torchlab[lab]'",
            )
        )
    if "scikit-learn" not in report.optional:
        result.append(
            Missing(
                "scikit-learn",
                "00_start.ipynb finds no images to train on",
                "pip install 'torchlab[lab]'",
            )
        )
    if sys.platform == "linux" and platform.machine() == "x86_64":
        if "onednn-cpu-gomp" not in report.optional:
            result.append(
                Missing(
                    "oneDNN",
                    "convolutions are computed by NumPy, which takes about twice as long",
                    "pip install 'torchlab[fast]'",
                )
            )
    if report.chromium is None:
        result.append(
            Missing(
                "a Chromium",
                "only the browser tests of torchlab itself are left out",
                "Debian: apt-get install chromium, or set TORCHLAB_CHROMIUM to its path",
            )
        )
    return result


def collect() -> Report:
    """Look at this machine. Starts the compilers found with `--version`; imports NumPy, CuPy."""
    cores = environment.usable_cores()
    report = Report(
        versions={"python": f"{platform.python_implementation()} {platform.python_version()}"}
        | {name: environment.package_version(name) or "not installed" for name in _CORE},
        optional={
            name: version
            for name in _OPTIONAL
            if (version := environment.package_version(name)) is not None
        },
        devices={
            "cpu": f"{platform.machine()}, {cores} core{'s' if cores != 1 else ''} usable",
            "sim": "an accelerator simulated on host memory",
        },
        compilers=[f"{path} ({version})" for path, version in environment.find_compilers()],
        blas=blas_of(numpy.show_config(mode="dicts")),
        chromium=environment.find_chromium(),
    )
    names, no_cuda = cuda_devices()
    if names is not None:
        report.devices["cuda"] = names
    report.missing = _missing(report, no_cuda)
    return report


def text_of(report: Report) -> str:
    """The report as it is printed."""

    def table(title: str, rows: dict[str, str]) -> list[str]:
        return [title, *(f"  {name:<16} {value}" for name, value in rows.items())]

    lines = table("versions", report.versions | {"platform": platform.platform()})
    lines += table("optional packages", report.optional or {"(none)": ""})
    lines += table("devices", report.devices)
    lines += ["compiler", *(f"  {c}" for c in report.compilers or ["none found"])]
    lines += ["BLAS", f"  {report.blas}"]
    if not report.missing:
        lines += ["nothing is missing"]
    else:
        lines += ["missing"]
        for item in report.missing:
            lines += [f"  {item.what}", f"    costs:  {item.cost}", f"    to get: {item.remedy}"]
    return "\n".join(line.rstrip() for line in lines)


def add_parser(commands: Any) -> None:
    """Declare the command and its options."""
    parser = commands.add_parser(
        "info",
        help="versions, devices, compiler, BLAS; what is missing and what that costs",
        description="Say what torchlab finds on this machine, what is missing and what that costs.",
    )
    parser.add_argument("--json", action="store_true", help="the same as one JSON object")
    parser.set_defaults(handler=main)


def main(options: argparse.Namespace) -> int:
    """Print the report."""
    report = collect()
    if options.json:
        json.dump(asdict(report), sys.stdout, indent=2)
        print()
    else:
        print(text_of(report))
    return 0
