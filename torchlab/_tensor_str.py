"""`torch._tensor_str`: the parts of a printed tensor, for classes that print like one.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.set_printoptions.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlab._core import printing
from torchlab._core.printing import get_printoptions, printoptions, set_printoptions
from torchlab._core.tensor_face import printed

__all__ = [
    "PRINT_OPTS",
    "_add_suffixes",
    "_str",
    "_str_intern",
    "_tensor_str",
    "get_printoptions",
    "printoptions",
    "set_printoptions",
]


class _Options:
    """The options in force, as attributes that can be set."""

    def __getattr__(self, name: str) -> Any:
        try:
            return get_printoptions()[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in get_printoptions():
            raise AttributeError(f"there is no print option '{name}'")
        set_printoptions(**{"sci_mode": get_printoptions()["sci_mode"], name: value})

    def __repr__(self) -> str:
        return f"PrintOptions({', '.join(f'{k}={v}' for k, v in get_printoptions().items())})"


PRINT_OPTS = _Options()


def _tensor_str(self: Any, indent: int) -> str:
    """The elements alone: `[1., 2.]`; lines after the first begin with `indent` spaces."""
    plain = self.detach().cpu().resolve_conj().resolve_neg()
    return printing._body(plain._a, indent, printing._options) if plain.numel() else "[]"


def _add_suffixes(
    tensor_str: str, suffixes: Sequence[str], indent: int, force_newline: bool
) -> str:
    """The text with `, dtype=…` and its like, each on a new line where it would not fit, and the
    closing bracket. `force_newline`: the first on a new line in any case."""
    return printing._with_suffixes(
        tensor_str, suffixes, indent, printing._options.linewidth, force_newline
    )


def _str_intern(inp: Any, *, tensor_contents: str | None = None) -> str:
    """A tensor as it prints; with another text in place of its elements."""
    return printed(inp, tensor_contents)


def _str(self: Any, *, tensor_contents: str | None = None) -> str:
    """The same, without a word to `__torch_function__`."""
    return printed(self, tensor_contents)
