"""Comparisons over the suite: the rows are what `simulate` says, and the files what the rows do."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from venire import (
    DawidSkene,
    FixedOverlap,
    Greedy,
    LearnThenServe,
    LearnWhileServing,
    OneCoin,
    Random,
    World,
    simulate,
)
from venire.errors import InputError, UnknownName
from venire.scheduling.base import Policy
from venire.scheduling.by_name import exported, policy_named
from venire.simulation import Run
from venire_research.regimes import COLUMNS, REGIMES, SUITE, Regime, compare, regimes_named
from venire_research.regimes.comparison import default_policies
from venire_research.regimes.files import FILES, save
from venire_research.regimes.hindsight import BEST_OVERLAP, MOST
from venire_research.regimes.measures import Stream, served
from venire_research.regimes.page import Setting, page
from venire_research.regimes.picture import draw, picture
from venire_research.regimes.suite import divide
from venire_research.regimes.summary import MEASURES, Table, summarise
from venire_research.regimes.table import as_tables
from venire_research.sweeps.store import Store

MADE = [regime for regime in REGIMES if regime.uses is None]
REAL = [regime for regime in REGIMES if regime.uses is not None]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    policies: list[Policy | str] = ["greedy", "fixed-overlap:3", Random(2, seed=99)]
    return compare(policies, ["bursts", "clones", "drift"], 2, quick=True, certificate=False)


def test_the_rows_are_what_simulate_says(rows: list[dict[str, Any]]) -> None:
    assert len(rows) == 3 * 3 * 2
    for row in rows:
        assert tuple(row) == COLUMNS
        regime = regimes_named([row["regime"]])[0]
        policy = {
            "greedy": Greedy(),
            "fixed-overlap:3": FixedOverlap(3),
            "random:2": Random(2, row["seed"]),
        }[row["policy"]]
        run = simulate(regime.world(row["seed"], row["slots"]), policy, slots=row["slots"])
        wait = run.rows["exit"] - run.rows["arrival"]
        assert (row["utility"], row["realised_utility"]) == (run.utility, run.realised_utility)
        assert (row["true_utility"], row["accuracy"]) == (run.true_utility, run.accuracy)
        assert (row["items"], row["labels"]) == (len(run.rows), len(run.touches))
        assert row["mean_response"] == pytest.approx(wait.mean())
        assert row["p95_response"] == pytest.approx(np.percentile(wait, 95))
        assert row["utility_ratio"] == pytest.approx(run.utility / run.genie.utility)
        assert row["true_share"] == pytest.approx(run.true_utility / run.rows["weight"].sum())
        assert (row["suite"], row["learning"]) == (f"{SUITE}-quick", "known")


def test_shares_are_of_the_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    def certificate(run: Run) -> SimpleNamespace:
        bound = float(run.rows["weight"].sum())
        return SimpleNamespace(bound=bound, gap=0.25, method="weight")

    monkeypatch.setattr(Run, "certificate", certificate, raising=False)
    found = compare(["greedy", "everyone"], ["paper"], [5], quick=True)
    for row in found:
        assert row["certificate"] == row["weight"]
        assert row["share"] == row["utility"] / row["weight"]
        assert row["realised_share"] == row["realised_utility"] / row["weight"]
        assert (row["certificate_gap"], row["certificate_method"]) == (0.25, "weight")
    without = compare(["greedy"], ["paper"], [5], quick=True, certificate=False)
    assert (without[0]["certificate"], without[0]["share"]) == (None, None)


def test_learning_is_passed_through() -> None:
    how = LearnThenServe(20)
    found = compare(["greedy"], ["paper"], [1], quick=True, certificate=False, learning=how)
    world = regimes_named(["paper"])[0].world(1, 60)
    run = simulate(world, Greedy(), LearnThenServe(20, seed=1), slots=60)
    assert found[0]["learning"] == "then-serve:20"
    assert found[0]["utility"] == run.utility
    assert found[0]["items"] == int(run.ledger.counts.sum()) < len(run.rows)


@dataclass(frozen=True)
class Mine(FixedOverlap):
    overlap: int = 2
    name: ClassVar[str] = "mine"


@dataclass(frozen=True)
class Impostor(FixedOverlap):
    name: ClassVar[str] = "greedy"

    def describe(self) -> str:
        return "greedy"


def two_labelers(seed: int, slots: int) -> World:
    return World.synthetic(seed, [0.9, 0.7])


def test_your_own_policy_on_your_own_regime() -> None:
    own = Regime("two", "two labelers", two_labelers, 40, 10)
    found = compare([Mine(), "greedy"], [own, "paper"], 1, quick=True)
    assert [(row["regime"], row["policy"]) for row in found] == [
        ("two", "mine:2"), ("two", "greedy"), ("paper", "mine:2"), ("paper", "greedy"),
    ]  # fmt: skip
    assert found[0]["utility"] == simulate(two_labelers(0, 10), Mine(), slots=10).utility


def test_every_exported_policy_joins_by_itself() -> None:
    made = {policy.name for policy in default_policies()}
    for name in set(exported(Policy)) - made:
        with pytest.raises(InputError, match="setting"):
            policy_named(name)
    assert {"everyone", "fixed-overlap", "greedy", "random", "round-robin"} <= made


def test_the_best_fixed_overlap_is_the_best_on_each_stream() -> None:
    names = [f"fixed-overlap:{k}" for k in range(1, MOST + 1)]
    found = compare([*names, BEST_OVERLAP], ["bursts"], 2, quick=True, certificate=False)
    for seed in range(2):
        *each, best = [r for r in found if r["seed"] == seed]
        assert best["policy"] == BEST_OVERLAP
        assert best["true_utility"] == max(row["true_utility"] for row in each)
        assert best["labels"] in {row["labels"] for row in each}


def test_finished_points_are_not_run_again(tmp_path: Path) -> None:
    class Nowhere:
        def run(self, points: Any) -> Any:
            assert not points
            return iter(())

    with Store(tmp_path / "points.sqlite") as store:
        first = compare(["greedy"], ["bursts"], 1, quick=True, store=store)
        kept = len(store)
        again = compare(["greedy"], ["bursts"], 1, quick=True, store=store, executor=Nowhere())
        assert first == again
        compare(["greedy"], ["bursts"], 2, quick=True, store=store)
        assert len(store) == 2 * kept


def test_a_point_is_known_by_all_that_matters() -> None:
    paper, bursts = regimes_named(["paper", "bursts"])
    keys = {
        served(stream, policy, learning).key
        for stream in (Stream(paper, 0, 60), Stream(paper, 0, 61), Stream(bursts, 1, 60))
        for policy in (Greedy(), Impostor(), FixedOverlap(2), FixedOverlap(3))
        for learning in (None, LearnThenServe(5))
    }
    assert len(keys) == 24


def test_a_point_is_known_by_settings_that_have_no_name_too() -> None:
    stream = Stream(regimes_named(["paper"])[0], 0, 60)
    ways = [
        LearnWhileServing(),
        LearnWhileServing(prior=(2.0, 1.0)),
        LearnWhileServing(estimator=OneCoin()),
        LearnWhileServing(estimator=OneCoin(max_iter=5)),
        LearnThenServe(5),
        LearnThenServe(5, estimator=DawidSkene()),
    ]
    assert len({served(stream, Greedy(), how).key for how in ways}) == len(ways)
    again = LearnWhileServing(estimator=OneCoin(max_iter=5))
    assert served(stream, Greedy(), again).key == served(stream, Greedy(), ways[3]).key


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((["gredy"], ["paper"], 1), "did you mean 'greedy'"),
        ((["greedy"], ["burst"], 1), "did you mean 'bursts'"),
        (([], ["paper"], 1), "no policies"),
        ((["greedy"], [], 1), "at least one"),
        ((["greedy"], ["paper", "paper"], 1), "none twice"),
        ((["greedy"], ["paper"], 0), "at least one"),
        ((["greedy"], ["paper"], [1, 1]), "none twice"),
        ((["greedy"], ["paper"], [-1]), "from 0 on"),
        (([Greedy(), Impostor()], ["paper"], 1), "two policies are called 'greedy'"),
    ],
)
def test_bad_arguments(arguments: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        compare(*arguments, quick=True)


def test_a_regime_without_its_labels_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    ready, missing = divide(list(REGIMES), tmp_path)
    assert [regime.name for regime in ready] == [regime.name for regime in MADE]
    assert set(missing) == {regime.name for regime in REAL}
    assert "venire datasets fetch medrelex_cause" in missing["medrelex"]
    with pytest.raises(InputError, match="dog needs a label set"):
        compare(["greedy"], ["dog"], 1, data=tmp_path)
    with pytest.raises(UnknownName):
        regimes_named(["cats"])


values = st.floats(-5, 5) | st.none()


@given(st.lists(st.lists(values, min_size=3, max_size=3), min_size=2, max_size=4))
def test_means_and_spreads(seeds: list[list[float | None]]) -> None:
    """A plain reference: three regimes, one policy, one row of values for each seed."""
    made = [
        {"regime": name, "policy": "p", "share": value}
        for values in seeds
        for name, value in zip("abc", values, strict=True)
    ]
    table = Table.of(made, MEASURES["share"])
    means = {}
    for k, name in enumerate("abc"):
        column = [values[k] for values in seeds]
        if None in column:
            assert table.cells[name, "p"] == (None, None)
            continue
        found = np.array(column, dtype=float)
        means[name] = found.mean()
        assert table.cells[name, "p"] == pytest.approx((found.mean(), found.std(ddof=1)))
    if not means:
        assert (table.mean("p"), table.worst("p")) == (None, None)
        return
    assert table.mean("p") == pytest.approx(np.mean(list(means.values())))
    worst = table.worst("p")
    assert worst is not None
    assert worst[0] == pytest.approx(min(means.values()))


def test_the_mean_of_ratios_is_geometric() -> None:
    made = [{"regime": r, "policy": "p", "true_ratio": v} for r, v in (("a", 0.5), ("b", 2.0))]
    assert Table.of(made, MEASURES["true_ratio"]).mean("p") == pytest.approx(1.0)
    made[0]["true_ratio"] = -0.5
    assert Table.of(made, MEASURES["true_ratio"]).mean("p") is None


def test_policies_without_a_mean_come_last_by_their_worst() -> None:
    values = {"p": (0.5, -3.0), "q": (2.0, -1.0), "r": (0.5, 0.5)}
    made = [
        {"regime": regime, "policy": policy, "true_ratio": value}
        for policy, both in values.items()
        for regime, value in zip("ab", both, strict=True)
    ]
    assert Table.of(made, MEASURES["true_ratio"]).ranked() == ["r", "q", "p"]


def test_the_summary_has_a_line_for_each_policy(rows: list[dict[str, Any]]) -> None:
    lines = summarise(rows)
    assert {line["policy"] for line in lines} == {"greedy", "fixed-overlap:3", "random:2"}
    one = next(line for line in lines if line["policy"] == "random:2")
    means = {
        name: fmean(
            r["true_share"] for r in rows if (r["regime"], r["policy"]) == (name, "random:2")
        )
        for name in ("bursts", "clones", "drift")
    }
    assert one["true_share"] == pytest.approx(fmean(means.values()))
    assert one["true_share_worst_regime"] == min(means, key=lambda name: means[name])
    assert one["true_share_regimes"] == one["regimes"] == 3


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_the_tables_fit_and_leave_nobody_out(rows: list[dict[str, Any]], width: int) -> None:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    table = Table.of(rows, MEASURES["utility"])
    for drawn in as_tables(rows, MEASURES["utility"], width):
        console.print(drawn)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "…" not in text
    for cell in table.cells.values():
        assert table.measure.write(cell.mean) in text


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [v for k, v in attrs if k in {"src", "href", "srcset", "data"} and v]


def test_the_files(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    regimes = regimes_named(["bursts", "clones", "drift"])
    setting = Setting("venire compare <x>", regimes, {"dog": "get it"}, True)
    save(tmp_path, rows, setting)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    with (tmp_path / "regimes.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert tuple(read[0]) == COLUMNS
    assert [float(line["utility"]) for line in read] == [row["utility"] for row in rows]
    written = "" if rows[0]["certificate"] is None else repr(rows[0]["certificate"])
    assert read[0]["certificate"] == written
    written_page = (tmp_path / "index.html").read_text()
    links = Links()
    links.feed(written_page)
    assert len(links.found) == 1
    assert links.found[0].startswith("data:image/png;base64,")
    assert "url(" not in written_page
    assert "http" not in written_page
    assert "venire compare &lt;x&gt;" in written_page
    assert all(f"<b>{regime.name}</b>: " in written_page for regime in regimes)
    assert "<b>dog</b> was left out: get it" in written_page
    before = {name: (tmp_path / name).read_bytes() for name in FILES}
    save(tmp_path, rows, setting)
    assert before == {name: (tmp_path / name).read_bytes() for name in FILES}


def test_an_error_leaves_the_old_files(
    rows: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        if "index" in path.name:
            raise OSError(28, "No space left on device")
        original(path, content)

    original = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", full)
    (tmp_path / "regimes.csv").write_text("old")
    with pytest.raises(InputError, match="No space left"):
        save(tmp_path, rows, Setting("venire compare", regimes_named(["bursts"])))
    assert [path.name for path in tmp_path.iterdir()] == ["regimes.csv"]
    assert (tmp_path / "regimes.csv").read_text() == "old"


def test_what_has_no_mean_was_measured_all_the_same(rows: list[dict[str, Any]]) -> None:
    lost = [
        row | {"share": None, "realised_share": None, "realised_ratio": -1.06}
        for row in rows
        if row["policy"] == "random:2"
    ]
    setting = Setting("venire compare", regimes_named(["bursts"]))
    assert "no mean of ratios, -1.060 at worst (bursts)" in page(lost, setting, b"")
    titles = [axes.get_title(loc="left") for axes in draw(lost).axes]
    assert "no mean of ratios; random\nat worst -1.060 (bursts)" in titles
    assert not any("nothing was measured" in title for title in titles)


def test_the_picture_is_a_png_even_of_one_policy(rows: list[dict[str, Any]]) -> None:
    alone = [row for row in rows if row["policy"] == "random:2"]
    assert picture(alone).startswith(b"\x89PNG\r\n\x1a\n")
