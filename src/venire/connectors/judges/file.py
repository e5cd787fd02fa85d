"""`judges.yaml`, or `judges.toml`: the judges of a panel.

    classes: {spam: it sells something, ok: anything else}   # for every judge
    prompt: "{{ text }}"
    judges:
      - {id: strict, model: gpt-x, rpm: 500, price: {input: 0.15, output: 0.6}}
      - {id: local, model: llama, base_url: "http://127.0.0.1:8000/v1", temperature: 0}

What stands beside `judges` holds for every judge that does not say otherwise; a list of judges
alone will do too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from venire.connectors.judges.checks import BadKey, shown_path
from venire.connectors.judges.config import JudgeConfig
from venire.connectors.judges.needs import library
from venire.errors import FileError

__all__ = ["read_judges"]

#: The line of a path of keys, if it is known.
Lines = Callable[[tuple[str | int, ...]], int | None]


def read_judges(path: str | Path) -> tuple[JudgeConfig, ...]:
    r"""Read the judges of a file; an error names its line or key.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "judges.toml")
    ...     _ = file.write_text('prompt = "{{ text }}"\n[[judges]]\nid = "a"\nmodel = "m"\n')
    ...     read_judges(file)[0].id
    'a'
    """
    path = Path(path)
    content, lines = _toml(path) if path.suffix == ".toml" else _yaml(path)
    shared, judges, root = _parts(path, content)
    configs: list[JudgeConfig] = []
    for n, judge in enumerate(judges):
        where = (*root, n)
        if not isinstance(judge, Mapping):
            raise _error(path, lines, where, f"is {judge!r}, expected id, model, prompt and so on")
        try:
            configs.append(JudgeConfig.read({**shared, **judge}))
        except BadKey as bad:
            own = isinstance(bad.path[0], int) or bad.path[0] in judge or bad.path[0] not in shared
            full = (*where, *bad.path) if own else bad.path
            raise _error(path, lines, full, bad.message) from None
        first = next(i for i, config in enumerate(configs) if config.id == configs[n].id)
        if first != n:
            message = f"is {configs[n].id!r}, as {shown_path((*root, first))} is: rename one"
            raise _error(path, lines, (*where, "id"), message)
    return tuple(configs)


def _parts(path: Path, content: Any) -> tuple[dict[str, Any], list[Any], tuple[str | int, ...]]:
    """What all judges share, the judges, and the path of keys to them."""
    if isinstance(content, list) and content:
        return {}, content, ()
    if not isinstance(content, Mapping) or not isinstance(content.get("judges"), list):
        raise FileError(path, None, "has no list of judges: write `judges:` and one entry for each")
    if not content["judges"]:
        raise FileError(path, None, "the list of judges is empty: write one entry for each")
    return {k: v for k, v in content.items() if k != "judges"}, content["judges"], ("judges",)


def _error(path: Path, lines: Lines, where: tuple[str | int, ...], message: str) -> FileError:
    return FileError(path, lines(where), f"{shown_path(where)} {message}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(path, None, "this is not UTF-8 text: save the file in UTF-8") from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise FileError(path, None, f"cannot be read ({why}): check the path") from None


def _toml(path: Path) -> tuple[Any, Lines]:
    try:
        return tomllib.loads(_text(path)), lambda where: None
    except tomllib.TOMLDecodeError as error:
        raise FileError(path, None, f"this is not TOML: {error}") from None


def _yaml(path: Path) -> tuple[Any, Lines]:
    yaml = library("yaml")
    text = _text(path)
    try:
        tree = yaml.compose(text, yaml.SafeLoader)
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or str(error)
        line = None if mark is None else mark.line + 1
        raise FileError(path, line, f"this is not YAML: {why}") from None
    return content, lambda where: _line(tree, where)


def _line(node: Any, where: tuple[str | int, ...]) -> int | None:
    """The line of the last key of the path that is there."""
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
