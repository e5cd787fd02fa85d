"""What `scripts/measure` counts, on a small package of which the numbers are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.duplicates import pairs
from tools.measure import CEILINGS, above, main, measure

SIX = """
total = price * count + tax(count)
total = total + delivery(total, 3)
label = write("a", total, count=2)
label = label + write("b", 3.5, x)
for part in split(label, size=10):
    send(part, total=price, to="x")
"""

FILES = {
    "__init__.py": '__all__ = ["Greedy"]\nfrom VENIRE.scheduling import Greedy\n',
    "server/__init__.py": "from VENIRE.server.app import run\n",
    "server/app.py": "from VENIRE.scheduling import greedy\n\n\ndef run():\n    greedy._hidden()\n",
    "scheduling/__init__.py": '__all__ = ["Greedy"]\nfrom VENIRE.scheduling.greedy import Greedy\n',
    "scheduling/greedy.py": "from VENIRE.errors import Fault\n\n\nclass Greedy(Policy):\n"
    '    """One."""\n\n\ndef _hidden():\n    """Said.\n\n    More.\n    """\n    a = 1\n'
    "    return a\n",
    "errors.py": "class Fault(Exception):\n    pass\n",
    "one.py": SIX,
    "two.py": SIX.replace("price", "cost").replace("10", "12").replace('"a"', '"long"'),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "src" / "venire" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("VENIRE", "venire"))
    return tmp_path


def test_what_is_counted(root: Path) -> None:
    found = measure(root)
    assert found["modules"] == 8
    assert found["largest folders"]["venire"] == 3
    chain = ["server", "server.app", "scheduling.greedy", "errors"]
    assert found["longest import chain from the server"]["chain"] == [
        f"venire.{name}" for name in chain
    ]
    assert found["duplicate pairs"] == ["venire/one.py:2 ~ venire/two.py:2"]
    assert found["private reaches"] == ["venire.server.app:5 _hidden"]
    places = ["venire:1", "venire:2", "venire.scheduling:1", "venire.scheduling:2"]
    assert sorted(found["edits to add a policy"]["places"]) == sorted(places)
    assert found["public names"] == 1
    assert found["lines of a function"]["max"] == 2


def test_what_is_above_its_ceiling_is_said_and_fails(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = measure(root)
    monkeypatch.setitem(CEILINGS, "private reaches", 1)
    assert above(found) == [
        "edits to add a policy: 4, and at most 2 are allowed (tools/measure.py)"
    ]
    assert main(["--root", str(root), "--ceilings"]) == 1
    assert "edits to add a policy: 4" in capsys.readouterr().out
    monkeypatch.setitem(CEILINGS, "edits to add a policy", 4)
    assert main(["--root", str(root), "--ceilings"]) == 0
    monkeypatch.setitem(CEILINGS, "duplicate pairs", 0)
    monkeypatch.setitem(CEILINGS, "longest import chain from the server", 3)
    assert len(above(found)) == 2


def test_lines_that_differ_in_more_than_names_are_not_alike() -> None:
    other = SIX.replace(" + tax(count)", " - tax(count)")
    assert pairs({Path("one.py"): SIX, Path("two.py"): other}) == []


def test_the_command_prints_the_figures(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--root", str(root), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["modules"] == 8
    assert main(["--root", str(root), "--details"]) == 0
    shown = capsys.readouterr().out
    assert "duplicate pairs: 1\n    venire/one.py:2 ~ venire/two.py:2" in shown
    with pytest.raises(SystemExit):
        main(["--root", str(root / "src")])
    assert "there is no src/venire" in capsys.readouterr().err
