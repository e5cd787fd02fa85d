"""docs/serve.md, command by command, as a newcomer would paste it."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.newcomer import Newcomer, rows_of
from venire.server import ServerSettings, StreamSettings
from venire.server.edge.guard import ROLES
from venire.server.edge.monitoring import Metrics
from venire.server.runtime.health import Condition, Tally
from venire.server.settings import LATER
from venire.server.store import WriterStats

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "serve.md").read_text()
WALK = PAGE.partition("## A walk-through")[2].partition("## From Python")[0]
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", WALK, flags=re.S)


@pytest.mark.slow  # 45 CPU seconds; each command has its own tests
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_walk_through(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    try:
        for language, block in BLOCKS:
            newcomer.paste(language, block)
    finally:
        newcomer.close()
    assert json.loads((tmp_path / "sent.json").read_text())["created"] == 1000
    said = newcomer.said
    (exits,) = [text for text in said if '"verdict"' in text and text.count("\n") == 3]
    assert [json.loads(line)["n"] for line in exits.splitlines()] == [1, 2, 3]
    figures: dict[str, Any] = json.loads(said[-2][said[-2].index('{"stream"') :])
    assert figures["exits"] + figures["open_items"] == 1001
    assert figures["exits"] >= 1000
    assert figures["labels"] > 1000
    ours, majority = accuracies(newcomer)
    assert ours >= 0.85  # about 0.92: who labels what hangs on who is first
    assert ours >= majority - 0.01


def accuracies(newcomer: Newcomer) -> tuple[float, float]:
    """The share of right verdicts, and that of a majority of the labels that were bought."""
    store = "--storage sqlite:///venire.db --stream posts"
    newcomer.shell(f"venire export {store} --what labels --to labels.csv")
    newcomer.shell(f"venire export {store} --what label-studio --to tasks.json")
    draw = random.Random(0)
    truth = {}
    for n in range(1000):  # as the page draws them
        spam = draw.random() < 0.5
        draw.choices(range(7), k=6)
        truth[f"post-{n}"] = "spam" if spam else "ok"
    tasks = json.loads((newcomer.folder / "tasks.json").read_text())
    verdicts = {
        task["meta"]["venire"]["item"]: _predicted(task) for task in tasks if task["predictions"]
    }
    votes: dict[str, Counter[str]] = {}
    for row in rows_of(newcomer.folder / "labels.csv"):
        votes.setdefault(row["task"], Counter())[row["label"]] += 1
    shares = [
        (count := votes[item])[right] == max(count.values())
        and 1 / list(count.values()).count(max(count.values()))
        for item, right in truth.items()
    ]
    return sum(verdicts[i] == right for i, right in truth.items()) / 1000, sum(shares) / 1000


def _predicted(task: dict[str, Any]) -> str:
    (result,) = task["predictions"][0]["result"]
    return str(result["value"]["choices"][0])


def test_the_page_lists_every_setting_with_its_default() -> None:
    listed = dict(re.findall(r"^\| `VENIRE_(\w+)` \| `([^`]*)` \|", PAGE, flags=re.M))
    fields = ServerSettings.model_fields
    assert listed == {name.upper(): str(field.default) for name, field in fields.items()}


def test_the_page_lists_every_setting_of_a_stream_with_its_default() -> None:
    table = PAGE.partition("## Settings of a stream")[2].partition("## Keys")[0]
    listed = dict(re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", table, flags=re.M))
    settings = StreamSettings(classes=("spam", "ok"))
    made = settings.model_dump(mode="json", exclude={"classes"})
    made |= {name: getattr(settings, name) for name in LATER}  # which are left out where empty
    assert {name: json.loads(default) for name, default in listed.items()} == json.loads(
        json.dumps(made)
    )
    (off,) = re.findall(r"((?:`\w+`(?:, | and )?)+)\s+are left out", table)
    assert set(re.findall(r"\w+", off)) - {"and"} == LATER


def test_the_routes_that_the_page_names_exist() -> None:
    for path in re.findall(r"`(?:GET|POST|PATCH) (/v1/[^`]+)`", PAGE):
        assert any(route.endswith(f" {path}") for route in ROLES), path


def test_the_page_names_every_metric() -> None:
    sizes = {"bytes": 1, "wal_bytes": 1, "free_bytes": 1}
    hook = Tally("wh_1", "posts", pending=1, dead=1)
    told = Metrics().page([], 0, True, Condition({}, WriterStats(), 0, sizes, [hook])).decode()
    names = set(re.findall(r"^# TYPE (venire_\w+) (?:counter|gauge)", told, flags=re.M))
    names = {name for name in names if not re.search("_created$|^venire_stream_", name)}
    assert "venire_store_wal_bytes" in names
    assert {name for name in names if not re.search(rf"`{name}[`{{]", PAGE)} == set()
