"""What is in deploy/: instructions, names and settings that exist."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from venire import __version__
from venire.cli import main
from venire.server import ServerSettings
from venire.server.edge.monitoring import SIZES, STREAM_FIGURES, Metrics
from venire.server.runtime.health import Condition
from venire.server.store import WriterStats

ROOT = Path(__file__).parent.parent.parent.parent
DEPLOY = ROOT / "deploy"


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, a pair of its word and the rest each."""
    text = (DEPLOY / "Dockerfile").read_text()
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    found = [line.split(maxsplit=1) for line in lines if line.strip()]
    return [(word, rest) for word, rest in found]


def values(word: str) -> list[str]:
    return [rest for other, rest in instructions() if other == word]


def test_the_image_has_two_stages_pinned_to_one_python() -> None:
    known = {
        "FROM", "ENV", "WORKDIR", "RUN", "COPY", "LABEL", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL",
        "HEALTHCHECK", "ENTRYPOINT", "CMD",
    }  # fmt: skip
    assert {word for word, _ in instructions()} <= known
    first, last = values("FROM")
    assert first == f"{last} AS build"
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", last)


def test_the_image_does_not_run_as_root() -> None:
    words = [word for word, _ in instructions()]
    assert values("USER") == ["10001:10001"]
    assert not {"RUN", "COPY"} & set(words[words.index("USER") :])


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"]
    for rest in values("COPY"):
        if "--from=" in rest:
            assert rest == "--from=build /opt/venire /opt/venire"
            continue
        *sources, _ = rest.split()
        for source in sources:
            assert (ROOT / source).exists()
            assert source in kept
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {pyproject["readme"], *pyproject["license-files"]} <= set(kept)


def test_only_the_data_folder_is_written_to() -> None:
    variables = dict(pair.split("=", 1) for rest in values("ENV") for pair in shlex.split(rest))
    assert variables["NUMBA_CACHE_DIR"].startswith("/data/")
    assert values("WORKDIR")[-1] == "/data"
    assert json.loads(values("VOLUME")[0]) == ["/data"]
    settings = [name for name in variables if name.startswith("VENIRE_")]
    assert {name.removeprefix("VENIRE_").lower() for name in settings} <= set(
        ServerSettings.model_fields
    )


def test_the_image_is_probed_where_it_listens() -> None:
    (port,) = values("EXPOSE")
    assert int(port) == ServerSettings.model_fields["port"].default
    (probe,) = values("HEALTHCHECK")
    command = json.loads(probe[probe.index("[") :])
    assert f"http://127.0.0.1:{port}/health" in command[-1]
    compile(command[-1], "HEALTHCHECK", "exec")


def test_the_command_of_the_image_exists(capsys: pytest.CaptureFixture[str]) -> None:
    words = json.loads(values("ENTRYPOINT")[0]) + json.loads(values("CMD")[0])
    assert words[0] == "venire"
    assert main([*words[1:], "--help"]) == 0


def compose() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def test_compose_starts_the_server_after_its_database() -> None:
    services = compose()["services"]
    server, db = services["venire"], services["db"]
    assert server["depends_on"] == {"db": {"condition": "service_healthy"}}
    assert "healthcheck" in db
    assert (server["read_only"], server["cap_drop"]) == (True, ["ALL"])
    used = {volume.split(":")[0] for one in services.values() for volume in one["volumes"]}
    assert used == set(compose()["volumes"])
    assert (DEPLOY / server["build"]["context"] / server["build"]["dockerfile"]).samefile(
        DEPLOY / "Dockerfile"
    )
    names = [name for name in server["environment"] if name.startswith("VENIRE_")]
    assert {name.removeprefix("VENIRE_").lower() for name in names} <= set(
        ServerSettings.model_fields
    )
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    text = (DEPLOY / "venire.service").read_text()
    program = re.search(r"^ExecStart=(\S+)", text, re.MULTILINE)
    assert program is not None
    unit = tmp_path / "venire.service"
    unit.write_text(text.replace(program[1], "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_runs_a_command_that_exists(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DEPLOY / "venire.service").read_text()
    (line,) = re.findall(r"^ExecStart=\S+/venire (.+)$", text, re.MULTILINE)
    assert main([*line.split(), "--help"]) == 0
    stop = re.search(r"^TimeoutStopSec=(\d+)", text, re.MULTILINE)
    assert stop is not None
    assert int(stop[1]) > ServerSettings.model_fields["grace"].default


def exported() -> set[str]:
    """The names of all samples that a server may export."""
    metrics = Metrics()
    metrics.recorder("GET", "/health")(200, 0.001)
    condition = Condition({}, WriterStats(), 0, dict.fromkeys(SIZES, 1), [])
    page = metrics.page([], 0, True, condition).decode()
    families = list(text_string_to_metric_families(page))
    samples = {sample.name for family in families for sample in family.samples}
    declared = {family.name + ("_total" if family.type == "counter" else "") for family in families}
    return samples | declared | {f"venire_stream_{name}" for name in STREAM_FIGURES}


def test_the_board_shows_only_metrics_that_exist() -> None:
    board = json.loads((DEPLOY / "grafana.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [one["query"] for one in board["templating"]["list"]]
    named = {name for text in asked for name in re.findall(r"\b(?:venire|process)_\w+", text)}
    assert len(named) > 30
    assert named - exported() == set()


def test_the_alerts_are_about_metrics_that_exist() -> None:
    yaml = pytest.importorskip("yaml")
    (group,) = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"]
    assert all(
        {"alert", "expr", "for", "labels", "annotations"} == set(one) for one in group["rules"]
    )
    asked = [one["expr"] for one in group["rules"]]
    named = {name for text in asked for name in re.findall(r"\bvenire_\w+", text)}
    assert len(named) == 5
    assert named - exported() == set()


def test_the_panels_of_the_board_are_distinct_and_do_not_overlap() -> None:
    panels = json.loads((DEPLOY / "grafana.json").read_text())["panels"]
    cells = [
        (panel["gridPos"]["x"] + dx, panel["gridPos"]["y"] + dy)
        for panel in panels
        for dx in range(panel["gridPos"]["w"])
        for dy in range(panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_the_files_are_written_and_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "deploy"
    assert main(["deploy-files", str(folder)]) == 0
    there = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert there == {path.name: path.read_bytes() for path in DEPLOY.iterdir() if path.is_file()}
    assert sorted(capsys.readouterr().out.split()) == sorted(map(str, folder.iterdir()))
    (folder / "nginx.conf").write_text("mine")
    assert main(["deploy-files", str(folder)]) == 2
    assert "exists already: give --force" in capsys.readouterr().err
    assert (folder / "nginx.conf").read_text() == "mine"
    assert main(["deploy-files", str(folder), "--force"]) == 0
    assert (folder / "nginx.conf").read_bytes() == there["nginx.conf"]
    capsys.readouterr()
    assert main(["deploy-files", str(folder / "nginx.conf")]) == 2
    assert "cannot write into" in capsys.readouterr().err


def test_the_wheel_has_the_files_where_the_command_looks() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert built["targets"]["wheel"]["force-include"] == {"deploy": "venire/deploy"}


def test_only_routes_that_were_asked_for_are_on_the_page_of_metrics() -> None:
    metrics = Metrics()
    metrics.recorder("GET", "/quiet")
    metrics.recorder("GET", "/health")(200, 0.001)
    page = metrics.page([], 0, True).decode()
    assert "/quiet" not in page
    assert "_created" not in page
    assert f'venire_build_info{{version="{__version__}"}} 1.0' in page
    assert len(page.splitlines()) < 150
