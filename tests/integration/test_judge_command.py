"""`venire judge`: a file judged within a budget, by judges that fail now and then."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests import forked
from tests.judge_server import CLASSES, judging, truth

TEXTS = {f"i{n}": f"{'BUY' if n % 2 else 'see'} {n}" for n in range(60)}


def judge(folder: Path, out: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = ["judge", "items.jsonl", "--config", "judges.yaml", "--out", out, "--json", *more]
    return forked.run(folder, *command, JUDGE_KEY="sk-secret")


def write(folder: Path, url: str) -> None:
    (folder / "judges.yaml").write_text(
        f"classes: {CLASSES}\nprompt: '{{{{ text }}}}'\napi_key_env: JUDGE_KEY\n"
        f"max_parallel: 4\nnum_retries: 6\nprice: {{input: 1, output: 1}}\nbase_url: '{url}'\n"
        "judges:\n  - {id: strict, model: a}\n  - {id: mild, model: b}\n  - {id: odd, model: c}\n"
    )
    rows = (json.dumps({"id": name, "text": text}) for name, text in TEXTS.items())
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


def test_a_budget_or_a_target_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "http://127.0.0.1:9")
    failed = judge(tmp_path, "verdicts.jsonl")
    assert failed.returncode == 2
    assert "budget" in failed.stderr
    assert not (tmp_path / "verdicts.jsonl").exists()
