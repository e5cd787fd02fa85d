"""examples/judges runs as the page says: without a key, without a network, with faults too."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import venire
from tests.marks import nightly
from venire.connectors.judges import read_judges

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "judges.md").read_text()


@pytest.mark.parametrize("faults", [nightly("0.33"), nightly("0")])
def test_the_example_runs(faults: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.judges", "--items", "100", "--faults", faults],
        cwd=ROOT,
        env={"PYTHONPATH": str(Path(venire.__file__).parent.parent), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shares = re.findall(r"([\d.]+)%$", done.stdout, re.M)
    assert len(shares) == 8
    assert float(shares[6]) > 80  # the verdicts
    labels = [int(n) for n in re.findall(r"run.*: (\d+) labels", done.stdout)]
    assert min(labels) >= 490
    if faults == "0":
        assert labels == [500, 500]
        assert done.stdout.splitlines()[-1].endswith(": 500 labels, 0 requests, cost 0.00000")


def test_the_page_lists_every_key_of_a_judge() -> None:
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE.partition("## The file")[2], re.M)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    from venire.connectors.judges.config import _CHECKS

    assert listed == set(_CHECKS)


def test_the_file_of_the_page_can_be_read(tmp_path: Path) -> None:
    whole, reasons, pair = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)
    (tmp_path / "judges.yaml").write_text(whole)
    assert [judge.id for judge in read_judges(tmp_path / "judges.yaml")] == ["strict", "local"]
    (tmp_path / "reasons.yaml").write_text(reasons + "judges:\n  - {id: a, model: m}\n")
    assert read_judges(tmp_path / "reasons.yaml")[0].rationale
    (tmp_path / "pair.yaml").write_text(pair + "judges:\n  - {id: a, model: m}\n")
    assert read_judges(tmp_path / "pair.yaml")[0].pair == ("first", "second")
