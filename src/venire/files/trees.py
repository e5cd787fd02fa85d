"""Files of nested keys (YAML, TOML, JSON), and checks of the values in them.

An error names the key or the line, what it is and what was expected.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from venire.errors import FileError, InputError
from venire.tools.lazy import library
from venire.tools.untrusted import parse_json

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


class BadKey(InputError):
    """The value of a key is wrong; `path` leads to it.

    >>> str(BadKey(("rpm",), "is 0, expected a number above 0"))
    'rpm is 0, expected a number above 0'
    """

    def __init__(self, path: tuple[str | int, ...], message: str) -> None:
        """The path to the key, and what is wrong with it."""
        self.path, self.message = path, message
        super().__init__(f"{shown_path(path)} {message}".strip())


def shown_path(path: tuple[str | int, ...]) -> str:
    """A path of keys as text.

    >>> shown_path(("judges", 1, "price", "input"))
    'judges[1].price.input'
    """
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def check_text(path: Keys, value: Any) -> str:
    """Text with something in it."""
    if not isinstance(value, str) or not value.strip():
        raise BadKey(path, f"is {value!r}, expected text")
    return value


def check_name(path: Keys, value: Any) -> str:
    """A name; YAML reads an unquoted yes or no as a truth value."""
    if isinstance(value, bool):
        word = "yes" if value else "no"
        raise BadKey(path, f'is {str(value).lower()}, expected text: put it in quotes, "{word}"')
    return check_text(path, str(value) if isinstance(value, int | float) else value)


def check_url(path: Keys, value: Any) -> str:
    """An address without a password, and without a slash at its end."""
    try:
        parts = urlsplit(check_text(path, value))
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port
        whole = False
    if not whole:
        raise BadKey(
            path,
            f"is {value!r}, expected http://... or https://..., such as https://api.openai.com/v1",
        )
    if parts.username or parts.password:
        raise BadKey(path, "has a password in it: name the variable of the key with api_key_env")
    return str(value).rstrip("/")


def check_number(path: Keys, value: Any) -> float:
    """A number above 0."""
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not (0 < value < math.inf):
        raise BadKey(path, f"is {value!r}, expected a number above 0")
    return float(value)


def check_whole(least: int) -> Callable[[Keys, Any], int]:
    """A whole number, `least` or more."""

    def check(path: Keys, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise BadKey(path, f"is {value!r}, expected a whole number, {least} or more")
        return value

    return check


def check_truth(path: Keys, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise BadKey(path, f"is {value!r}, expected true or false")
    return value


def check_classes(path: Keys, value: Any) -> dict[str, str]:
    """Names of classes with their descriptions, which may be empty.

    >>> check_classes(("classes",), ["spam", "ok"])
    {'spam': '', 'ok': ''}
    """
    if not isinstance(value, list | Mapping):
        raise BadKey(path, f"is {value!r}, expected a list of names, or names with descriptions")
    where: list[Any] = [str(key) for key in value]
    if isinstance(value, list):
        where = list(range(len(value)))
    names = [check_name((*path, key), name) for key, name in zip(where, value, strict=True)]
    if len(set(names)) < max(2, len(names)):
        raise BadKey(path, f"is {names}, expected two or more different names")
    about = value.values() if isinstance(value, Mapping) else [""] * len(names)
    return {
        name: "" if text is None else str(text) for name, text in zip(names, about, strict=True)
    }
