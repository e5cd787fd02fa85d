import json
from pathlib import Path

import pytest

from venire.cli import main
from venire.paper.lemmas import plan

COMPETENCES = [0.9, 0.85, 0.8, 0.75]


@pytest.fixture
def panel(tmp_path: Path) -> str:
    path = tmp_path / "panel.csv"
    lines = [f"m{i},{p}\n" for i, p in enumerate(COMPETENCES)]
    path.write_text("labeler,competence\n" + "".join(lines))
    return str(path)


def test_words(panel: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--panel", panel, "--epsilon", "0.1", "--delta", "0.05"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == plan(COMPETENCES, 0.1, 0.05).describe()
    assert err == ""


def test_json(panel: str, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--weights", "3,4", "--max-delay", "2", "--json", "--classes", "a,b,c"]
    assert main(["plan", "--panel", panel, *args]) == 0
    record = json.loads(capsys.readouterr().out)
    made = plan(COMPETENCES, 0.1, 0.05, 3, weights=[3, 4], max_delay=2)
    assert record["delta_gap"] == made.delta_gap
    assert record["same_decisions_slots"] == made.same_decisions_slots
    assert record["kappa"] == list(made.kappa)
    assert record["large_enough"] is made.large_enough


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--epsilon", "0"], "got epsilon=0.0, expected a number above 0"),
        (["--epsilon", "1e-200"], "ask for a larger epsilon"),
        (["--delta", "1"], "strictly between 0 and 1"),
        (["--max-delay", "3"], "--max-delay needs --weights"),
        (["--weights", "x"], "got the weights 'x'"),
        (["--weights", "3", "--max-delay", "-1"], "max_delay=-1"),
        (["--classes", "a"], "expected two names or more"),
    ],
)
def test_errors_are_one_line(
    args: list[str], says: str, panel: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--panel", panel, *args]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert says in err


def test_a_panel_too_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.csv"
    path.write_text("labeler,competence\na,0.9\nb,0.8\n")
    assert main(["plan", "--panel", str(path)]) == 2
    assert "expected at least 3" in capsys.readouterr().err
