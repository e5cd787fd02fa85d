"""Real label sets: the errors promised, and the figures printed in docs/real-data.md."""

from pathlib import Path

import pytest

from benchmarks.real_data import SETS, load, markdown, measure, rows

DOC = Path(__file__).resolve().parents[3] / "docs" / "real-data.md"
FOUR = ("majority", "weighted-majority", "one-coin", "dawid-skene")


@pytest.fixture(scope="module")
def found(data: Path) -> dict[str, dict[str, tuple[float, float]]]:
    return measure(data)


@pytest.mark.parametrize(("name", "percent"), [("web", 16.0), ("llmjudge2024_binary", 23.2)])
def test_weighted_majority(data: Path, name: str, percent: float) -> None:
    assert rows(*load(data / name))["weighted-majority"][0] <= percent


@pytest.mark.parametrize("name", SETS)
def test_auto_is_near_the_best_and_not_below_majority(
    found: dict[str, dict[str, tuple[float, float]]], name: str
) -> None:
    error = {method: figures[0] for method, figures in found[name].items()}
    assert error["auto"] <= min(error[m] for m in FOUR) + 1.0
    assert error["auto"] <= error["majority"] + 1.0


def test_calibration_helps_on_average(
    found: dict[str, dict[str, tuple[float, float]]],
) -> None:
    for method in ("one-coin", "dawid-skene"):
        before, after = (
            sum(found[s][m][1] for s in SETS) for m in (method, f"{method}, calibrated")
        )
        assert after < before


def test_the_document_has_these_figures(
    found: dict[str, dict[str, tuple[float, float]]],
) -> None:
    for line in markdown(found).splitlines():
        assert line in DOC.read_text()
