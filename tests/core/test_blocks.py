"""torchlab._core.blocks: who is told of a block, and in which order."""

from __future__ import annotations

import pytest

from torchlab._core import blocks


class Listener:
    def __init__(self, name: str, told: list[str]) -> None:
        self.name, self.told = name, told

    def block_begins(self, name: str) -> int:
        self.told.append(f"{self.name}: {name}")
        return len(self.told)

    def block_ends(self, token: int) -> None:
        self.told.append(f"{self.name}: end of {token}")


def test_those_who_heard_the_beginning_hear_the_end() -> None:
    told: list[str] = []
    a, b, late = (Listener(name, told) for name in ("a", "b", "late"))
    blocks.LISTENERS[:] = [*blocks.LISTENERS, a, b]
    try:
        with pytest.raises(KeyError), blocks.block("x"):
            blocks.LISTENERS.append(late)
            blocks.LISTENERS.remove(a)
            raise KeyError
    finally:
        for one in (b, late):
            blocks.LISTENERS.remove(one)
    assert told == ["a: x", "b: x", "b: end of 2", "a: end of 1"]
    assert blocks.begin("nobody looks on") == []
