"""Every figure from made-up results: the tables, the claims, and that nothing sticks out."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from venire_research.common import drawing
from venire_research.common.label_sets import Sets
from venire_research.figures import ORDER
from venire_research.reproduction import measures
from venire_research.reproduction.figure import Findings, Plan, all_figures
from venire_research.reproduction.report import Section, command_of, save, stem_of
from venire_research.sweeps.sweep import Point

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


def made_up(point: Point) -> Any:
    """A result of the right shape, the same for the same point."""
    settings: Any = point.settings
    rng = np.random.default_rng(zlib.crc32(point.key.encode()))
    name = point.function.partition(":")[2]
    if name == "exact_curve":
        return measures.exact_curve(settings["competences"])
    if name == "counterexample":
        return {"greedy": 10.0, "plain": 0.1 * settings["labelers"] ** 1.3 + 10}
    if name == "break_run":
        return {"going_on": 100.0, "break": 100.0 * settings["share"]}
    T, length = np.array(settings["horizons"]), settings.get("length", 0)
    served = np.maximum(T - length, 0) / T
    loss = 0.3 / np.sqrt(length) if length else 0.0
    utility = 30 * T * served * (1 - loss) * rng.normal(1, 0.001, len(T))
    share = np.where(served > 0, rng.uniform(0.7, 0.9, len(T)), np.nan)
    shares = [None if np.isnan(s) else float(s) for s in share]
    return {
        "utility": utility.tolist(),
        "true_utility": utility.tolist(),
        "right": shares,
        "majority": shares,
        "weight": (32.5 * T).tolist(),
        "items": (5 * T).tolist(),
        "norm": 0.9 / np.sqrt(length) if length else None,
        "mean_error": 0.3 / np.sqrt(length) if length else None,
        "labels_per_item": 6.0,
        "mean_delay": 0.0,
        "mean_response": 0.1,
    }


def findings_of(name: str, plan: Plan) -> Findings:
    figure = all_figures()[name]
    results = {point.key: made_up(point) for point in figure.points(plan)}
    return figure.measure(plan, results)


@pytest.fixture
def plan(data: Path) -> Plan:
    return Plan(seeds=4, sets=Sets(data))


@pytest.mark.parametrize("name", ORDER)
def test_a_figure_has_claims_tables_and_words(name: str, plan: Plan) -> None:
    found = findings_of(name, plan)
    assert list(found.seeds) == [0, 1, 2, 3]
    assert any(claim.source in {"paper", "our reading"} for claim in found.claims)
    for claim in found.claims:
        record = claim.record(name)
        assert isinstance(record["value"], float)
        assert isinstance(record["tolerance"], int | float)
        assert isinstance(record["holds"], bool)
    for rows in (found.drawn, found.runs):
        assert rows
        assert all(set(row) == set(rows[0]) for row in rows)
    assert all(sentence.endswith(".") for sentence in found.words)


@pytest.mark.parametrize("name", ORDER)
def test_nothing_sticks_out_of_a_picture_or_lies_on_the_data(name: str, plan: Plan) -> None:
    with drawing.look():
        canvas = all_figures()[name].draw(findings_of(name, plan))
        assert canvas.get_figwidth() == drawing.COLUMN
        check_layout(canvas)


def check_layout(canvas: Canvas) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    agg = FigureCanvasAgg(canvas)
    agg.draw()  # type: ignore[no-untyped-call]
    renderer = agg.get_renderer()  # type: ignore[no-untyped-call]
    for axes in canvas.axes:
        assert axes.get_ylabel()
        parts = [axes.xaxis.label, axes.yaxis.label]
        legend = axes.get_legend()
        if legend is not None:
            assert not legend.get_window_extent(renderer).overlaps(axes.get_window_extent(renderer))
            parts += legend.get_texts()
        for part in parts:
            box = part.get_window_extent(renderer)
            assert box.x0 >= -1, part
            assert box.x1 <= canvas.bbox.x1 + 1, part
            assert box.y0 >= -1, part
            assert box.y1 <= canvas.bbox.y1 + 1, part
    assert canvas.axes[-1].get_xlabel()


def sections_of(names: Sequence[str], plan: Plan, out: Path) -> list[Section]:
    """Sections with pictures that are none."""
    for name in names:
        (out / f"{name}.svg").write_text("<svg/>")
    return [Section(all_figures()[name], findings_of(name, plan), ()) for name in names]


def test_a_report_of_fewer_figures_leaves_the_larger_one(tmp_path: Path, plan: Plan) -> None:
    both = sections_of(["errata", "bounds"], plan, tmp_path)
    save(tmp_path, both, plan, "both")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    save(tmp_path, both[:1], plan, "one")
    assert stem_of(tmp_path, both[:1]) == "-errata"
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert "Command: `one`" in (tmp_path / "report-errata.md").read_text(encoding="utf-8")
    save(tmp_path, both, plan, "again")
    assert "Command: `again`" in (tmp_path / "report.md").read_text(encoding="utf-8")
    (tmp_path / "claims.json").write_text("{")
    assert stem_of(tmp_path, both[:1]) == ""


def test_a_report_says_how_with_what_and_on_which_seeds(tmp_path: Path, data: Path) -> None:
    plan = Plan(quick=True, sets=Sets(data))
    save(tmp_path, sections_of(["best-learning-length"], plan, tmp_path), plan, "it")
    again = command_of(["best-learning-length"], plan, tmp_path)
    assert f"--data {data} --quick --out {tmp_path}" in again
    for name in ("report.md", "report.html"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert again in text
        assert f"bluebird (digest {plan.sets.load('bluebird').digest}), dog (digest " in text
        assert "synthetic 0 to 7 (8 streams); Bird 0 to 7 (8 streams); DOG, two" in text


def test_sets_of_the_cache_are_named(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENIRE_DATA", str(data))
    save(tmp_path, sections_of(["bounds"], Plan(seeds=2), tmp_path), Plan(seeds=2), "it")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "Label sets: bluebird (digest " in text
    assert f"; in {data}\n" in text


def test_without_the_sets_the_best_length_is_of_the_synthetic_stream() -> None:
    found = findings_of("best-learning-length", Plan(quick=True, seeds=4))
    assert {row["stream"] for row in found.drawn} == {"synthetic"}
    assert sum("for want of its label set" in sentence for sentence in found.words) == 2
