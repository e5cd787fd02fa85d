"""Files of nested keys: YAML, TOML and JSON, by their suffix. An error names the line."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from venire.errors import FileError
from venire.tools.lazy import library
from venire.tools.untrusted import parse_json

__all__ = ["Tree", "parse_tree", "read_text", "read_toml", "read_tree"]

Keys = tuple[str | int, ...]


class Tree(NamedTuple):
    """The content of a file, and the line of a path of keys: of its last key that is there.

    Only YAML says where a key is; elsewhere the line is None.
    """

    content: Any
    line: Callable[[Keys], int | None]


def read_tree(path: Path) -> Tree:
    r"""Read a .toml or .json file, or any other as YAML.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "panel.yaml")
    ...     _ = path.write_text("labelers:\n- id: ann\n  price: 2\n")
    ...     tree = read_tree(path)
    >>> tree.content, tree.line(("labelers", 0, "price"))
    ({'labelers': [{'id': 'ann', 'price': 2}]}, 3)
    """
    return parse_tree(read_text(path), path)


def parse_tree(text: str, path: Path) -> Tree:
    r"""The content of a text, which is or could be a file of this name.

    >>> parse_tree('name = "posts"\nclasses = ["spam", "ok"]', Path("stream.toml")).content
    {'name': 'posts', 'classes': ['spam', 'ok']}
    """
    if path.suffix == ".toml":
        return Tree(_toml(path, text), _unknown)
    return _json(path, text) if path.suffix == ".json" else _yaml(path, text)


def read_text(path: Path) -> str:
    """The text of a file in UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(path, None, "this is not UTF-8 text: save the file in UTF-8") from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise FileError(path, None, f"cannot be read ({why}): check the path") from None


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file, whatever its suffix."""
    return _toml(path, read_text(path))


def _toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileError(path, None, f"this is not TOML: {error}") from None


def _json(path: Path, text: str) -> Tree:
    try:
        return Tree(parse_json(text), _unknown)
    except json.JSONDecodeError as error:
        raise FileError(path, error.lineno, f"this is not JSON: {error.msg}") from None


def _unknown(where: Keys) -> None:
    return None


def _yaml(path: Path, text: str) -> Tree:
    yaml = library("yaml", "judges")

    class Loader(yaml.SafeLoader):  # type: ignore[name-defined,misc] # it has no types
        """Without aliases: nine lines of them make a gigabyte."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                event = self.peek_event()
                why = f"*{event.anchor} is an alias, expected what it stands for"
                raise yaml.composer.ComposerError(None, None, why, event.start_mark)
            return super().compose_node(parent, index)

    try:
        nodes = yaml.compose(text, Loader)
        content = yaml.load(text, Loader)
    except RecursionError:
        raise FileError(path, None, "this is nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or str(error)
        line = None if mark is None else mark.line + 1
        raise FileError(path, line, f"this is not YAML: {why}") from None
    return Tree(content, lambda where: _line(nodes, where))


def _line(node: Any, where: Keys) -> int | None:
    line = None if node is None else node.start_mark.line + 1
    for part in where:
        inside = getattr(node, "value", None)
        if isinstance(part, int) and isinstance(inside, list) and part < len(inside):
            found = inside[part] if not isinstance(inside[part], tuple) else None
            start = found
        else:
            pairs = [p for p in inside or [] if isinstance(p, tuple) and p[0].value == str(part)]
            start, found = pairs[-1] if pairs else (None, None)
        if found is None or start is None:
            return line
        node, line = found, start.start_mark.line + 1
    return line
