"""`venire serve`: the HTTP server."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import warnings
from dataclasses import asdict, dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any

import typer

from venire.cli.shared import screen, stores
from venire.errors import InputError, MissingExtra, VenireError

STORAGE = "The store: sqlite:///FILE or postgresql://... [default: sqlite:///venire.db]"
HOST = "The address to listen on. [default: 127.0.0.1]"
PORT = "The port; 0 for any free one. [default: 8400]"
JSON = "Write the log, on stderr, and what is said on stdout, as one JSON object per line."
CONFIG = "A file of settings. [default: venire.toml, if there is one]"
ARCHIVE = "The folder for what streams archive (their setting retention). [default: none]"
STANDBY = "Wait while another server owns the store, and take over when it is gone."
SHARED = "Share the streams of a PostgreSQL store with the other servers that are started so."
ADDRESS = (
    "With --shared: where the others reach this server, http://HOST:PORT. [default: where it "
    "listens]"
)
FOLDER = "The folder to write them into; created if there is none."
FORCE = "Overwrite files of the same name."
LEVEL = "The log level: debug, info, warning or error. [default: info]"


@dataclass(frozen=True)
class Serving:
    """The settings of the server that are options too."""

    storage: Annotated[str | None, typer.Option(metavar="URL", help=STORAGE)] = None
    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help=HOST)] = None
    port: Annotated[int | None, typer.Option(metavar="PORT", help=PORT)] = None
    log_level: Annotated[str | None, typer.Option(metavar="LEVEL", help=LEVEL)] = None
    archive: Annotated[Path | None, typer.Option(metavar="FOLDER", help=ARCHIVE)] = None
    standby: Annotated[bool, typer.Option("--standby", help=STANDBY)] = False
    shared: Annotated[bool, typer.Option("--shared", help=SHARED)] = False
    address: Annotated[str | None, typer.Option(metavar="URL", help=ADDRESS)] = None


def serve(
    *,
    serving: Serving,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help=CONFIG)] = None,
    as_json: Annotated[bool, typer.Option("--json", help=JSON)] = False,
) -> None:
    """Serve streams over HTTP: items in, work out, labels in, verdicts out, nothing lost.

    The first start on an empty store prints an admin key, once, or writes it into the file that
    VENIRE_ADMIN_KEY_FILE names. Every setting can also be given as a variable VENIRE_... or in
    venire.toml, and some only there: docs/serve.md lists them. Ctrl-C or SIGTERM shuts it down
    gracefully.
    """
    given = {name: x for name, x in asdict(serving).items() if x is not None and x is not False}
    if as_json:
        given["log_format"] = "json"
    try:
        with warnings.catch_warnings(record=True) as early:
            from venire.server.edge.log import as_line
            from venire.server.process import run_server
    except ImportError as error:
        raise MissingExtra(error.name or "fastapi", "serve") from error
    settings = _settings(given, config)
    try:
        if settings.log_format == "json":
            logging.captureWarnings(True)  # into the log, which is JSON
        run_server(settings, lambda line: print(line, flush=True), early)
    except VenireError as error:
        if settings.log_format != "json":
            raise
        print(as_line(settings, str(error), "error"), file=sys.stderr)
        raise typer.Exit(2) from None
    except OSError as error:
        if isinstance(error, InputError | MissingExtra) or not error.errno:
            raise
        raise InputError(f"cannot listen: {error}") from error
    except SystemExit:
        screen.say("error: the server did not start, see above")
        raise typer.Exit(2) from None


def deploy_files(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help=FOLDER)],
    force: Annotated[bool, typer.Option("--force", help=FORCE)] = False,
) -> None:
    """Write the files for an operator: systemd, proxies, containers, Prometheus and Grafana.

    docs/deploy.md says what each is for. Nothing is started or installed.
    """
    packaged = files("venire") / "deploy"
    if not packaged.is_dir():  # not installed from a wheel: a clone has them at its root
        packaged = files("venire") / ".." / ".." / "deploy"
    with as_file(packaged) as found:
        names = sorted(path.name for path in found.iterdir() if path.is_file())
        there = [name for name in names if (folder / name).exists()]
        if there and not force:
            raise InputError(f"{folder / there[0]} exists already: give --force to overwrite it")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name in names:
                shutil.copyfile(found / name, folder / name)
                print(folder / name)
        except OSError as error:
            raise InputError(f"cannot write into {folder}: {error.strerror}") from error


def _settings(given: dict[str, Any], config: Path | None = None) -> Any:
    """The settings: options override variables, which override the file, then the defaults."""
    from pydantic import ValidationError

    from venire.server.edge.settings import ServerSettings

    path = stores.config_path(config)
    written = stores.read(path)
    stores.check_keys(path, written, ServerSettings.model_fields)
    named = {name.upper() for name in os.environ}
    filed = {key: value for key, value in written.items() if f"VENIRE_{key.upper()}" not in named}
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        return ServerSettings(**{**filed, **chosen})
    except ValidationError as error:
        fault = error.errors()[0]
        name = "_".join(str(part) for part in fault["loc"])
        variable = f"VENIRE_{name.upper()}"
        where = f" in {path}" if name in filed else f" in {variable}" if variable in named else ""
        where = "" if name in chosen else where
        raise InputError(
            f"the setting {name}{where} is {fault['input']!r}: {fault['msg']}"
        ) from error
