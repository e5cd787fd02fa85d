from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import venire as vn
from venire.audits import Drawn
from venire.audits.intervals import upper_count, upper_rate
from venire.errors import InputError

VERDICTS: dict[int, str] = {i: "spam" if i % 20 == 0 else "ok" for i in range(400)}

answers = st.lists(st.sampled_from([True, False, None]), max_size=40)


@given(answers, st.integers(0, 40))
def test_one_by_one_equals_all_at_once(given: list[bool | None], more: int) -> None:
    for size in (None, len(given) + more + 1):
        one, many = vn.ErrorBound(size=size), vn.ErrorBound(size=size)
        for wrong in given:
            one.update(wrong)
        many.update_many(given[::-1])
        assert one == many
        assert (one.upper, one.interval) == (many.upper, many.interval)


@given(answers, st.integers(0, 40), st.floats(0.5, 0.99))
def test_bounds_enclose_the_estimate_and_each_other(
    given: list[bool | None], more: int, level: float
) -> None:
    bound = vn.ErrorBound(level, len(given) + more + 1)
    bound.update_many(given)
    low, high = bound.interval
    assert 0 <= low <= (bound.estimate or 0) + 1e-12
    assert (bound.estimate or 0) <= bound.upper + 1e-12 <= high + 2e-12
    surer = vn.ErrorBound(level + 0.005, bound.size, bound.audited, bound.wrong, bound.skipped)
    assert bound.upper <= surer.upper


def test_the_ends_are_those_of_the_method() -> None:
    bound = vn.ErrorBound(0.9, 500, audited=100, wrong=7, skipped=2)
    assert bound.estimate == 7 / 98
    assert bound.upper == upper_count(9, 100, 500, 0.9) / 500
    assert bound.interval[0] == (500 - upper_count(93, 100, 500, 0.95)) / 500
    assert bound.interval[1] == upper_count(9, 100, 500, 0.95) / 500
    process = vn.ErrorBound(0.9, None, audited=100, wrong=7)
    assert process.upper == float(upper_rate(7, 100, 0.9))
    assert vn.ErrorBound().estimate is None
    assert vn.ErrorBound().interval == (0, 1)


def test_bad_counts() -> None:
    with pytest.raises(InputError, match="got 3 wrong and 0 skipped of 2 audited"):
        vn.ErrorBound(audited=2, wrong=3)
    with pytest.raises(InputError, match="got size 0, expected a number of verdicts from 1"):
        vn.ErrorBound(size=0)
    bound = vn.ErrorBound(size=2)
    with pytest.raises(InputError, match="got 3 audits of 2 verdicts, expected each once"):
        bound.update_many([False] * 3)
    assert bound.audited == 0


@given(st.floats(0.01, 1), st.integers(0, 2**32), st.integers(0, 30))
def test_a_draw(share: float, seed: int, at_least: int) -> None:
    drawn = vn.draw_audit(VERDICTS, share, seed, at_least)
    tasks = [task for task, _ in drawn]
    sample = [task for task, extra in drawn if not extra]
    assert len(set(tasks)) == len(tasks)
    assert len(sample) == max(1, round(share * 400))
    assert tasks[: len(sample)] == sample  # the extra ones come after
    counts = Counter(VERDICTS[task] for task in tasks)
    sampled = Counter(VERDICTS[task] for task in sample)
    for label, size in Counter(VERDICTS.values()).items():
        assert counts[label] == max(sampled[label], min(at_least, size))
    back = dict(reversed(VERDICTS.items()))
    assert vn.draw_audit(back, share, seed, at_least) == drawn
    named = vn.draw_audit({str(k): v for k, v in VERDICTS.items()}, share, seed, at_least)
    assert [str(task) for task in tasks] == [task for task, _ in named]
    larger = [task for task, _ in vn.draw_audit(VERDICTS, min(1, 2 * share), seed)]
    assert larger[: len(sample)] == sample


def test_every_verdict_is_drawn_as_often() -> None:
    counts = Counter(
        task for seed in range(2_000) for task, _ in vn.draw_audit(VERDICTS, 0.1, seed)
    )
    assert len(counts) == 400
    expected = 200
    chi = sum((count - expected) ** 2 / expected for count in counts.values()) / 0.9
    assert 300 < chi < 510  # 399 degrees of freedom, far tails


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"share": 5}, "got the share 5, expected more than 0, at most 1: 0.05 for 5 %"),
        ({"share": 0}, "got the share 0"),
        ({"at_least": -1}, "got at_least -1 and seed 1"),
        ({"seed": -1}, "expected numbers from 0"),
        ({"verdicts": {}}, "there are no verdicts"),
    ],
)
def test_a_bad_draw(args: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        vn.draw_audit(**({"verdicts": VERDICTS, "share": 0.1, "seed": 1} | args))  # type: ignore[arg-type]


def test_a_report_counts_extra_ones_for_their_class_only() -> None:
    drawn = vn.draw_audit(VERDICTS, 0.1, seed=3, at_least=10)
    gold = {task: "ok" for task, _ in drawn}
    report = vn.audit_bounds(VERDICTS, gold, drawn)
    spam = [task for task, _ in drawn if VERDICTS[task] == "spam"]
    sampled = sum(VERDICTS[task] == "spam" for task, extra in drawn if not extra)
    assert (report.overall.audited, report.overall.wrong) == (40, sampled)
    assert (report.classes["spam"].audited, report.classes["spam"].wrong) == (10, len(spam))
    assert report.classes["spam"].size == 20
    assert report.classes["ok"].wrong == 0
    assert vn.audit_bounds(VERDICTS, gold, drawn, ongoing=True).overall.size is None


def test_those_at_the_end_are_not_audited_yet_and_those_before_are_skipped() -> None:
    drawn = [Drawn(task) for task in range(10)]
    gold: dict[int, str | None] = {1: "ok", 3: None, 4: "spam", 9: None}
    overall = vn.audit_bounds(VERDICTS, gold, drawn).overall
    assert (overall.audited, overall.wrong, overall.skipped) == (5, 1, 3)
    assert vn.audit_bounds(VERDICTS, {}, drawn).overall.audited == 0
    assert vn.audit_bounds(VERDICTS, {0: "spam", 1: "spam"}).overall.wrong == 1


@pytest.mark.parametrize(
    ("gold", "drawn", "message"),
    [
        ({"x": "ok"}, None, "there is no verdict on 'x', expected one on every audited task"),
        ({1: "ok", 2: "ok"}, [Drawn(1)], "task 2 has gold and was not drawn"),
        ({1: "ok"}, [Drawn(1), Drawn(1)], "task 1 was drawn twice"),
    ],
)
def test_a_bad_audit(gold: dict[Hashable, str], drawn: list[Drawn] | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        vn.audit_bounds(VERDICTS, gold, drawn)


def test_all_bounds_hold_at_their_level_when_drawn_and_stopped_at_will() -> None:
    """The auditor stops at the first time that the bound on everything looks best."""
    wrong = {task for task in VERDICTS if task % 20 in (0, 7)}  # every spam, a 19th of ok
    truth = {task: "no" if task in wrong else label for task, label in VERDICTS.items()}
    missed = np.zeros(3)
    for seed in range(200):
        drawn = vn.draw_audit(VERDICTS, 0.2, seed)
        reports = [
            vn.audit_bounds(VERDICTS, {task: truth[task] for task, _ in drawn[:n]}, drawn)
            for n in (10, 20, 40, 80)
        ]
        best = min(reports, key=lambda report: report.overall.upper)
        rates = best.overall.upper, best.classes["ok"].upper, best.classes["spam"].upper
        missed += np.array(rates) < [40 / 400, 20 / 380, 1]
    assert (missed <= 0.05 * 200).all()
