"""The demo's job: a fixed panel, and a main job that is the simulator's run slot by slot."""

import io
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from venire.engine import Scheduler
from venire.errors import MissingExtra
from venire.events import Assigned, Closed
from venire.experiments.common.drawing import require_matplotlib
from venire.experiments.digits import (
    LEARNING_SLOTS,
    METHODS,
    DigitJob,
    Progress,
    Score,
    Trial,
    compare,
    hire,
    load_job,
    picture,
    report,
    work,
)
from venire.experiments.digits.comparison import mean_and_spread, score
from venire.experiments.digits.picture import queue_of
from venire.experiments.digits.view import View, watch
from venire.scheduling import Algorithm2, Everyone, FixedOverlap, Greedy
from venire.simulation import Run, simulate

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
    scheduler = hire(job, seed)
    for _ in work(job, scheduler, seed, slots):
        pass
    learning = Algorithm2(LEARNING_SLOTS, seed=seed)
    return scheduler, simulate(job.world(seed), Greedy(), learning, slots)


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
        scheduler = hire(job)
        assert scheduler.competences is None

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
        assert steps[LEARNING_SLOTS - 2].competences is None
        assert steps[LEARNING_SLOTS - 1].competences is not None
        assert steps[-1].unanswered == steps[LEARNING_SLOTS - 1].unanswered

    def test_learned_competences_are_near_the_true_ones(self, trials: list[Trial]) -> None:
        for seed in (0, 1):
            learned = by_key(trials, "paper-learned", seed).learned
            assert learned is not None
            true = load_job().competences
            assert np.corrcoef(learned, true)[0, 1] > 0.7
            assert np.abs(learned - true).mean() < 0.15


class TestComparison:
    def test_has_every_method_on_every_stream(self, trials: list[Trial]) -> None:
        assert [(t.seed, t.method.key) for t in trials] == [
            (seed, method.key) for seed in (0, 1) for method in METHODS
        ]
        assert len({len(t.run.rows) for t in trials if t.seed == 0}) == 1

    def test_majority_is_a_plain_majority(self, job: DigitJob, trials: list[Trial]) -> None:
        run = by_key(trials, "overlap-3").run
        assert isinstance(run.policy, FixedOverlap)
        votes = np.zeros((len(run.rows), 10), dtype=int)
        np.add.at(votes, (run.touches["row"], run.touches["said"]), 1)
        labelled = votes.sum(axis=1) > 0
        most = 9 - np.argmax(votes[:, ::-1], axis=1)  # a tie goes to the later class
        assert np.array_equal(run.rows["verdict"][labelled], most[labelled])

    def test_best_alone_is_the_best_labeler_within_its_capacity(
        self, job: DigitJob, trials: list[Trial]
    ) -> None:
        run = by_key(trials, "best-alone").run
        assert [who.id for who in run.world.panel] == ["bayes"]
        assert np.bincount(run.touches["slot"]).max() == job.capacity[job.best]

    def test_everyone_cannot_keep_up(self, trials: list[Trial]) -> None:
        trial = by_key(trials, "everyone")
        assert isinstance(trial.run.policy, Everyone)
        assert trial.score.waiting > len(trial.run.rows) / 2
        assert trial.score.answered < 0.5

    def test_the_genie_beats_overlap_at_less_delay(self, trials: list[Trial]) -> None:
        genie, overlap = METHODS[1], METHODS[2]
        assert genie.key == "paper-genie"
        for measure in ("right_of_all", "true_utility"):
            better, worse = (mean_and_spread(trials, m, measure)[0] for m in (genie, overlap))
            assert better > worse

    def test_passed_over_and_waiting_images_count_as_unanswered(self, trials: list[Trial]) -> None:
        for trial in trials:
            s, rows = trial.score, trial.run.rows
            assert s.right_of_all == pytest.approx(s.answered * s.right_of_answered)
            unlabelled = int(((rows["labels"] == 0) & (rows["exit"] < SLOTS - 1)).sum())
            assert s.answered <= 1 - unlabelled / len(rows)

    def test_score_of_nothing_is_nothing(self, job: DigitJob) -> None:
        empty = simulate(job.world(0), Greedy(), Algorithm2(1), slots=1)
        assert 0 <= score(empty).answered <= 1

    def test_one_seed_has_no_spread(self, job: DigitJob) -> None:
        once = list(compare(job, [0], slots=30))
        assert mean_and_spread(once, METHODS[0], "answered")[1] == 0

    def test_nothing_to_learn_from_is_no_error(self, job: DigitJob) -> None:
        quiet = next(s for s in range(200) if (job.world(s).items(1).first(1)[-1] == 0))
        trial = next(compare(job, [quiet], learning_slots=1, slots=10))
        assert trial.learned is None


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
        assert queue_of(by_key(trials, "paper-learned").run).tolist() == waiting

    def test_without_matplotlib_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
        with pytest.raises(MissingExtra, match=r"pip install 'venire\[plot\]'"):
            require_matplotlib()


class TestView:
    def steps(self, job: DigitJob) -> list[Progress]:
        return list(work(job, hire(job), slots=40))

    def test_plain_lines_where_there_is_no_terminal(self, job: DigitJob) -> None:
        out = io.StringIO()
        last = watch(job, self.steps(job), Console(file=out), LEARNING_SLOTS, slots=40)
        assert last.slot == 39
        assert "\x1b" not in out.getvalue()
        assert "slot  20: competences learned\n" in out.getvalue()
        assert 5 < len(out.getvalue().splitlines()) < 12

    def test_live_on_a_terminal(self, job: DigitJob) -> None:
        out = io.StringIO()
        console = Console(file=out, force_terminal=True, width=100, height=30)
        watch(job, self.steps(job), console, LEARNING_SLOTS, slots=40, seconds=0.4)
        assert "\x1b[" in out.getvalue()
        assert "slot 40 of 40: serving with the learned competences" in out.getvalue()

    def test_small_terminals_get_lines(self, job: DigitJob) -> None:
        out = io.StringIO()
        console = Console(file=out, force_terminal=True, width=60, height=30)
        watch(job, self.steps(job), console, LEARNING_SLOTS, slots=40, seconds=5)
        assert "slot 40 of 40" not in out.getvalue()

    def test_a_frame_fits_80_by_21(self, job: DigitJob) -> None:
        view = View(job, LEARNING_SLOTS, 40)
        for now in [Progress(), *self.steps(job)]:
            view.see(now)
            out = io.StringIO()
            Console(file=out, width=80).print(view.render(now))
            lines = out.getvalue().splitlines()
            assert len(lines) == 21
            assert max(map(len, lines)) == 80

    def test_digits_are_drawn_without_colour_too(self, job: DigitJob) -> None:
        drawn = View(job, LEARNING_SLOTS, 40, colour=False).draw(job.images[0]).plain
        assert [len(line) for line in drawn.split("\n")] == [8] * 4
        assert set(drawn) <= set(" ░▒▓█\n")
