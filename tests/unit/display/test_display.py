"""What a notebook shows: tables are escaped and short, frames complete, plots drawn."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venire import (
    BradleyTerry,
    DawidSkene,
    FixedOverlap,
    Greedy,
    Item,
    Label,
    Labeler,
    MissingExtra,
    RobustMean,
    Run,
    Scheduler,
    World,
    label_recorded,
    panel_report,
    simulate,
)
from venire.display import block, facts, table
from venire.model import ExitReason
from venire_research.commands.demo import demo


class Strict(HTMLParser):
    """Every tag that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


def text_of(thing: Any) -> str:
    parser = Strict()
    parser.feed(thing if isinstance(thing, str) else thing._repr_html_())
    parser.close()
    assert parser.open == []
    return parser.text


@pytest.fixture(scope="module")
def run() -> Run:
    return simulate(World.synthetic(seed=0), FixedOverlap(3), slots=200)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def votes(items: int = 30, labelers: int = 4) -> list[tuple[str, str, str]]:
    rng = np.random.default_rng(1)
    said = np.where(rng.random((items, labelers)) < 0.8, "a", "b")
    return [(f"i{i}", f"<m{m}>", str(said[i, m])) for i in range(items) for m in range(labelers)]


def test_text_is_escaped_and_only_the_first_rows_are_shown() -> None:
    shown = table({"<i>": ["<b>", None, 1.23456789], "n": [1, 20_000, True]}, shown=2)
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert text_of(block("a & b", [shown, facts({"<k>": 1})])).split("\n")[:6] == [
        "a & b", "<i>", "n", "<b>", "1", "20,000",
    ]  # fmt: skip
    assert "... and 1 more" in shown


def test_a_fitted_estimator_shows_verdicts_and_skills() -> None:
    assert "not fitted yet" in text_of(DawidSkene())
    said = text_of(DawidSkene().fit(votes()))
    assert "120 labels of 30 items by 4 labelers, 2 classes" in said
    assert "<m0>" in said
    assert "... and 20 more" in said


def test_ratings_and_comparisons_are_shown() -> None:
    ratings = [("a", "ann", 3.0), ("a", "bob", 5.0), ("b", "ann", 4.0), ("b", "bob", 6.0)]
    assert "4 ratings of 2 items" in text_of(RobustMean().fit(ratings))
    pairs = [("x", "y", "ann", "x"), ("y", "z", "ann", "y"), ("x", "z", "bob", "x")]
    assert "3 comparisons of 3 things" in text_of(BradleyTerry().fit(pairs))
    assert "not fitted yet" in text_of(RobustMean())
    assert "not fitted yet" in text_of(BradleyTerry())


def test_a_run_is_shown_without_internal_columns(run: Run) -> None:
    said = text_of(run)
    assert "fixed-overlap:3, competences known" in said
    assert f"{len(run.touches):,}" in said
    names = ("weight", "arrival", "last", "labels", "evidence", "exit", "verdict", "confidence")
    assert run.rows.dtype.names == (*names, "reason")
    assert run.touches.dtype.names == ("slot", "row", "labeler", "said", "gain")


def test_the_frames_of_a_run_say_what_its_iterators_say(run: Run) -> None:
    items = run.to_frame("polars").sort("exit", maintain_order=True)
    exits = [(e.item, e.slot, e.verdict.label, str(e.reason)) for e in run.exits()]
    assert items.select("item", "exit", "verdict", "reason").rows() == exits
    assert items["utility"].sum() == pytest.approx(run.utility)
    assert (items["verdict"] == items["truth"]).sum() / len(items) == pytest.approx(run.accuracy)
    labels = run.labels_frame("polars")
    given = [(a.slot, a.item, a.labeler, a.gain) for a in run.assignments()]
    assert labels.select("slot", "item", "labeler", "gain").rows() == given


@pytest.mark.parametrize(
    ("thing", "line"),
    [
        (lambda: World.synthetic(seed=3), "World(30 labelers of competence 0.75 to 0.895, classes"),
        (lambda: Scheduler([Labeler("ann", 0.9)], ["a", "b"], Greedy()), "Scheduler(labelers=1, "),
        (lambda: label_recorded(votes(500), 300.0), "Labelled(items=500, labels=300, spent=300, "),
        (lambda: panel_report(votes(50)), "PanelReport(items=50, labels=200, labelers=4, "),
    ],
)
def test_a_result_is_shown_in_a_line(thing: Callable[[], Any], line: str) -> None:
    """A terminal is not flooded with arrays."""
    said = repr(thing())
    assert said.startswith(line)
    assert len(said) < 150


def test_a_batch_and_a_panel_are_shown_as_tables() -> None:
    said = text_of(label_recorded(votes(), 60.0))
    assert "expected accuracy" in said
    assert "... and 20 more" in said
    said = text_of(panel_report(votes()))
    assert "change without" in said
    assert "<m3>" in said


def test_a_scheduler_shows_where_it_stands() -> None:
    panel = [Labeler("ann", 0.9), Labeler("<bob>", 0.8)]
    s = Scheduler(panel, ["spam", "ok"], Greedy())
    s.arrive([Item(f"post-{k}", weight=8) for k in range(30)])
    s.assign()
    s.observe(Label("post-3", "ann", "ok"))
    before = s.fingerprint()
    said = text_of(s)
    assert s.fingerprint() == before
    assert "Scheduler, greedy" in said
    assert "<bob>" in said
    frame = s.to_frame("pandas").set_index("item")
    assert list(frame.index) == list(s.outstanding)
    assert frame["in_flight"].sum() == len(s.in_flight) == 2
    assert tuple(frame.loc["post-3", ["labels", "verdict"]]) == (1, "ok")


def test_a_certificate_shows_its_bounds(run: Run) -> None:
    small = simulate(World.synthetic(seed=0), Greedy(), slots=30)
    found = small.certificate()
    assert "known to be possible" in text_of(found)
    frame = found.to_frame("pandas")
    assert list(frame) == ["slot", "item", "labeler"]
    assert sorted(found.schedule) == sorted(
        zip(frame["item"], frame["labeler"], frame["slot"], strict=True)
    )
    axes = found.plot({"greedy": small.utility})
    (bars,) = axes.containers
    assert bars.datavalues.tolist() == [found.lower, small.utility]  # type: ignore[attr-defined]


def test_a_run_is_drawn_to_its_end(run: Run, tmp_path: Path) -> None:
    axes = run.plot()
    ends = {line.get_label(): np.asarray(line.get_ydata())[-1] for line in axes.get_lines()}
    assert ends == pytest.approx(
        {
            "utility": run.utility,
            "utility of Algorithm 1": run.genie.utility,
            "realised utility": run.realised_utility,
            "true utility": run.true_utility,
        }
    )
    assert run.plot(axes) is axes
    axes.get_figure().savefig(tmp_path / "run.png")  # type: ignore[union-attr]


@pytest.mark.parametrize("labelers", [4, 60])
def test_skills_are_drawn_the_best_at_the_top(labelers: int) -> None:
    fitted = DawidSkene().fit(votes(labelers=labelers))
    axes = fitted.plot_skills()
    drawn = np.asarray(axes.get_lines()[0].get_xdata())
    assert drawn.tolist() == sorted(fitted.skills_.values())
    named = [label.get_text() for label in axes.get_yticklabels()]
    assert named == (sorted(fitted.skills_, key=fitted.skills_.__getitem__) if labelers < 9 else [])


def test_without_matplotlib_it_says_which_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any, **options: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **options)

    fitted = DawidSkene().fit(votes())
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtra, match=r"venire\[plot\]"):
        fitted.plot_skills()
    with pytest.raises(MissingExtra, match=r"venire\[demo\]"):
        demo(live=False)


def test_reasons_are_words(run: Run) -> None:
    assert set(run.to_frame("pandas")["reason"]) <= {str(reason) for reason in ExitReason}
