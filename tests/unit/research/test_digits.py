"""The demo's job: a fixed panel, and a main job that is the simulator's run slot by slot."""

import io
import json
from base64 import b64decode
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from venire.engine import Scheduler
from venire.errors import MissingExtra
from venire.events import Assigned, Closed
from venire.model import Labeler
from venire.scheduling import Algorithm2, FixedOverlap, Greedy, LearnWhileServing, Realised
from venire.simulation import Run, simulate
from venire_research.common.drawing import require_matplotlib
from venire_research.digits import (
    LEARNING_SLOTS,
    METHODS,
    DigitJob,
    Outcome,
    Progress,
    Score,
    Trial,
    compare,
    equal,
    hire,
    load_job,
    picture,
    report,
    work,
)
from venire_research.digits.comparison import mean_and_spread
from venire_research.digits.served import arrivals, as_png
from venire_research.digits.view import View, introduce, watch

SLOTS = 120


@pytest.fixture(scope="module")
def job() -> DigitJob:
    return load_job()


@pytest.fixture(scope="module")
def trials(job: DigitJob) -> list[Trial]:
    return list(compare(job, seeds=[0, 1], slots=SLOTS))


def by_key(trials: list[Trial], key: str, seed: int = 0) -> Trial:
    return next(t for t in trials if t.method.key == key and t.seed == seed)


def engine_and_run(job: DigitJob, seed: int, slots: int) -> tuple[Scheduler, Run]:
    scheduler = hire(job)
    for _ in work(job, scheduler, seed, slots):
        pass
    return scheduler, simulate(job.world(seed), Realised(), LearnWhileServing(), slots)


def sum_of_prices(job: DigitJob) -> float:
    """What the labels of the main job cost, by its log."""
    scheduler, _ = engine_and_run(job, 0, SLOTS)
    price = dict(zip(job.labelers, job.prices, strict=True))
    assigned = [a for e in scheduler.log if isinstance(e, Assigned) for a in e.assignments]
    return sum(price[a.labeler] for a in assigned)


class TestPanel:
    def test_is_the_same_every_time(self, job: DigitJob) -> None:
        again = load_job.__wrapped__()
        assert again is not job
        assert np.array_equal(again.said, job.said)
        assert again.names == job.names

    def test_competences_are_spread_from_weak_to_good(self, job: DigitJob) -> None:
        p = np.sort(job.competences)
        assert 10 <= len(p) <= 15
        assert 0.4 < p[0] < 0.55
        assert 0.8 < p[-1] < 0.92
        assert np.diff(p).max() < 0.15

    def test_capacities_differ_and_none_keeps_up_alone(self, job: DigitJob) -> None:
        assert len(set(job.capacity)) > 1
        assert job.capacity[job.best] < 3

    def test_truth_is_hidden_from_the_scheduler(self, job: DigitJob) -> None:
        assert all(who.competence is None for who in hire(job).panel)

    def test_the_better_are_the_dearer_and_the_quick_are_cheap(self, job: DigitJob) -> None:
        terms = zip(job.kinds, job.prices, job.capacity, strict=True)
        assert set(terms) >= {("person", 0.10, 1), ("judge", 0.03, 1), ("model", 0.01, 3)}
        mean = {k: job.competences[np.array(job.kinds) == k].mean() for k in set(job.kinds)}
        assert mean["person"] > mean["judge"] > mean["model"]

    def test_a_stream_has_no_repeats_and_depends_on_its_seed(self, job: DigitJob) -> None:
        first, second = (job.world(seed).items(400) for seed in (0, 1))
        assert first.ids is not None
        assert len(set(first.ids)) == len(first.ids) > 1100
        assert first.ids[:20] != (second.ids or ())[:20]

    def test_a_longer_stream_begins_like_a_shorter_one(self, job: DigitJob) -> None:
        short, long = job.world(3).items(50), job.world(3).items(600)
        assert short.ids == (long.ids or ())[: len(short)]
        assert np.array_equal(short.weight, long.weight[: len(short)])
        assert len(long) == len(job.names)

    def test_a_panel_of_one_sees_the_same_stream(self, job: DigitJob) -> None:
        alone = job.only(job.best).world(0).items(100)
        assert alone.ids == job.world(0).items(100).ids

    def test_without_scikit_learn_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
        with pytest.raises(MissingExtra, match=r"pip install 'venire\[demo\]'"):
            load_job.__wrapped__()


class TestMainJob:
    @pytest.mark.parametrize("seed", [0, 1])
    def test_engine_equals_simulator(self, job: DigitJob, seed: int) -> None:
        scheduler, run = engine_and_run(job, seed, SLOTS)
        assigned = [a for e in scheduler.log if isinstance(e, Assigned) for a in e.assignments]
        # a gain is nan in the learning phase, and nan differs from itself
        assert list(map(repr, assigned)) == list(map(repr, run.assignments()))
        left = [e for event in scheduler.log if isinstance(event, Closed) for e in event.exits]
        assert left == [e for e in run.exits() if e.reason != "horizon"]

    def test_progress_adds_up(self, job: DigitJob) -> None:
        steps = list(work(job, hire(job), slots=SLOTS))
        for before, now in pairwise(steps):
            assert now.in_hand == before.queue + now.arrived - before.arrived
            assert now.arrived == now.verdicts + now.unanswered + now.queue
        assert steps[-1].unanswered == 0
        assert steps[-1].money == pytest.approx(sum_of_prices(job))

    def test_learned_competences_are_near_the_true_ones(self, trials: list[Trial]) -> None:
        for seed in (0, 1):
            for key in ("venire", "paper-learned"):
                learned = by_key(trials, key, seed).learned
                assert learned is not None
                true = load_job().competences
                assert np.corrcoef(learned, true)[0, 1] > 0.7
                assert np.abs(learned - true).mean() < 0.15


class TestComparison:
    def test_has_every_method_on_every_stream(self, trials: list[Trial]) -> None:
        assert [(t.seed, t.method.key) for t in trials] == [
            (seed, method.key) for seed in (0, 1) for method in METHODS
        ]
        assert len({len(t.outcome.weight) for t in trials if t.seed == 0}) == 1

    def test_majority_is_a_plain_majority(self, job: DigitJob, trials: list[Trial]) -> None:
        made = by_key(trials, "overlap-3").outcome
        panel = tuple(Labeler(w.id, 0.5, w.capacity) for w in job.world(0).panel)
        run = simulate(replace(job.world(0), panel=panel), FixedOverlap(3), None, SLOTS)
        votes = np.zeros((len(run.rows), 10), dtype=int)
        np.add.at(votes, (run.touches["row"], run.touches["said"]), 1)
        decided = made.verdict >= 0
        most = 9 - np.argmax(votes[:, ::-1], axis=1)  # a tie goes to the later class
        assert np.array_equal(made.verdict[decided], most[decided])

    def test_dawid_skene_decides_by_the_labels_of_the_majority(self, trials: list[Trial]) -> None:
        for k in (3, 5):
            vote, learned = (by_key(trials, f"overlap-{k}{what}") for what in ("", "-ds"))
            assert np.array_equal(vote.outcome.labels, learned.outcome.labels)
            assert learned.score.response == vote.score.response
            assert learned.score.right_of_all != vote.score.right_of_all

    def test_best_alone_is_the_best_labeler_within_its_capacity(
        self, job: DigitJob, trials: list[Trial]
    ) -> None:
        made = by_key(trials, "best-alone").outcome
        assert job.labelers[job.best] == "bayes"
        assert made.labels.sum() <= SLOTS * job.capacity[job.best]
        assert made.money.sum() == pytest.approx(0.10 * made.labels.sum())

    def test_everyone_cannot_keep_up(self, trials: list[Trial]) -> None:
        trial = by_key(trials, "everyone")
        assert trial.score.waiting > len(trial.outcome.weight) / 2
        assert trial.score.answered < 0.5

    def test_the_product_comes_first_and_beats_the_votes_of_overlap(
        self, trials: list[Trial]
    ) -> None:
        ours, *others = METHODS
        assert [ours.key, others[0].key] == ["venire-student", "venire"]
        for other in (m for m in others if m.title.endswith("majority")):
            for measure in ("right_of_all", "true_utility"):
                better, worse = (mean_and_spread(trials, m, measure)[0] for m in (ours, other))
                assert better > worse

    def test_passed_over_and_waiting_images_count_as_unanswered(self, trials: list[Trial]) -> None:
        for trial in trials:
            s, made = trial.score, trial.outcome
            assert s.right_of_all == pytest.approx(s.answered * s.right_of_answered)
            if trial.method.key != "venire-student":  # its label alone may decide
                assert s.answered <= 1 - (made.waiting | (made.labels == 0)).mean() + 1e-9

    def test_a_log_and_a_run_come_to_the_same(self, job: DigitJob) -> None:
        scheduler, run = engine_and_run(job, 0, SLOTS)
        of_log, of_run = Outcome.of_log(job, 0, SLOTS, scheduler.log), Outcome.of_run(run)
        assert of_log.score == pytest.approx(of_run.score)
        assert np.array_equal(of_log.queue, of_run.queue)

    def test_score_of_nothing_is_nothing(self, job: DigitJob) -> None:
        empty = simulate(job.world(0), Greedy(), Algorithm2(1), slots=1)
        assert 0 <= Outcome.of_run(empty).score.answered <= 1

    def test_one_seed_has_no_spread(self, job: DigitJob) -> None:
        once = list(compare(job, [0], slots=30))
        assert mean_and_spread(once, METHODS[0], "answered")[1] == 0

    def test_nothing_to_learn_from_is_no_error(self, job: DigitJob) -> None:
        quiet = next(s for s in range(200) if (job.world(s).items(1).first(1)[-1] == 0))
        paper = [m for m in METHODS if m.key == "paper-learned"]
        trial = next(compare(job, [quiet], learning_slots=1, slots=10, methods=paper))
        assert trial.learned is None


class TestServed:
    def test_the_server_gets_the_stream_of_the_simulator(self, job: DigitJob) -> None:
        slots, items = arrivals(job, 3, SLOTS), job.world(3).items(SLOTS)
        assert [item["id"] for slot in slots for item in slot] == [
            items.name(row) for row in range(len(items.weight))
        ]
        assert [n for n, slot in enumerate(slots) for _ in slot] == items.arrival.tolist()
        assert [item["weight"] for slot in slots for item in slot] == items.weight.tolist()

    def test_a_picture_shows_the_pixels(self, job: DigitJob) -> None:
        image = job.images[0]
        body = b64decode(as_png(image).partition(",")[2])
        drawn = np.asarray(Image.open(io.BytesIO(body)), dtype=float)[6::12, 6::12]
        assert np.abs(drawn / 255 - (1 - image)).max() <= 0.5 / 255 + 1e-9


class TestEqual:
    def test_rivals_spend_what_venire_has_spent(self, job: DigitJob, trials: list[Trial]) -> None:
        rows = equal.equal_rows(job, trials)
        assert {row.key for row in rows} == set(equal.TITLES)
        for seed in (0, 1):
            by = {row.key: row for row in rows if row.seed == seed}
            ours = by["venire"]
            assert (ours.labels, ours.money) == (by["venire-revised"].labels, ours.money)
            for rival in ("labels-ds", "labels-majority"):
                assert by[rival].labels == ours.labels
            for rival in ("money-ds", "money-majority"):  # within one label of the dearest
                assert 0 <= ours.money - by[rival].money <= max(job.prices)
            score = by_key(trials, "venire").score
            if seed == 0:
                assert ours.right == score.right_of_all

    def test_a_revised_verdict_is_the_last_that_the_log_has(
        self, job: DigitJob, trials: list[Trial]
    ) -> None:
        trial = by_key(trials, "venire")
        assert trial.revised is not None
        changed = trial.revised.verdict != trial.outcome.verdict
        assert 0 < changed.sum() < len(changed) / 2
        assert (trial.revised.labels == trial.outcome.labels).all()

    def test_the_picture_and_the_table_have_every_way(
        self, job: DigitJob, trials: list[Trial], tmp_path: Path
    ) -> None:
        rows = equal.equal_rows(job, trials)
        picture.save_equal(tmp_path / "equal.png", rows)
        assert (tmp_path / "equal.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        out = io.StringIO()
        Console(file=out, width=80).print(report.as_equal_table(rows))
        assert max(map(len, out.getvalue().splitlines())) <= 80
        assert all(title in out.getvalue() for title in equal.TITLES.values())


class TestReport:
    def test_table_holds_every_method_and_fits_80_columns(self, trials: list[Trial]) -> None:
        out = io.StringIO()
        Console(file=out, width=80).print(report.as_table(trials))
        text = out.getvalue()
        assert max(map(len, text.splitlines())) <= 80
        assert "…" not in text
        for method in METHODS:
            assert all(part in text for part in method.title.split(", "))

    def test_ascii_only_table(self, trials: list[Trial]) -> None:
        raw = io.BytesIO()
        out = io.TextIOWrapper(raw, encoding="ascii")
        Console(file=out, width=80).print(report.as_table(trials, ascii_only=True))
        out.flush()
        assert raw.getvalue().isascii()
        assert b"majority" in raw.getvalue()

    def test_files_hold_every_trial_and_its_seed(
        self, job: DigitJob, trials: list[Trial], tmp_path: Path
    ) -> None:
        table, everything = report.save(tmp_path, report.document(job, trials, LEARNING_SLOTS))
        head, *rows = table.read_text(encoding="utf-8").splitlines()
        assert head.split(",") == ["method", "seed", "items", *Score.measures()]
        assert len(rows) == 2 * len(METHODS)
        saved = json.loads(everything.read_text(encoding="utf-8"))
        assert saved["seeds"] == [0, 1]
        assert [m["method"] for m in saved["methods"]] == [m.key for m in METHODS]


class TestPicture:
    def test_is_a_png(self, job: DigitJob, trials: list[Trial], tmp_path: Path) -> None:
        picture.save_picture(tmp_path / "demo.png", job, trials)
        data = (tmp_path / "demo.png").read_bytes()
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        assert len(data) > 50_000

    def test_queue_is_what_the_engine_has_outstanding(
        self, job: DigitJob, trials: list[Trial]
    ) -> None:
        waiting = [now.queue for now in work(job, hire(job), slots=SLOTS)]
        assert by_key(trials, "venire").outcome.queue.tolist() == waiting

    def test_without_matplotlib_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
        with pytest.raises(MissingExtra, match=r"pip install 'venire\[plot\]'"):
            require_matplotlib()


class TestView:
    def steps(self, job: DigitJob) -> list[Progress]:
        return list(work(job, hire(job), slots=40))

    def test_plain_lines_where_there_is_no_terminal(self, job: DigitJob) -> None:
        out = io.StringIO()
        last = watch(job, self.steps(job), Console(file=out), slots=40)
        assert last.slot == 39
        assert "\x1b" not in out.getvalue()
        assert max(map(len, out.getvalue().splitlines())) <= 80
        assert 5 < len(out.getvalue().splitlines()) < 12

    def test_live_on_a_terminal(self, job: DigitJob) -> None:
        out = io.StringIO()
        console = Console(file=out, force_terminal=True, width=100, height=30)
        watch(job, self.steps(job), console, slots=40, seconds=0.4)
        assert "\x1b[" in out.getvalue()
        assert "slot 40 of 40: learning who is how good, while serving" in out.getvalue()

    def test_the_introduction_fits_80_columns_and_needs_a_terminal(self, job: DigitJob) -> None:
        out, plain = io.StringIO(), io.StringIO()
        introduce(job, Console(file=out, force_terminal=True, color_system=None, width=80))
        lines = out.getvalue().splitlines()
        assert {len(line) for line in lines} == {80}
        assert len(lines) == 2 + 4 + len(job.labelers)
        assert "…" not in out.getvalue()
        introduce(job, Console(file=plain))
        assert plain.getvalue() == ""

    def test_small_terminals_get_lines(self, job: DigitJob) -> None:
        out = io.StringIO()
        console = Console(file=out, force_terminal=True, width=60, height=30)
        watch(job, self.steps(job), console, slots=40, seconds=5)
        assert "slot 40 of 40" not in out.getvalue()

    def test_a_frame_fits_80_by_21(self, job: DigitJob) -> None:
        view = View(job, 40)
        for now in [Progress(), *self.steps(job)]:
            view.see(now)
            out = io.StringIO()
            Console(file=out, width=80).print(view.render(now))
            lines = out.getvalue().splitlines()
            assert len(lines) == 21
            assert max(map(len, lines)) == 80

    def test_digits_are_drawn_without_colour_too(self, job: DigitJob) -> None:
        drawn = View(job, 40, colour=False).draw(job.images[0]).plain
        assert [len(line) for line in drawn.split("\n")] == [8] * 4
        assert set(drawn) <= set(" ░▒▓█\n")
