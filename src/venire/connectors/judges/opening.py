"""All judges of a file, opened and closed together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from venire.connectors.judges.cache import Cache
from venire.connectors.judges.checks import BadKey
from venire.connectors.judges.config import JudgeConfig
from venire.connectors.judges.file import read_judges
from venire.connectors.judges.judge import Judge
from venire.connectors.judges.pairs import PairJudge
from venire.errors import FileError

__all__ = ["AnyJudge", "judges_of", "open_judges"]

AnyJudge = Judge | PairJudge


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


def judges_of(path: str | Path, cache: Cache) -> list[AnyJudge]:
    """The judges of a file, which the caller closes."""
    return [_made(Path(path), config, cache) for config in read_judges(path)]


def _made(path: Path, config: JudgeConfig, cache: Cache) -> AnyJudge:
    try:
        judge = Judge(config, cache)
    except BadKey as bad:
        raise FileError(path, None, f"judge {config.id}: {bad}") from None
    return judge if config.pair is None else PairJudge(judge)
