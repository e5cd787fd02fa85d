"""Indented blocks of docstrings, shown as they are written.

The docstrings of the library set formulas and code apart by indenting them, as Markdown does.
Sphinx reads an indented block as a quotation unless `::` stands before it.
"""

from __future__ import annotations

from typing import Any

__all__ = ["mark_blocks"]


def mark_blocks(app: Any, what: str, name: str, made: Any, options: Any, lines: list[str]) -> None:
    """Put `::` before each block that is indented more than the paragraph before it.

    >>> lines = ["The sum", "", "    a + b", "", "is known."]
    >>> mark_blocks(None, "", "", None, None, lines)
    >>> lines
    ['The sum', '', '::', '', '    a + b', '', 'is known.']
    """
    marked, before, indented = list[str](), "", False
    for line in lines:
        deep = line.startswith("    ")
        starts = deep and not indented and marked[-1:] == [""] and not before.startswith(" ")
        if starts:
            marked += ["::", ""]
        if line.strip():
            before, indented = line, deep
        marked.append(line)
    lines[:] = marked
