"""`FileCheck`: what a text holds, in order: for tests of generated code and of messages.

    FileCheck().check("mul").check_not("copy").check("add").run(source)
    FileCheck().run("# CHECK: mul\\n# CHECK-NEXT: add", source)

Every check begins where the one before it ended. The second form reads the checks from lines of a
text: CHECK, -NEXT (on the next line), -SAME (on this one), -NOT (not before the next match),
-COUNT-n, -COUNT-EXACTLY-n, -DAG (neighbours in any order), -REGEX, -SOURCE-HIGHLIGHTED (with ~
below it).

Source: https://docs.pytorch.org/docs/2.13/testing.html, after LLVM's FileCheck
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, NoReturn

_LINE = re.compile(
    r"#?\s*(CHECK(?:-NEXT|-SAME|-NOT|-DAG|-REGEX|-SOURCE-HIGHLIGHTED"
    r"|-COUNT-EXACTLY-\d+|-COUNT-\d+)?):(.*)"
)


class _Check(NamedTuple):
    kind: str  # "CHECK", "CHECK-NEXT" …; "CHECK-COUNT" and "CHECK-COUNT-EXACTLY" without number
    text: str
    times: int = 1


class FileCheck:
    """A list of checks, and `run` to try them. RuntimeError names the first that fails."""

    def __init__(self) -> None:
        self._checks: list[_Check] = []

    def __repr__(self) -> str:
        lines = "".join(f"\n\t{c.kind}: {c.text}" for c in self._checks)
        return f"FileCheck checks:{lines}"

    def _add(self, kind: str, text: str, count: int = 1) -> FileCheck:
        if not isinstance(text, str):
            raise TypeError(f"FileCheck: what to look for must be str, not {type(text).__name__}")
        if kind == "CHECK-COUNT" and count < 1:
            raise RuntimeError(f"FileCheck: a count of {count} that need not be exact says nothing")
        if kind == "CHECK-SOURCE-HIGHLIGHTED" and "\n" in text:
            raise RuntimeError(f"FileCheck: highlighted source must be one line, not {text!r}")
        self._checks.append(_Check(kind, text, count))
        return self

    def check(self, text: str, /) -> FileCheck:
        """`text` comes later on."""
        return self._add("CHECK", text)

    def check_not(self, text: str, /) -> FileCheck:
        """`text` does not come before what the next check finds."""
        return self._add("CHECK-NOT", text)

    def check_same(self, text: str, /) -> FileCheck:
        """`text` comes later on the same line."""
        return self._add("CHECK-SAME", text)

    def check_next(self, text: str, /) -> FileCheck:
        """`text` comes on the next line."""
        return self._add("CHECK-NEXT", text)

    def check_count(self, str: str, count: int, exactly: bool = False) -> FileCheck:
        """`str` comes `count` times; `exactly`: and not again before the next match."""
        return self._add("CHECK-COUNT-EXACTLY" if exactly else "CHECK-COUNT", str, count)

    def check_dag(self, text: str, /) -> FileCheck:
        """`text` comes later on; neighbours of this kind may come in any order."""
        return self._add("CHECK-DAG", text)

    def check_source_highlighted(self, text: str, /) -> FileCheck:
        """`text` comes with a ~ below each of its characters."""
        return self._add("CHECK-SOURCE-HIGHLIGHTED", text)

    def check_regex(self, text: str, /) -> FileCheck:
        """Something that fits a regular expression comes later on. (After a match PyTorch 2.13
        goes on too early in the text: as far from its beginning as the match was from the check
        before.)"""
        return self._add("CHECK-REGEX", text)

    def run(self, *texts: Any) -> None:
        """`run(text)` tries the checks on a text, or on what prints as one (a graph);
        `run(checks, text)` those that the lines of `checks` say."""
        if not 1 <= len(texts) <= 2 or not isinstance(texts[0], str) and not _is_graph(texts[0]):
            names = ", ".join(type(t).__name__ for t in texts)
            raise TypeError(f"FileCheck.run() takes a text, or checks and a text, not ({names})")
        if len(texts) == 2:
            self._read(texts[0])
        text = texts[-1] if isinstance(texts[-1], str) else str(texts[-1])
        if not self._checks:
            raise RuntimeError(
                "No checks have been added to this instance of Filecheck! Check for bad input."
            )
        _Search(text, self._checks).run()

    def _read(self, checks: str) -> None:
        for line in checks.splitlines():
            found = _LINE.search(line)
            if found is None:
                continue
            kind, _, number = found[1].rpartition("-")
            if number.isdigit():
                self._add(kind, found[2].strip(), int(number))
            else:
                self._add(found[1], found[2].strip())


def _is_graph(x: Any) -> bool:
    return hasattr(x, "nodes")


class _Search:
    """One run: `at` is where the last match ended."""

    def __init__(self, text: str, checks: list[_Check]) -> None:
        self.text = text
        self.checks = checks
        self.at = 0
        self.never: list[_Check] = []  # not to come between `never_from` and the next match
        self.never_from = 0

    def run(self) -> None:
        groups: list[list[_Check]] = []
        for c in self.checks:
            if c.kind == "CHECK-DAG" and groups and groups[-1][0].kind == "CHECK-DAG":
                groups[-1].append(c)
            else:
                groups.append([c])
        for group in groups:
            if group[0].kind == "CHECK-NOT":
                self._forbid(group[0])
            else:
                self._match(group)
        self._nothing_forbidden(len(self.text))

    def _forbid(self, c: _Check) -> None:
        if not self.never:
            self.never_from = self.at
        self.never.append(c)

    def _match(self, group: list[_Check]) -> None:
        begin, c = self.at, group[0]
        if c.kind == "CHECK-NEXT":
            begin = self.text.find("\n", begin) + 1
            if not begin:
                self._fail(c, f'Expected to find "\\n" but did not find it\n{self.text}')
        spans = [self._span(c, begin) for c in group]
        first = min(start for start, _ in spans)
        self._nothing_forbidden(first)
        if c.kind in ("CHECK-SAME", "CHECK-NEXT") and "\n" in self.text[begin:first]:
            self._fail(c, f'Expected to not find "\\n" but found it\n{self.text}')
        self.at = max(end for _, end in spans)
        if c.kind == "CHECK-COUNT-EXACTLY":
            self._forbid(_Check("CHECK-NOT", c.text))

    def _span(self, c: _Check, begin: int) -> tuple[int, int]:
        if c.kind == "CHECK-REGEX":
            found = re.compile(c.text).search(self.text, begin)
            if found is None:
                self._missing(c, begin, "regex ")
            return found.span()
        if c.kind == "CHECK-SOURCE-HIGHLIGHTED":
            return self._highlighted(c, begin)
        start, end = None, begin
        for _ in range(c.times):
            here = self.text.find(c.text, end)
            if here < 0:
                self._missing(c, end)
            start, end = here if start is None else start, here + len(c.text)
        return begin if start is None else start, end

    def _highlighted(self, c: _Check, begin: int) -> tuple[int, int]:
        start = self.text.find(c.text, begin)
        if start < 0:
            self._missing(c, begin)
        while start >= 0:
            column = start - (self.text.rfind("\n", 0, start) + 1)
            line_end = self.text.find("\n", start)
            below = "" if line_end < 0 else self.text[line_end + 1 :].partition("\n")[0]
            if below[column : column + len(c.text)] == "~" * len(c.text):
                return start, line_end + 1 + column + len(c.text)
            start = self.text.find(c.text, start + 1)
        self._fail(c, f'Expected to find "{c.text}" highlighted but it is not.\n{self.text}')

    def _nothing_forbidden(self, end: int) -> None:
        for c in self.never:
            here = self.text.find(c.text, self.never_from, end)
            if here >= 0:
                marked = self._marked(here, len(c.text))
                self._fail(c, f'Expected to not find "{c.text}" but found it\n{marked}')
        self.never = []

    def _missing(self, c: _Check, begin: int, what: str = "") -> NoReturn:
        self._fail(
            c,
            f'Expected to find {what}"{c.text}" but did not find it\nSearched string:\n'
            f"{self._marked(begin, 1)}",
        )

    def _marked(self, start: int, length: int) -> str:
        """The text with the place marked below its line."""
        line_end = self.text.find("\n", start)
        line_end = len(self.text) if line_end < 0 else line_end
        column = start - (self.text.rfind("\n", 0, start) + 1)
        mark = " " * column + "~" * max(length, 1) + " <--- HERE"
        return f"{self.text[:line_end]}\n{mark}{self.text[line_end:]}"

    def _fail(self, c: _Check, said: str) -> NoReturn:
        raise RuntimeError(f"{said}\nFrom {c.kind}: {c.text}\n")


__all__ = ["FileCheck"]
