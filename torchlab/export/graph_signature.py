"""What the inputs and outputs of an exported graph are.

Source: https://docs.pytorch.org/docs/2.13/export.html#torch.export.ExportGraphSignature
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, TypeAlias


@dataclasses.dataclass
class TensorArgument:
    """A tensor, by its node's name."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """A symbolic size, by its node's name."""

    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A symbolic float, by its node's name."""

    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A question about sizes, by its node's name."""

    name: str


@dataclasses.dataclass
class ConstantArgument:
    """A value that is part of the program."""

    name: str
    value: int | float | bool | str | None


ArgumentSpec: TypeAlias = (
    TensorArgument | SymIntArgument | SymFloatArgument | SymBoolArgument | ConstantArgument
)


class InputKind(Enum):
    """Where an input of the graph comes from."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()


class OutputKind(Enum):
    """What an output of the graph is for."""

    USER_OUTPUT = 1
    BUFFER_MUTATION = 3
    PARAMETER_MUTATION = 4
    USER_INPUT_MUTATION = 7


@dataclasses.dataclass
class InputSpec:
    """An input: its kind, its placeholder, the name in the module that it stands for."""

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind == InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclasses.dataclass
class OutputSpec:
    """An output: its kind, its node, the name of what it is to be written to."""

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name}: {self.kind.name}{target}"


@dataclasses.dataclass
class ExportGraphSignature:
    """The inputs and outputs of an exported graph, in its order: parameters, buffers and constant
    tensors first, the user's arguments last; writes first, the user's results last."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _inputs(self, kind: InputKind) -> list[InputSpec]:
        return [s for s in self.input_specs if s.kind == kind]

    def _targets(self, kind: InputKind) -> Mapping[str, str]:
        return MappingProxyType({s.arg.name: str(s.target) for s in self._inputs(kind)})

    def _written(self, kind: OutputKind) -> Mapping[str, str]:
        found = {s.arg.name: str(s.target) for s in self.output_specs if s.kind == kind}
        return MappingProxyType(found)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters in the module."""
        return tuple(str(s.target) for s in self._inputs(InputKind.PARAMETER))

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of the buffers in the module."""
        return tuple(str(s.target) for s in self._inputs(InputKind.BUFFER))

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """The names of the buffers that are not in the state dict."""
        return tuple(str(s.target) for s in self._inputs(InputKind.BUFFER) if not s.persistent)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of the constant tensors."""
        return tuple(str(s.target) for s in self._inputs(InputKind.CONSTANT_TENSOR))

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The placeholders of the user's arguments; a constant is its value."""
        return tuple(_value(s.arg) for s in self._inputs(InputKind.USER_INPUT))

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The nodes of the user's results; a constant is its value."""
        specs = [s for s in self.output_specs if s.kind == OutputKind.USER_OUTPUT]
        return tuple(_value(s.arg) for s in specs)

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """Placeholder → parameter."""
        return self._targets(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """Placeholder → buffer."""
        return self._targets(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """Placeholder → constant tensor."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """Output → the buffer that it is written to after a run."""
        return self._written(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """Output → the parameter that it is written to after a run."""
        return self._written(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """Output → the argument that it is written to after a run."""
        return self._written(OutputKind.USER_INPUT_MUTATION)

    def __str__(self) -> str:
        inputs = "\n".join(str(s) for s in self.input_specs)
        outputs = "\n".join(str(s) for s in self.output_specs)
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"


def _value(arg: ArgumentSpec) -> Any:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name


__all__ = [
    "ArgumentSpec", "ConstantArgument", "ExportGraphSignature", "InputKind", "InputSpec",
    "OutputKind", "OutputSpec", "SymBoolArgument", "SymFloatArgument", "SymIntArgument",
    "TensorArgument",
]  # fmt: skip
