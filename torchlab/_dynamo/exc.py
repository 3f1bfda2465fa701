"""`torch._dynamo.exc`: errors of programs that cannot be captured.

Source: https://docs.pytorch.org/docs/2.13/generated/exportdb/index.html
"""

from __future__ import annotations

from enum import Enum, auto


class TorchDynamoException(RuntimeError):
    """What all errors of capturing a program are."""


class UserErrorType(Enum):
    """What a program did that cannot be captured."""

    DYNAMIC_CONTROL_FLOW = auto()
    ANTI_PATTERN = auto()
    STANDARD_LIBRARY = auto()
    CONSTRAINT_VIOLATION = auto()
    DYNAMIC_DIM = auto()
    INVALID_INPUT = auto()
    INVALID_OUTPUT = auto()
    UNSUPPORTED_ALIASED_MUTATED_DYNAMIC_INPUTS = auto()


class UserError(TorchDynamoException):
    """The program, or what was said of its inputs, has to change."""

    def __init__(self, error_type: UserErrorType, msg: str, case_name: str | None = None) -> None:
        if case_name is not None:
            msg += (
                "\nFor more information about this error, see: https://pytorch.org/docs/main/"
                f"generated/exportdb/index.html#{case_name.replace('_', '-')}"
            )
        super().__init__(msg)
        self.error_type = error_type
        self.message = msg


__all__ = ["TorchDynamoException", "UserError", "UserErrorType"]
