"""The modules of a package as syntax trees, and who imports whom."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Module", "imports", "longest_chain", "read_package"]


@dataclass(frozen=True)
class Module:
    """A file of the package under its dotted name."""

    name: str
    path: Path
    source: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__` of a folder."""
        return self.path.name == "__init__.py"


def read_package(folder: Path) -> dict[str, Module]:
    """All modules below a folder, by dotted name."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        source = path.read_text()
        found[name] = Module(name, path, source, ast.parse(source))
    return found


def imports(module: Module, modules: Mapping[str, Module]) -> set[str]:
    """The modules of the package that a module imports when it is loaded.

    What is imported inside a function or for type checkers alone is not; a package that a module
    lies in is not either, though Python loads it first.
    """
    found: set[str] = set()
    for node in _loaded(module.tree.body):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif node.module and node.level == 0:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            inner = names & modules.keys()
            found |= inner
            if len(inner) < len(names):
                found.add(node.module)
    return {name for name in found if name in modules and name != module.name}


def _loaded(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from _loaded(node.body + node.orelse)
        elif isinstance(node, ast.Try):
            yield from _loaded(node.body + [s for h in node.handlers for s in h.body])


def longest_chain(modules: Mapping[str, Module], start: str) -> list[str]:
    """The longest chain of imports that begins in a module below `start`.

    Where modules import each other in a circle, the chain does not go round.
    """
    edges = {name: sorted(imports(module, modules)) for name, module in modules.items()}
    best: dict[str, list[str]] = {}

    def chain(name: str, above: frozenset[str]) -> list[str]:
        if name not in best:
            here = above | {name}
            tails = [chain(other, here) for other in edges[name] if other not in here]
            best[name] = [name, *max(tails, key=len, default=[])]
        return best[name]

    starts = [name for name in modules if name == start or name.startswith(f"{start}.")]
    return max((chain(name, frozenset()) for name in starts), key=len, default=[])
