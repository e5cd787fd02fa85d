"""`venire work --judges`: judges with faults label a stream on a running server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.integration.server.harness import SOURCE, Process
from tests.judge_server import CLASSES, judging, truth
from venire.client import Work

SETTINGS: dict[str, Any] = {
    "classes": CLASSES,
    "slot_seconds": 0.2,
    "min_labels": 2,
    "default_weight": 100.0,
    "panel": [{"id": name, "capacity": 4} for name in ("strict", "mild", "spent", "lost")],
}

FAULTS = ("limited-ms", "html", "broken", "refusal", "length", "other", "empty", "500")


def work(
    process: Process, folder: Path, stream: str, *more: str
) -> subprocess.CompletedProcess[str]:
    command = ["work", "--stream", stream, "--url", process.url]
    command += ["--judges", "judges.yaml", "--until-idle", "4", "--json", *more]
    return forked.run(folder, *command, VENIRE_KEY=process.key, JUDGE_KEY="sk-secret")


def test_judges_label_a_stream_and_one_of_them_runs_out_of_money(
    process: Process, tmp_path: Path
) -> None:
    texts = {f"i{n}": f"{'BUY' if n % 2 else 'see'} {n}" for n in range(60)}
    items = [{"id": name, "payload": {"text": text}} for name, text in texts.items()]
    shares = {kind: 1 / 3 / len(FAULTS) for kind in FAULTS}
    with judging(shares=shares) as good, judging(*["fine"] * 5, always="quota") as poor:
        (tmp_path / "judges.yaml").write_text(
            f"classes: {CLASSES}\nprompt: '{{{{ text }}}}'\napi_key_env: JUDGE_KEY\n"
            "max_parallel: 4\nnum_retries: 6\nprice: {input: 1, output: 1}\njudges:\n"
            f"  - {{id: strict, model: a, rationale: true, base_url: '{good.url}'}}\n"
            f"  - {{id: mild, model: b, base_url: '{good.url}', votes: 3}}\n"
            f"  - {{id: spent, model: c, base_url: '{poor.url}'}}\n"
        )
        with process.client() as client:
            client.create_stream("judged", **SETTINGS)
            client.add_items("judged", items)
            done = work(process, tmp_path, "judged")
            exits = client.exits("judged", 0, 1.0, 100)
            told = [x for e in exits for x in client.item("judged", e.item)["labels"]]
            again = work(process, tmp_path, "judged")
    assert done.returncode == 0, done.stderr
    reports = {one["id"]: one for one in json.loads(done.stdout)}
    assert len(exits) >= 57  # some wait for a second label, which the spent judge could give
    assert [e for e in exits if e.verdict != truth(texts[e.item])[0]] == []
    whys = {
        who: {x["rationale"] for x in told if x["labeler"] == who} for who in ("strict", "mild")
    }
    assert whys["mild"] == {None}
    assert all("It reads: " in why for why in whys["strict"])
    assert "insufficient_quota" in reports["spent"]["stopped"]
    assert done.stderr.count("judge spent stops:") == 1
    assert reports["spent"]["tally"]["labelled"] == 5
    assert reports["strict"]["stopped"] is None
    assert reports["strict"]["usage"]["faults"]
    assert reports["strict"]["usage"]["cost"] > 0
    shown = [done.stdout, done.stderr, (tmp_path / "judges.cache").read_text()]
    assert all("sk-secret" not in text for text in shown)
    assert again.returncode == 0, again.stderr


def test_a_judge_that_is_away_bars_nobody(process: Process, tmp_path: Path) -> None:
    with judging() as server:
        url = server.url
    judge = f"{{id: lost, model: a, num_retries: 0, base_url: '{url}'}}"
    text = f"prompt: '{{{{ text }}}}'\njudges:\n  - {judge}\n"
    (tmp_path / "judges.yaml").write_text(text)
    with process.client() as client:
        client.create_stream("away", **SETTINGS)
        client.add_items("away", [{"id": "i", "payload": {"text": "x"}}])
        command = [sys.executable, "-m", "venire", "work", "--stream", "away", "--url", process.url]
        with forked.started(
            [*command, "--judges", "judges.yaml", "--grace", "0"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": SOURCE, "VENIRE_KEY": process.key},
            stderr=subprocess.PIPE,
            text=True,
        ) as worker:
            assert worker.stderr is not None
            said = ""
            while said.count("no answer for now") < 3:  # the same item, again and again
                line = worker.stderr.readline()
                assert line, said
                said += line
            worker.terminate()
            rest = worker.stderr.read()
        assert worker.returncode == 0, rest
        # What was on its way to the worker when it was stopped, the judge holds.
        held = client.held("away", "lost")
        work_left = held[0] if held else client.next("away", "lost")
        assert isinstance(work_left, Work)
        assert work_left.item == "i"
        client.release(work_left.token)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--call", "a:b"], "give one of --call, --panel and --judges"),
        (["--labeler", "ann"], "--labeler and --concurrency are for --call"),
    ],
)
def test_options_that_do_not_go_together(
    arguments: list[str], message: str, process: Process, tmp_path: Path
) -> None:
    done = work(process, tmp_path, "judged", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_classes_must_be_those_of_the_stream(process: Process, tmp_path: Path) -> None:
    text = "prompt: p\nbase_url: http://127.0.0.1:1/v1\nclasses: [good, bad]\n"
    text += "judges:\n  - {id: a, model: m}\n"
    (tmp_path / "judges.yaml").write_text(text)
    with process.client() as client:
        client.create_stream("other", **SETTINGS)
    done = work(process, tmp_path, "other")
    assert done.returncode == 2
    assert "judge a has the classes ['good', 'bad'], expected ['spam', 'ok']" in done.stderr
