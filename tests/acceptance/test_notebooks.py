"""The notebooks run from top to bottom, and what is kept of their output is small.

python -m tests.acceptance.test_notebooks notebooks/*.ipynb    # runs them and keeps the output
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import venire

ROOT = Path(__file__).parent.parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def executed(path: Path) -> Any:
    """The notebook with the output of a fresh kernel; the first cell that fails raises."""
    nbformat = pytest.importorskip("nbformat", reason="needs the extra notebooks")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra notebooks")
    source = str(Path(venire.__file__).parent.parent)
    found = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [source, found]))
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=600, record_timing=False, resources={"metadata": {"path": path.parent}}
    )
    return client.execute()


def texts(notebook: Any, kind: str = "text/plain") -> list[str]:
    """What the cells put out, as text."""
    outputs = [out for cell in notebook["cells"] for out in cell.get("outputs", [])]
    found = [out.get("data", {}).get(kind, "") for out in outputs]
    return ["".join(text) for text in found if text]


def numbers(notebook: Any) -> list[list[str]]:
    """The numbers of each output, but of objects and pictures: an address, a size."""
    return [re.findall(r"\d[\d.]*", t) for t in texts(notebook) if not t.startswith("<")]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_said_in_words_is_what_the_cells_put_out(path: Path) -> None:
    kept = json.loads(path.read_text())
    words = "".join("".join(c["source"]) for c in kept["cells"] if c["cell_type"] == "markdown")
    shares = [f"{float(number) / 100:.3f}" for number in re.findall(r"(\d+\.\d) ?%", words)]
    assert [share for share in shares if share not in "".join(texts(kept))] == []


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    notebook = executed(path)
    kept = json.loads(path.read_text())
    assert numbers(notebook) == numbers(kept), "python -m tests.acceptance.test_notebooks PATH"
    assert len(texts(notebook, "image/png")) == len(texts(kept, "image/png")) > 0
    warned = [out for cell in notebook["cells"] for out in cell.get("outputs", [])]
    assert [out["text"] for out in warned if out["output_type"] == "stream"] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_kept_of_a_notebook_is_small_and_names_no_machine(path: Path) -> None:
    text = path.read_text()
    assert len(text) < 150_000
    without_pictures = re.sub(r'"image/png": "[^"]*"', "", text)
    assert not re.search(r"/home/|/root/|/tmp/|/Users/", without_pictures)
    cells = json.loads(text)["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert re.search(r"\bFor [\w ]+", "".join(cells[0]["source"]))


def test_the_notebooks_show_what_results_look_like() -> None:
    everything = "".join(path.read_text() for path in NOTEBOOKS)
    calls = ("to_frame(", "one.plot(", "plot_skills(", "certificate.plot(")
    assert [call for call in calls if call not in everything] == []
    for path in NOTEBOOKS:
        tables = texts(json.loads(path.read_text()), "text/html")
        assert tables or path.stem == "the-papers-figures"


if __name__ == "__main__":
    import nbformat

    for name in sys.argv[1:]:
        nbformat.write(executed(Path(name)), name)  # type: ignore[no-untyped-call]
