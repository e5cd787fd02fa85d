"""Models label a stream on a running server, and a file: `work --panel`, `label --panel`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from tests import forked
from tests.integration.server.harness import Process
from tests.judge_server import CLASSES, truth
from tests.model_server import modelling

TEXTS = {f"i{n}": f"{'BUY' if n % 2 else 'see'} {n}" for n in range(60)}
FAULTS = ("limited-ms", "html", "broken", "500", "no-label", "too-few", "no-field")
SETTINGS: dict[str, Any] = {
    "classes": CLASSES,
    "slot_seconds": 0.2,
    "min_labels": 2,
    "default_weight": 100.0,
    "panel": [{"id": name, "capacity": 16} for name in ("line", "service", "backend", "spent")],
}


def run(folder: Path, *command: str, key: str = "") -> subprocess.CompletedProcess[str]:
    return forked.run(folder, *command, VENIRE_KEY=key)


def write(folder: Path, good: str, poor: str) -> None:
    import skops.io  # which imports all of scikit-learn

    line = make_pipeline(TfidfVectorizer(), LogisticRegression())
    line.fit(["buy this", "see you", "buy now", "see it"], ["spam", "ok", "spam", "ok"])
    skops.io.dump(line, folder / "line.skops")
    answers = "answers: predictions, label: label, confidence: score, rationale: label"
    answers += ", batch: 8, num_retries: 6"
    request = "request: {instances: \"{{ items | map(attribute='text') | list }}\"}"
    (folder / "panel.yaml").write_text(
        "labelers:\n"
        "  - {id: line, sklearn: line.skops, fields: text, batch: 16}\n"
        f"  - {{id: service, http: '{good}/predict', {request}, {answers}}}\n"
        f"  - {{id: backend, label_studio_ml: '{good}', classes: {CLASSES}, num_retries: 6}}\n"
        f"  - {{id: spent, http: '{poor}/predict', {request}, {answers}}}\n"
    )


def test_models_label_a_stream_and_one_of_them_ends(process: Process, tmp_path: Path) -> None:
    items = [{"id": name, "payload": {"text": text}} for name, text in TEXTS.items()]
    shares = {kind: 1 / 3 / len(FAULTS) for kind in FAULTS}
    with modelling(shares=shares) as good, modelling(always="quota") as poor:
        write(tmp_path, good.url, poor.url)
        with process.client() as client:
            client.create_stream("modelled", **SETTINGS)
            client.add_items("modelled", items)
            work = ("work", "--stream", "modelled", "--url", process.url, "--panel", "panel.yaml")
            done = run(tmp_path, *work, "--until-idle", "4", "--json", key=process.key)
            exits = client.exits("modelled", 0, 1.0, 100)
            told = [x for e in exits for x in client.item("modelled", e.item)["labels"]]
            for _ in range(3):  # on a busy machine four seconds without work are not the end of it
                if len(exits) < 55:
                    run(tmp_path, *work, "--until-idle", "4", key=process.key)
                    exits = client.exits("modelled", 0, 1.0, 100)
    assert done.returncode == 0, done.stderr
    reports = {one["id"]: one for one in json.loads(done.stdout)}
    assert len(exits) >= 55
    assert [e for e in exits if e.verdict != truth(TEXTS[e.item])[0]] == []
    assert {x["rationale"] == x["said"] for x in told if x["labeler"] == "service"} == {True}
    assert {x["rationale"] for x in told if x["labeler"] != "service"} == {None}
    assert "insufficient_quota" in reports["spent"]["stopped"]
    assert reports["spent"]["tally"]["labelled"] == 0
    assert reports["line"]["stopped"] is None
    assert reports["line"]["tally"]["labelled"] > 0
    sizes = [len(body.get("instances") or body["tasks"]) for body in good.bodies]
    assert max(sizes) > 1


def test_models_label_a_file(tmp_path: Path) -> None:
    rows = (json.dumps({"id": name, "text": text}) for name, text in TEXTS.items())
    (tmp_path / "items.jsonl").write_text("\n".join(rows) + "\n")
    shares = {kind: 1 / 3 / len(FAULTS) for kind in FAULTS}
    command = ["label", "items.jsonl", "--panel", "panel.yaml", "--labels-per-item", "2"]
    with modelling(shares=shares) as good, modelling(always="quota") as poor:
        write(tmp_path, good.url, poor.url)
        done = run(tmp_path, *command, "--out", "v.jsonl", "--json")
        asked = len(good.bodies)
        again = run(tmp_path, *command, "--out", "v.jsonl", "--json")
        assert len(good.bodies) <= asked + 8  # what was away is asked again, the rest is kept
    assert done.returncode == 0, done.stderr
    assert "labeler spent stops: 429 insufficient_quota" in done.stderr
    assert again.returncode == 0, again.stderr
    verdicts = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    right = [row["label"] == truth(TEXTS[row["task"]])[0] for row in verdicts]
    assert sum(right) >= 58
