"""What goes wrong when a program is exported.

Source: https://docs.pytorch.org/docs/2.13/onnx_export.html
"""

from __future__ import annotations


class OnnxExporterError(RuntimeError):
    """What all errors of the exporter are."""


class UnsupportedOperatorError(OnnxExporterError):
    """Operators that have no counterpart; `operators` lists them with where they are run."""

    def __init__(self, operators: list[tuple[str, str, str]]) -> None:
        self.operators = operators
        lines = "\n".join(f"  - {name}: {why} ({where})" for name, why, where in operators)
        super().__init__(
            f"{len(operators)} operator calls of the program cannot be exported to ONNX:\n{lines}\n"
            "Use other operators there, or leave that part out of the model"
        )


class Untranslatable(Exception):
    """A translation says why it cannot translate a call. It never leaves the exporter."""


__all__ = ["OnnxExporterError", "UnsupportedOperatorError"]
