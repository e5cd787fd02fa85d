"""Real label sets: the errors promised, and the figures printed in docs/real-data.md."""

from pathlib import Path

import pytest

from benchmarks.real_data import load, markdown, measure, rows

DOC = Path(__file__).resolve().parents[3] / "docs" / "real-data.md"


@pytest.fixture(scope="module")
def found(data: Path) -> dict[str, dict[str, tuple[float, float]]]:
    return measure(data)


@pytest.mark.parametrize(("name", "percent"), [("web", 16.0), ("llmjudge2024_binary", 23.2)])
def test_weighted_majority(data: Path, name: str, percent: float) -> None:
    assert rows(*load(data / name))["weighted-majority"][0] <= percent


@pytest.mark.slow
def test_auto_is_above_majority_on_average_and_far_below_nowhere(
    found: dict[str, dict[str, tuple[float, float]]],
) -> None:
    above = [of["majority"][0] - of["auto"][0] for of in found.values()]
    assert sum(above) / len(above) > 1.0
    assert min(above) > -3.0


def test_the_document_has_these_figures(
    found: dict[str, dict[str, tuple[float, float]]],
) -> None:
    for line in markdown(found).splitlines():
        assert line in DOC.read_text()
