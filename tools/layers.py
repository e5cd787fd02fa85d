"""The picture of the layers in docs/architecture.md: `python -m tools.layers` writes it.

An arrow leads from a part of the package to each part that it imports, lazily or not, unless it
gets there by way of others. `errors`, which everybody imports, is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools.modules import read_package

__all__ = ["PAGE", "picture", "replaced"]

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "architecture.md"
BEGINS: Final = "```mermaid\nflowchart TD\n"


def picture() -> str:
    """The picture, as Mermaid has it."""
    direct = _imports()
    lines = []
    for name in sorted(direct, key=lambda one: (-len(_reached(direct, one)), one)):
        beyond = {far for near in direct[name] for far in _reached(direct, near)}
        if shown := sorted(direct[name] - beyond):
            lines.append(f"    {name} --> {' & '.join(shown)}")
    return BEGINS + "\n".join(lines) + "\n```\n"


def _imports() -> dict[str, set[str]]:
    """Who imports whom: the modules and folders of the package, without `errors`."""
    found: dict[str, set[str]] = {}
    for name, module in read_package(ROOT / "src" / "venire").items():
        part = _part(name)
        if part is None:
            continue
        for node in ast.walk(module.tree):
            named: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module:
                named = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            found.setdefault(part, set()).update(filter(None, map(_part, named)))
    return {part: (others & found.keys()) - {part} for part, others in found.items()}


def _part(name: str) -> str | None:
    """The part of the package that a module is in."""
    words = name.split(".")
    known = len(words) > 1 and words[0] == "venire" and words[1] not in ("errors", "__main__")
    return words[1] if known else None


def _reached(direct: Mapping[str, set[str]], name: str) -> set[str]:
    """All that a part imports, by way of others too."""
    found: set[str] = set()
    left = list(direct[name])
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left.extend(direct[one])
    return found


def replaced(text: str) -> str:
    """The page with the picture of today."""
    start = text.index(BEGINS)
    end = text.index("```\n", start + len("```mermaid")) + len("```\n")
    return text[:start] + picture() + text[end:]


if __name__ == "__main__":
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
