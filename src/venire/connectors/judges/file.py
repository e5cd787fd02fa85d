"""`judges.yaml`, or `judges.toml`: the judges of a panel.

    classes: {spam: it sells something, ok: anything else}   # for every judge
    prompt: "{{ text }}"
    judges:
      - {id: strict, model: gpt-x, rpm: 500, price: {input: 0.15, output: 0.6}}
      - {id: local, model: llama, base_url: "http://127.0.0.1:8000/v1", temperature: 0}

What stands beside `judges` holds for every judge that does not say otherwise; a list of judges
alone is enough too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from venire.connectors.judges.batches import BatchBook
from venire.connectors.judges.cache import Cache
from venire.connectors.judges.config import JudgeConfig
from venire.connectors.judges.judge import Judge
from venire.connectors.judges.pairs import PairJudge
from venire.connectors.judges.prompt import Media
from venire.errors import FileError
from venire.files.trees import BadKey, Tree, read_tree, shown_path
from venire.tools.csv_rows import shown

AnyJudge = Judge | PairJudge


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
    tree = read_tree(path)
    shared, judges, root = _parts(path, tree.content)
    configs: list[JudgeConfig] = []
    for n, judge in enumerate(judges):
        where = (*root, n)
        if not isinstance(judge, Mapping):
            raise _error(
                path, tree, where, f"is {shown(str(judge))}, expected id, model, prompt and so on"
            )
        try:
            read = JudgeConfig.read({**shared, **judge})
            folder = read.files and str(path.parent / read.files)
            configs.append(replace(read, files=folder))
        except BadKey as bad:
            own = isinstance(bad.path[0], int) or bad.path[0] in judge or bad.path[0] not in shared
            full = (*where, *bad.path) if own else bad.path
            raise _error(path, tree, full, bad.message) from None
        first = next(i for i, config in enumerate(configs) if config.id == configs[n].id)
        if first != n:
            message = f"is {configs[n].id!r}, as {shown_path((*root, first))} is: rename one"
            raise _error(path, tree, (*where, "id"), message)
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


def _error(path: Path, tree: Tree, where: tuple[str | int, ...], message: str) -> FileError:
    return FileError(path, tree.line(where), f"{shown_path(where)} {message}")


@asynccontextmanager
async def open_judges(
    path: str | Path, cache: str | Path | None = None
) -> AsyncIterator[dict[str, AnyJudge]]:
    """The judges of a file by name; their answers are kept in the file `cache`, if one is given."""
    kept = Cache(cache)
    judges: dict[str, AnyJudge] = {}
    try:
        judges |= {judge.id: judge for judge in judges_of(path, kept)}
        yield judges
    finally:
        await asyncio.gather(*(judge.close() for judge in judges.values()))
        kept.close()


def judges_of(
    path: str | Path,
    cache: Cache,
    files: str | Path | None = None,
    book: BatchBook | None = None,
) -> list[AnyJudge]:
    """The judges of a file, which the caller closes.

    `files` is the folder of images and sounds where the file of judges names none. With a `book`
    questions are sent as batches.
    """
    media: dict[tuple[str, bool], Media] = {}
    judges: list[AnyJudge] = []
    for config in read_judges(path):
        folder = config.files or files
        shared = (str(folder), config.fetch_private)
        seen = media.setdefault(shared, Media(folder, config.fetch_private))
        try:
            judge = Judge(config, cache, seen, book)
        except BadKey as bad:
            raise FileError(path, None, f"judge {config.id}: {bad}") from None
        judges.append(judge if config.pair is None else PairJudge(judge))
    return judges
