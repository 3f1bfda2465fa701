"""The order of the layers, as data. A file imports only from lower lines and, within a line, from
units to its left; the files of one unit are free among themselves as long as there is no cycle.

A new module has to find its place here before it can be imported anywhere.
"""

from __future__ import annotations

Unit = tuple[str, ...]
"""Module prefixes below `torchlab.` that belong together; the longest prefix that fits wins."""


def _each(names: str) -> tuple[Unit, ...]:
    return tuple((name,) for name in names.split())


LINES: tuple[tuple[Unit, ...], ...] = (
    # 0: the standard library only
    _each(
        "_version torch_version version _metadata _core.events _core.errors _core.config "
        "_core.attention_backends _core.pytree _core.pytree_text _core.lazy _core.forks "
        "_core.blocks"
    ),
    # 1: facts about tensors, without memory
    _each(
        "_core.dtype _core.formats _core.info _core.settings _core.threads "
        "_core.device _core.kind _core.layout _core.meta _core.structures "
        "_core.box_muller _core.generator _core.printing _core.hooks _core.refusals "
        "_core.references _core.grad_state"
    ),
    # 2: memory and who provides it
    _each("_core.memory _core.backends"),
    # 3: the tensor, its tape and the generated calls know each other; kernels come after
    (("_core.tape", "_core.tensor", "_core.dispatch", "_core.dlpack"), ("_core.codegen",)),
    # 4: the operators; `SIBLINGS` below says more about them
    _each(
        "_core.checking _core.sharing _core.ops _core.foreach _core.control_flow "
        "_core.inspection _core.storages _core.legacy _core.streams "
        "_core.tensor_face functional linalg fft signal special sparse random quasirandom storage "
        "types overrides _C return_types masked _tensor_str"
    ),
    # 5: devices and processes stand below the modules that are spread over them
    _each("multiprocessing autograd")
    + (("func", "_functorch"),)
    + _each("_C._functorch distributions amp cpu cuda xpu mps mtia sim accelerator distributed"),
    # 6
    _each(
        "_higher_order_ops nn optim serialization utils distributed.fsdp distributed._composable"
    ),
    # 7
    (("fx", "_subclasses"),),
    # 8
    _each(
        "_guards _utils _functorch.make_functional _functorch.deprecated hub futures "
        "utils.model_zoo backends __config__ profiler _ops _decomp "
        "distributed.optim utils.flop_counter library testing ao quantization"
    ),
    # 9: `compiler` itself is what is left: backends, the public functions
    _each("compiler.capture compiler.aot compiler.inductor compiler"),
    # 10
    _each("_dynamo export jit onnx vision audio text"),
    # 11: the command line runs scripts under the alias, so compat comes before it
    _each("viz notebook compat cli __main__"),
)

FACE = "torchlab"
"""`torchlab/__init__.py` gathers the public names: above everything, imported by nothing."""

SIBLINGS = "_core.ops"
"""The parts of this package, families of operators, never import each other."""

SHARED_BY_SIBLINGS = frozenset({"kernels"})
"""Parts of it that are no families: every family may import them, and they import none. So may be
parts whose name starts with `_`."""

THIRD_PARTY_EVERYWHERE = frozenset({"numpy"})
"""What a file may import at its top. All else is reached through `lazy("name")`."""

THIRD_PARTY: dict[str, frozenset[str]] = {
    "testing.nbval_plugin": frozenset({"pytest"}),  # loaded by pytest and by nothing else
    # Classes with traits must exist as classes; loaded when a widget is first asked for.
    "viz.widgets": frozenset({"anywidget", "ipywidgets", "traitlets"}),
    # Its messages are tensorboard's classes; loaded when a program imports it.
    "utils.tensorboard": frozenset({"tensorboard", "google"}),
}
"""Exceptions, by module or package below `torchlab.`."""

STANDARD_LIBRARY_ONLY = LINES[0]

LONGEST_FILE = 800
"""Lines; a file near it has more than one subject."""

TOP_LEVEL = frozenset(
    {
        "pyproject.toml",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "torchlab",
        "notebooks",
        "extensions",
        "tests",
        "binder",
    }
)
"""The project's top folder, besides names that start with a dot."""


def place(module: str) -> tuple[int, int, Unit] | None:
    """(line, position in the line, unit) of a module below `torchlab.`; None if it has no place."""
    best: tuple[int, int, Unit] | None = None
    longest = -1
    for line, units in enumerate(LINES):
        for position, unit in enumerate(units):
            for prefix in unit:
                fits = module == prefix or module.startswith(prefix + ".")
                if fits and len(prefix) > longest:
                    best, longest = (line, position, unit), len(prefix)
    return best
