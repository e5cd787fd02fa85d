"""`venire datasets`: public label sets, downloaded from their sources and verified."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, screen
from venire.errors import InputError, UnknownName

if TYPE_CHECKING:
    from venire.datasets import DataSet


ACTION = "list (all of them, or the files of one), fetch or path."
NAME = "The name of a set, as in the list."
DATA = "The folder of the sets. [default: $VENIRE_DATA, or venire/datasets in your cache folder]"
FROM = "With fetch: a folder with the files, downloaded manually."


def datasets(
    action: Annotated[str, typer.Argument(metavar="ACTION", help=ACTION)],
    name: Annotated[str | None, typer.Argument(metavar="NAME", help=NAME)] = None,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help=DATA)] = None,
    given: Annotated[Path | None, typer.Option("--from", metavar="DIR", help=FROM)] = None,
    as_json: AsJson = False,
) -> None:
    """List public label sets, fetch one, or print its path.

    A set is downloaded from its source at a fixed commit, verified by SHA-256 and converted to two
    files, labels.csv and truth.csv. An interrupted download is resumed.
    """
    actions: dict[str, Callable[[str | None, Path | None, Path | None], Any]] = {
        "list": _list,
        "fetch": _fetch,
        "path": _path,
    }
    if action not in actions:
        raise UnknownName("action", action, actions)
    if given is not None and action != "fetch":
        raise InputError(f"--from is an option of fetch, not of {action}: leave it out")
    found = actions[action](name, data, given)
    if isinstance(found, list):
        lines = _table(found)
    else:
        lines = _lines(found) if action == "list" else iter([found["path"]])
    screen.show(found, lines, as_json)


def _list(name: str | None, data: Path | None, given: Path | None) -> Any:
    from venire.datasets import data_set, data_sets

    if name is not None:
        return _details(data_set(name), data)
    return [_details(each, data) for each in data_sets().values()]


def _fetch(name: str | None, data: Path | None, given: Path | None) -> Any:
    from venire.datasets import data_set, fetch

    chosen = data_set(_named(name, "fetch"))
    if given is not None and not given.is_dir():
        raise InputError(f"got --from {given}, expected a folder: give the one with the files")
    with screen.working(f"fetching {chosen.name}") as working:

        def report(file: str, size: int) -> None:
            working(f"fetching {file}, {size / 1e6:,.1f} MB")

        fetch(chosen.name, data, given, told=report)
    return _details(chosen, data)


def _path(name: str | None, data: Path | None, given: Path | None) -> Any:
    from venire.datasets import data_set, path_of

    chosen = data_set(_named(name, "path"))
    path_of(chosen.name, data)
    return _details(chosen, data)


def _named(name: str | None, action: str) -> str:
    if name is None:
        raise InputError(f"{action} needs a name: see venire datasets list")
    return name


def _details(chosen: DataSet, data: Path | None) -> dict[str, Any]:
    from venire.datasets import cache_folder, is_fetched

    counts = {key: getattr(chosen, key) for key in ("tasks", "workers", "labels", "classes")}
    return {
        "name": chosen.name,
        "about": chosen.about,
        **counts,
        "licence": chosen.licence,
        "repeats": chosen.repeats,
        "fetched": is_fetched(chosen, data),
        "path": str((data or cache_folder()) / chosen.name),
        "labels_sha256": chosen.labels_sha256,
        "truth_sha256": chosen.truth_sha256,
        "files": [{"url": file.url(), **asdict(file)} for file in chosen.raw],
    }


def _table(found: list[dict[str, Any]]) -> Iterator[str]:
    counts = ("tasks", "workers", "labels", "classes")
    yield f"{'name':20}{''.join(f'{c:>9}' for c in counts)}  {'licence':11}{'here':5}about"
    for each in found:
        numbers = "".join(f"{each[count]:>9,}" for count in counts)
        here = "yes" if each["fetched"] else "no"
        yield f"{each['name']:20}{numbers}  {each['licence']:11}{here:5}{each['about']}"


def _lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found['name']}: {found['about']}"
    yield (
        f"{found['tasks']:,} tasks, {found['workers']:,} workers, {found['labels']:,} labels, "
        f"{found['classes']} classes; licence: {found['licence']}"
    )
    yield f"{'in' if found['fetched'] else 'not yet in'} {found['path']}"
    yield ""
    yield f"labels.csv  sha256 {found['labels_sha256']}"
    yield f"truth.csv   sha256 {found['truth_sha256']}"
    yield ""
    yield "made from"
    for file in found["files"]:
        yield f"{file['url']}  sha256 {file['sha256'] or 'not recorded'}"
