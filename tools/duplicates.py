"""Pairs of files that share six or more like lines of code.

Two lines are alike if they differ only in names, numbers and strings. Comments, docstrings,
imports and blank lines do not count, nor do runs of thin lines, such as lists of names.
"""

from __future__ import annotations

import ast
import io
import keyword
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Final

__all__ = ["like_lines", "pairs"]

RUN: Final = 6

#: Fewer tokens than this in a run of six lines say too little.
THIN: Final = 36

_SILENT: Final = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    | {tokenize.ENCODING, tokenize.ENDMARKER}
)


def like_lines(source: str) -> list[tuple[int, str]]:
    r"""The lines of code by number, with names, numbers and strings made alike.

    >>> like_lines("import os\n\nfor x in range(3):\n    print('a', x)  # shown\n")
    [(3, 'for _ in _ ( 0 ) :'), (4, '_ ( "" , _ )')]
    """
    skipped = _skipped(source)
    found: dict[int, list[str]] = defaultdict(list)
    depth = 0  # of f-strings, which newer Pythons take apart
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind, line = tokenize.tok_name[token.type], token.start[0]
        depth -= kind == "FSTRING_END"
        if depth == 0 and token.type not in _SILENT and line not in skipped:
            found[line].append(_alike(kind, token.string))
        depth += kind == "FSTRING_START"
    return [(line, " ".join(words)) for line, words in sorted(found.items())]


def _alike(kind: str, text: str) -> str:
    if kind == "NAME":
        return text if keyword.iskeyword(text) else "_"
    return {"NUMBER": "0", "STRING": '""', "FSTRING_START": '""', "FSTRING_END": '""'}.get(
        kind, text
    )


def _skipped(source: str) -> set[int]:
    """The lines of imports and docstrings."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Import | ast.ImportFrom) or text:
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))  # type: ignore[attr-defined]
    return found


def pairs(sources: Mapping[Path, str]) -> list[tuple[Path, int, Path, int]]:
    """Each pair of files that share a run, once, with where it starts in either.

    Of one file with itself too, where the runs do not overlap.
    """
    places: dict[str, list[tuple[Path, int, int]]] = defaultdict(list)
    for path, source in sources.items():
        lines = like_lines(source)
        for at in range(len(lines) - RUN + 1):
            run = "\n".join(text for _, text in lines[at : at + RUN])
            if len(run.split()) >= THIN:
                places[run].append((path, at, lines[at][0]))
    return sorted(_first(places.values()).values())


def _first(
    places: Iterable[list[tuple[Path, int, int]]],
) -> dict[tuple[Path, Path], tuple[Path, int, Path, int]]:
    found: dict[tuple[Path, Path], tuple[Path, int, Path, int]] = {}
    for stand in places:
        for (a, i, line_a), (b, j, line_b) in combinations(stand, 2):
            if a != b or abs(i - j) >= RUN:
                found.setdefault((a, b), (a, line_a, b, line_b))
    return found
