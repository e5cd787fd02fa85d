"""How easy the code is to enter, in numbers: `scripts/measure`, or `python -m tools.measure`.

The numbers of one revision are to be compared with those of another:
`python -m tools.measure --root ../other-checkout` measures another tree. `--ceilings` fails where
one is above what `CEILINGS` allows, as `scripts/check` does; lower them whenever a number falls.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tools.duplicates import pairs
from tools.modules import Module, longest_chain, read_package

__all__ = ["CEILINGS", "above", "measure"]

#: What each may be at most, a little above what it is: nobody makes it worse by mistake.
CEILINGS: Final = {
    "modules": 300,
    "lines": 86_300,
    "largest folders": 20,
    "lines of a file": 650,
    "lines of the file of Algorithm 1": 155,
    "lines of a function": 100,
    "longest import chain from the server": 20,
    "duplicate pairs": 38,
    "private reaches": 0,
    "edits to add a policy": 2,
}

_DEFINED: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
#: What a named tuple offers under an underscore.
_OFFERED: Final = frozenset({"_replace", "_asdict", "_make", "_fields", "_field_defaults"})

_GENERATED: Final = "do not edit"

Modules = Mapping[str, Module]


def measure(root: Path) -> dict[str, Any]:
    """All figures of the package in `root/src/venire`."""
    modules = read_package(root / "src" / "venire")
    folders = _folders(modules)
    chain = longest_chain(modules, "venire.server")
    private = set().union(*(_private(module) for module in modules.values()))
    reaches = sorted(reach for module in modules.values() for reach in _reaches(module, private))
    policies = _mentions(modules)
    least = min(policies, key=lambda name: (len(policies[name]), name))
    return {
        "modules": len(modules),
        "lines": sum(len(m.source.splitlines()) for m in modules.values()),
        "largest folders": dict(folders.most_common(5)),
        "lines of a file": _spread([len(m.source.splitlines()) for m in modules.values()]),
        "lines of the file of Algorithm 1": _lines_of("Greedy", modules),
        "lines of a function": _spread(
            [_length(f) for m in modules.values() for f in _functions(m.tree)]
        ),
        "longest import chain from the server": {"modules": len(chain), "chain": chain},
        "duplicate pairs": [f"{a}:{i} ~ {b}:{j}" for a, i, b, j in pairs(_written(modules))],
        "private reaches": reaches,
        "edits to add a policy": {"policy": least, "places": policies[least]},
        "public names": len(_public(modules["venire"])),
    }


def above(found: Mapping[str, Any]) -> list[str]:
    """What is above its ceiling, a line each."""
    lines = []
    for name, ceiling in CEILINGS.items():
        value = found[name]
        if isinstance(value, dict):
            numbers = [len(part) if isinstance(part, list) else part for part in value.values()]
            value = max(number for number in numbers if isinstance(number, int))
        elif isinstance(value, list):
            value = len(value)
        if value > ceiling:
            lines.append(f"{name}: {value}, and at most {ceiling} are allowed (tools/measure.py)")
    return lines


def _folders(modules: Modules) -> Counter[str]:
    """How many modules each folder holds, `__init__` not counted."""
    inner = [m for m in modules.values() if not m.is_package]
    return Counter(m.name.rpartition(".")[0] for m in inner)


def _spread(lengths: Sequence[int]) -> dict[str, int]:
    """The middle, what nine of ten keep within, and the most."""
    nine = statistics.quantiles(lengths, n=10)[-1]
    return {"median": round(statistics.median(lengths)), "p90": round(nine), "max": max(lengths)}


def _lines_of(name: str, modules: Modules) -> int:
    """Lines of the file that defines a class."""
    for module in modules.values():
        if any(isinstance(n, ast.ClassDef) and n.name == name for n in module.tree.body):
            return len(module.source.splitlines())
    return 0


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body without the docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def _written(modules: Modules) -> dict[Path, str]:
    """The sources that somebody wrote: not those that a script makes of others."""
    return {
        Path(*m.path.parts[m.path.parts.index("venire") :]): m.source
        for m in modules.values()
        if _GENERATED not in m.source.partition("\n\n")[0]
    }


def _private(module: Module) -> set[str]:
    """The private names that a module defines."""
    nodes = list(ast.walk(module.tree))
    found = {n.name for n in nodes if isinstance(n, _DEFINED)}
    found |= {n.attr for n in nodes if isinstance(n, ast.Attribute) and _of_self(n)}
    found |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def _reaches(module: Module, private: set[str]) -> Iterator[str]:
    """Uses of private names that other modules of the package define."""
    foreign = private - _private(module) - _OFFERED
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute) and not _of_self(node):
            names = [node.attr]
        else:
            continue
        yield from (f"{module.name}:{node.lineno} {name}" for name in names if name in foreign)


def _of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def _mentions(modules: Modules) -> dict[str, list[str]]:
    """Where the code names each policy outside its own file; docstrings do not count.

    The policy that is named least is named only where every new one must be.
    """
    exported = set(_public(modules["venire.scheduling"])) - {"Policy"}
    homes = {
        node.name: module.name
        for module in modules.values()
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and node.name in exported and _is_policy(node)
    }
    found: dict[str, list[str]] = {name: [] for name in homes}
    for module in modules.values():
        for name, line in _named(module.tree):
            if name in homes and homes[name] != module.name:
                found[name].append(f"{module.name}:{line}")
    return found


def _is_policy(node: ast.ClassDef) -> bool:
    methods = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
    return "kernels" in methods or any("Policy" in ast.unparse(base) for base in node.bases)


def _named(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, node.lineno
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.name, alias.lineno) for alias in node.names)


def _public(module: Module) -> list[str]:
    """The names in `__all__`, or those that a package loads when they are used."""
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    if "attach(__name__" not in module.source:
        return []
    block = next(node for node in module.tree.body if isinstance(node, ast.If))
    return [a.name for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names]


def _show(found: Mapping[str, Any], details: bool) -> None:
    for name, value in found.items():
        if isinstance(value, list):
            print(f"{name}: {len(value)}")
            lines = value
        elif isinstance(value, dict):
            lists = {key: part for key, part in value.items() if isinstance(part, list)}
            short = {k: len(p) if k in lists and k != "chain" else p for k, p in value.items()}
            print(f"{name}: " + ", ".join(f"{k} {p}" for k, p in short.items() if k != "chain"))
            lines = [line for part in lists.values() for line in part]
        else:
            print(f"{name}: {value}")
            lines = []
        for line in lines if details else ():
            print(f"    {line}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="Measure how easy the code is to enter.")
    parser.add_argument("--root", type=Path, default=Path(), help="the checkout to measure")
    parser.add_argument("--details", action="store_true", help="list every place")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--ceilings", action="store_true", help="only say what is above them")
    given = parser.parse_args(arguments)
    if not (given.root / "src" / "venire").is_dir():
        parser.error(f"there is no src/venire in {given.root.resolve()}")
    found = measure(given.root)
    if given.ceilings:
        lines = above(found)
        print("\n".join(lines) or "nothing is above its ceiling")
        return 1 if lines else 0
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        _show(found, given.details)
    return 0


if __name__ == "__main__":
    sys.exit(main())
