"""What the figures share: prefixes of a run, the honest search, growth, and how they are found."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import venire
import venire_research.figures
from tests import reference
from tests.reference import PlainItem, PlainWorld
from tests.strategies import Instance, instances
from venire import Algorithm2, Greedy, Item, Labeler, LabelTable, World, simulate
from venire.cli import main
from venire.errors import FetchError, FileError, UnknownName
from venire_research.common import fingerprint
from venire_research.common.label_sets import Sets, share_right
from venire_research.common.statistics import band, growth
from venire_research.figures import ORDER
from venire_research.reproduction import measures
from venire_research.reproduction.figure import Plan, all_figures, figures_named
from venire_research.reproduction.literal import LiteralGreedy
from venire_research.reproduction.search import search
from venire_research.reproduction.sources import BIRD, DOG, DOG_BINARY, SYNTHETIC, world_of
from venire_research.reproduction.trials import Trials

HORIZONS = [30, 100, 101, 400]


def recorded(seed: int) -> World:
    """Ten items, six labelers, some labels missing."""
    rng = np.random.default_rng(0)
    said = rng.integers(2, size=(10, 6))
    said[rng.random((10, 6)) < 0.3] = -1
    truth = {i: int(k) for i, k in enumerate(rng.integers(2, size=10))}
    return World.recorded(LabelTable.from_matrix(said), truth, np.linspace(0.6, 0.9, 6), seed)


@pytest.mark.parametrize("make", [World.synthetic, recorded])
@pytest.mark.parametrize("length", [0, 45])
def test_one_long_run_gives_all_shorter_horizons(make: type, length: int) -> None:
    """Utility to the bit; verdicts but for what is outstanding at the shorter horizon."""
    learning = Algorithm2(length) if length else None
    found = measures.at_horizons(
        simulate(make(3), Greedy(), learning=learning, slots=400), HORIZONS
    )
    for k, horizon in enumerate(HORIZONS):
        alone = simulate(make(3), Greedy(), learning=learning, slots=horizon)
        assert found["utility"][k] == alone.utility
        assert found["items"][k] == len(alone.rows)
        assert found["weight"][k] == alone.rows["weight"].sum()
        if alone.accuracy is not None:
            assert found["right"][k] == pytest.approx(alone.accuracy, abs=0.02)


def test_a_run_says_what_the_simulator_says() -> None:
    found = measures.stream_run({"set": None}, 1, [100, 500], 45)
    genie = measures.stream_run({"set": None}, 1, [100, 500])
    run = simulate(World.synthetic(1), Greedy(), learning=Algorithm2(45, seed=1), slots=500)
    assert found["utility"][-1] == run.utility
    assert genie["utility"][-1] == run.genie.utility
    assert found["right"][-1] == run.accuracy
    assert (genie["utility"][-1] - found["utility"][-1]) / (
        found["weight"][-1] / 500
    ) == pytest.approx(run.normalised_regret)
    assert 0 < found["mean_error"] < found["norm"] < 0.5
    assert genie["norm"] is None


@settings(max_examples=40)
@given(instances())
def test_break_is_the_plain_reference_with_break(instance: Instance) -> None:
    once = tuple(replace(labeler, capacity=1) for labeler in instance.panel)
    instance = replace(instance, panel=once)
    world = instance.plain()
    reference.greedy(world, breaks=True)
    run = simulate(instance.world(), LiteralGreedy(), slots=instance.slots)
    given = [(int(t["slot"]), int(t["row"]), int(t["labeler"])) for t in run.touches]
    assert given == [(slot, row, m) for slot, row, m, _ in world.assignments]


def test_plain_counts_share_ties() -> None:
    votes = np.array([[2, 1, 0], [1, 1, 0], [0, 0, 0], [0, 3, 3]])
    assert share_right(votes, np.array([0, 0, 0, 0])).tolist() == [1, 0.5, 0, 0]


def trials(utility: list[list[float]]) -> Trials:
    """Lengths 1, 2 and 400 on some seeds at the horizon 100; the genie earns 10."""
    values = np.array(utility)[:, :, None]
    shape = values.shape
    nothing = np.zeros(shape[:2])
    genie = np.full((shape[1], 1), 10.0)
    lengths = np.array([1, 2, 400])
    seeds = tuple(range(shape[1]))
    return Trials(
        SYNTHETIC, np.array([100]), lengths, seeds, values, values, values, nothing, nothing,
        genie, genie, np.ones_like(genie),
    )  # fmt: skip


def test_a_length_is_judged_on_other_seeds_than_it_was_chosen_on() -> None:
    """Seeds 0 and 2 like length 1, seeds 1 and 3 like length 2: each half gets the other's."""
    found = search(trials([[9, 5, 9, 5], [6, 8, 6, 8], [10, 10, 10, 10]]))
    assert found.length[:, 0].tolist() == [2, 1, 2, 1]
    assert found.regret[:, 0].tolist() == [4, 5, 4, 5]
    assert found.hindsight_regret[:, 0].tolist() == [1, 2, 1, 2]
    assert found.best.tolist() == [1]  # equal means: the shorter; 400 slots are no phase of 100


def test_growth_tells_powers_from_logarithms() -> None:
    T = np.array([100, 1000, 10_000, 100_000])
    noise = 1 + 0.01 * np.random.default_rng(0).standard_normal((10, 4))
    root, log, slow = growth(T, T**0.5 * noise), growth(T, np.log(T) * noise), growth(T, noise)
    assert root.power.low < 0.5 < root.power.high
    assert "faster than log T" in root.in_words("it")
    assert log.log_power.low < 1 < log.log_power.high
    assert "indistinguishable from log T" in log.in_words("it")
    assert "slower than log T" in slow.in_words("it")


def test_bands_pass_over_what_is_not_there() -> None:
    b = band([[1.0, np.nan, np.nan], [3.0, 2.0, np.nan]])
    assert b.mean[:2].tolist() == [2.0, 2.0]
    assert np.isnan(b.mean[2])
    assert b.low[1] == b.high[1] == 2.0


def test_every_figure_of_the_issue_is_found_in_order() -> None:
    assert tuple(all_figures()) == ORDER
    assert [f.name for f in figures_named(["bounds", "errata", "bounds"])] == ["bounds", "errata"]
    with pytest.raises(UnknownName, match="did you mean 'errata'"):
        figures_named(["erata"])


@pytest.mark.parametrize("name", ORDER)
def test_a_figure_says_what_it_is(name: str) -> None:
    figure = all_figures()[name]
    assert all((figure.title, figure.paper, figure.assumptions))
    assert all(text.endswith(".") for text in (figure.paper, *figure.assumptions))


def test_a_figure_is_added_by_adding_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(
        "from venire_research.figures.errata import Errata\n"
        "class Mine(Errata):\n    name = 'mine'\n"
        "FIGURE = Mine()\n"
    )
    package = venire_research.figures
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    assert list(all_figures()) == [*ORDER, "mine"]


def test_without_label_sets_the_real_figures_say_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENIRE_DATA", str(tmp_path))
    plan = Plan(quick=True)
    missing = {name for name, figure in all_figures().items() if figure.missing(plan)}
    assert missing == {"bird-regret", "bird-learning", "dog-regret", "dog-learning"}
    assert "--data DIR" in Sets().remedy("dog")
    with pytest.raises(FetchError, match="venire datasets fetch dog"):
        Sets().load("dog")


def test_the_remedy_works(tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = Sets(tmp_path / "my sets")
    assert not sets.has("bluebird")
    command = shlex.split(sets.remedy("bluebird").split("`")[1])
    assert command[:3] == ["venire", "datasets", "fetch"]
    assert main([*command[1:], "--from", str(data / "bluebird")]) == 0
    assert sets.has("bluebird")


def test_a_broken_set_is_named(tmp_path: Path) -> None:
    (tmp_path / "dog").mkdir()
    (tmp_path / "dog" / "labels.csv").write_text("task,worker\n1,2\n")
    with pytest.raises(FetchError, match="dog is not in"):
        Sets(tmp_path).load("dog")
    (tmp_path / "dog" / "truth.csv").write_text("task,label\n1,3\n")
    with pytest.raises(FileError, match=r"labels.csv, line 1: .* no column says what the label"):
        Sets(tmp_path).load("dog")


def test_the_real_sets_are_what_we_say(data: Path) -> None:
    sets = Sets(data)
    bird, binary, dog = sets.load("bluebird"), sets.load("dog", "binary"), sets.load("dog")
    assert (len(bird.table.labelers), len(bird.table.items)) == (39, 108)
    assert (len(dog.table.labelers), len(dog.table.items)) == (109, 807)
    assert bird.majority_accuracy() == pytest.approx(0.7593, abs=1e-4)
    assert dog.majority_accuracy() == pytest.approx(0.822, abs=0.005)
    assert binary.majority_accuracy() == pytest.approx(0.999, abs=1e-3)
    assert len({s.settings(sets)["digest"] for s in (BIRD, DOG_BINARY, DOG)}) == 3


def test_the_order_of_the_lines_changes_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = [f"{i},{m},{rng.integers(2)}" for i in range(12) for m in range(9, 14)]
    truth = [f"{i},{rng.integers(2)}" for i in range(12)]
    found = []
    for folder in ("as-is", "shuffled"):
        home = tmp_path / folder / "bluebird"
        home.mkdir(parents=True)
        (home / "labels.csv").write_text("\n".join(["task,worker,label", *labels, ""]))
        (home / "truth.csv").write_text("\n".join(["task,label", *truth, ""]))
        rng.shuffle(labels)
        rng.shuffle(truth)
        sets = Sets(tmp_path / folder)
        assert sets.load("bluebird").table.labelers == (9, 10, 11, 12, 13)
        settings = BIRD.settings(sets)
        found.append((settings, measures.stream_run(settings, 0, [50], 5, data=str(sets.root))))
    assert found[0] == found[1]


def test_a_real_stream_is_reproducible_and_masked(data: Path) -> None:
    sets = Sets(data)
    world, known = world_of(DOG_BINARY.settings(sets), 0, str(data))
    assert world.competences.max() == 0.99
    assert known.max() > 0.99
    found = measures.stream_run(DOG_BINARY.settings(sets), 0, [200], 5, data=str(data))
    assert found == measures.stream_run(DOG_BINARY.settings(sets), 0, [200], 5, data=str(data))
    assert found["labels_per_item"] <= 10


def test_a_change_of_the_sources_changes_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    file = tmp_path / "inner" / "a.py"
    keys = set()
    for text in ("RHO = 0.01\n", "RHO = 0.02\n"):
        file.write_text(text)
        digest = fingerprint.digest_of(["inner"], {"inner": tmp_path})
        monkeypatch.setattr(fingerprint, "sources_digest", lambda digest=digest: digest)
        keys.add(measures.point("counterexample", {"labelers": 10}).key)
    assert len(keys) == 2


def test_the_digest_is_of_every_source_that_it_names() -> None:
    roots = [Path(str(module.__file__)).parents[1] for module in (venire, venire_research)]
    found = [name for name in fingerprint.SOURCES if any((root / name).exists() for root in roots)]
    assert tuple(found) == fingerprint.SOURCES
    assert fingerprint.sources_digest() == fingerprint.digest_of()
    assert Path(measures.__file__).relative_to(roots[1]).as_posix() in fingerprint.SOURCES


def test_the_counterexample_is_that_of_the_errata() -> None:
    found = measures.counterexample(300)
    assert found["greedy"] == pytest.approx(295.5, abs=0.1)
    assert found["plain"] == pytest.approx(7417, abs=1)


def test_break_costs_nothing_where_everyone_may_label_everything() -> None:
    found = measures.break_run(1.0, 0, 200)
    assert found["break"] == pytest.approx(found["going_on"], rel=0.01)
    starved = measures.break_run(0.1, 0, 200)
    assert starved["break"] < 0.5 * starved["going_on"]


def test_break_keeps_to_the_rules_of_a_policy() -> None:
    item, panel = Item("x", 10.0, frozenset({"b"})), [Labeler("a", 0.9), Labeler("b", 0.8)]
    run = simulate(World.trace([item], [0], panel), LiteralGreedy(), slots=2)
    assert list(run.assignments()) == []
    plain = PlainWorld([0.9, 0.8], [1, 1], [PlainItem(0, 10.0, frozenset({1}))], 2)
    assert reference.greedy(plain, breaks=True).assignments == []
