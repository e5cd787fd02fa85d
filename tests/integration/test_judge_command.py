"""`venire judge`: a file judged within a budget, by judges that fail now and then."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.batch_server import BatchServer, batching
from tests.judge_server import CLASSES, judging, truth

TEXTS = {f"i{n}": f"{'BUY' if n % 2 else 'see'} {n}" for n in range(60)}


COMMAND = ["judge", "items.jsonl", "--config", "judges.yaml"]


def judge(folder: Path, out: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "--out", out, "--json", *more]
    return forked.run(folder, *command, JUDGE_KEY="sk-secret")


def write(folder: Path, url: str, texts: Mapping[str, str] = TEXTS) -> None:
    (folder / "judges.yaml").write_text(
        f"classes: {CLASSES}\nprompt: '{{{{ text }}}}'\napi_key_env: JUDGE_KEY\n"
        f"max_parallel: 4\nnum_retries: 6\nprice: {{input: 1, output: 1}}\nbase_url: '{url}'\n"
        "judges:\n  - {id: strict, model: a}\n  - {id: mild, model: b}\n  - {id: odd, model: c}\n"
    )
    rows = (json.dumps({"id": name, "text": text}) for name, text in texts.items())
    (folder / "items.jsonl").write_text("\n".join(rows) + "\n")


def test_a_file_is_judged_in_spite_of_faults_and_a_second_run_costs_nothing(tmp_path: Path) -> None:
    shares = dict.fromkeys(("limited-ms", "html", "broken", "500"), 1 / 12)
    with judging(shares=shares) as server:
        write(tmp_path, server.url)
        done = judge(tmp_path, "verdicts.jsonl", "--labels-per-item", "2")
        asked = len(server.bodies)
        again = judge(tmp_path, "verdicts.jsonl", "--labels-per-item", "2")
        more = len(server.bodies)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["items"] == 60
    assert 60 <= found["labels"] <= 120
    assert found["spent"] > 0
    rows = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    right = [row["label"] == truth(TEXTS[row["task"]])[0] for row in rows]
    assert sum(right) >= 0.9 * len(right)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["spent"] == found["spent"]
    assert more == asked
    assert "sk-secret" not in done.stdout + done.stderr + (tmp_path / "judges.cache").read_text()


def test_a_trusted_judge_settles_the_least_sure_items(tmp_path: Path) -> None:
    with judging() as server:
        write(tmp_path, server.url)
        file = tmp_path / "judges.yaml"
        file.write_text(file.read_text() + "  - {id: sage, model: d, trusted: true}\n")
        done = judge(tmp_path, "verdicts.jsonl", "--budget", "0.02", "--expert-share", "0.3")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["expert"]["id"] == "sage"
    assert found["expert"]["spent"] <= 0.3 * 0.02 + 1e-9
    assert found["spent"] <= 0.02 + 1e-9
    assert all(truth(TEXTS[name])[0] == label for name, label in found["expert"]["answers"].items())
    assert {row["id"] for row in found["labelers"]} == {"strict", "mild", "odd"}


def test_answers_of_another_prompt_are_stale_and_said_to_be(tmp_path: Path) -> None:
    with judging() as server:
        write(tmp_path, server.url)
        first = judge(tmp_path, "verdicts.jsonl", "--labels-per-item", "1.5")
        file = tmp_path / "judges.yaml"
        file.write_text(file.read_text().replace("{id: odd, model: c}", "{id: odd, model: c2}"))
        again = judge(tmp_path, "verdicts.jsonl", "--labels-per-item", "1.5")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["stale"] == []
    assert again.returncode == 0, again.stderr
    found = json.loads(again.stdout)
    given = {row["id"]: row["labels"] for row in found["labelers"]}
    words = f"the prompt or the model of odd changed after {given['odd']} of its answers"
    assert found["stale"] == [words]
    assert found["confidence"] == f"by labels alone; stale: {words}"


def test_a_budget_or_a_target_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "http://127.0.0.1:9")
    failed = judge(tmp_path, "verdicts.jsonl")
    assert failed.returncode == 2
    assert "budget" in failed.stderr
    assert not (tmp_path / "verdicts.jsonl").exists()


def test_batches_with_kills_and_half_of_the_answers_missing_are_as_those_without(
    tmp_path: Path,
) -> None:
    """1,000 judgements: the same verdicts, and no request that is not counted."""
    texts = {f"i{n}": f"{'BUY' if n % 2 else 'see'} {n}" for n in range(500)}
    found = {}
    for name, faulty in (("plain", False), ("faulty", True)):
        folder = tmp_path / name
        folder.mkdir()
        script = ["expired", "completed", "expired"] if faulty else []
        with batching(*script, missing=0.5 if faulty else 0.0) as server:
            write(folder, server.url, texts)
            kills = ["POST /files", "POST /batches", "GET /batches/X"] if faulty else []
            for step in [*kills, None]:
                done = judged(folder, server, step)
            found[name] = (done, server, (folder / "verdicts.jsonl").read_text())
    (plain, one, verdicts), (faulty_run, two, same) = found["plain"], found["faulty"]
    assert plain["labels"] == faulty_run["labels"] == 1000
    assert verdicts == same
    assert faulty_run["spent"] == pytest.approx(plain["spent"])
    for done, server in ((plain, one), (faulty_run, two)):
        rows = done["batches"]
        assert sum(row["questions"] for row in rows) == server.questions
        assert sum(row["answers"] for row in rows) == server.billed["answers"] == 1000
        cost = sum(row["cost"] for row in rows)
        assert cost == pytest.approx(server.billed["tokens"] * 0.5e-6)
        assert cost == pytest.approx(done["spent"])
        assert sum(row["saved"] for row in rows) == pytest.approx(cost)
    assert two.questions > one.questions == 1000


def judged(folder: Path, server: BatchServer, step: str | None) -> Any:
    """Run the command; kill it when the server has taken a step, before it hears of that."""
    command = [*COMMAND, "--out", "verdicts.jsonl", "--json", "--batch", "--labels", "1000"]
    begun, ended = queue.SimpleQueue[Any](), threading.Event()

    def watch(taken: str) -> None:
        if taken == step:
            server.watch = lambda step: None
            begun.get(timeout=280).kill()
            assert ended.wait(280)

    server.watch = watch
    done = forked.run(folder, *command, begun=begun.put, JUDGE_KEY="sk-secret")
    ended.set()
    if step is not None:
        assert done.returncode == -9, done.stderr
        return None
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
