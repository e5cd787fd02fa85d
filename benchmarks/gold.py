"""A little truth on real label sets: python -m benchmarks gold [PART ...] --data DIR.

    random   20, 50 and 100 gold labels drawn at random: right, ECE, sure, and sure and right
    judges   the same on the sets of LLM judges, beside simple rivals
    asked    items that `venire ask` chooses, against items drawn at random
    skills   how far skills are from the truth, and how often their intervals hold it

Everything is scored on items that are not gold, but for `asked`, which is scored on all.
Explanations are fitted once for each set, as `Auto` does, and weighed anew for each draw of gold.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.real_data import SETS, load
from venire.estimators import Auto
from venire.estimators.base import right_shares
from venire.estimators.metrics import expected_calibration_error
from venire.estimators.mixture import mixture_by_gold
from venire.estimators.questions import chosen
from venire.estimators.teaching import ToldSkills, explanations, told_skills
from venire.labels import LabelTable
from venire.tools.arrays import Floats

Ints = NDArray[np.int64]

#: Half of the sets; the constants of the mixture were chosen on these.
TUNED = (
    "adult2", "civilcomments", "dtype_athlete", "fact_eval", "llmbar", "medrelex_cause", "product",
    "reuters", "snow_joy", "temp", "web",
)  # fmt: skip
JUDGES = ("mtbench_judges", "llmbar", "civilcomments", "llmjudge2024_binary")
SIZES = (20, 50, 100)
SURE = 0.95


class Labels(NamedTuple):
    """A set: labels, truth, and what labels alone can mean."""

    name: str
    table: LabelTable
    truth: Ints
    names: tuple[str, ...]
    aggregates: list[Floats]

    @property
    def able(self) -> Ints:
        """Items that may be gold: with labels, and with a truth that somebody said."""
        known = (self.truth >= 0) & (self.truth < len(self.table.classes))
        return np.flatnonzero(known & (np.diff(self.table.start) > 0))

    def told(self, gold: Ints) -> Floats:
        """The posteriors with this gold, as `Auto` has them."""
        known = np.full(len(self.truth), -1)
        known[gold] = self.truth[gold]
        found = mixture_by_gold(self.table, known, self.names, self.aggregates)
        assert found is not None
        return np.asarray(found.posteriors(self.table, self.aggregates))


class Score(NamedTuple):
    """Right, ECE, the share that is sure, how many of these are right, and how many they are."""

    right: float
    ece: float
    sure: float
    hits: float
    number: int


def read(data: Path, name: str) -> Labels:
    table, truth = load(data / name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names, aggregates = explanations(table, Auto().fit(table))
    return Labels(name, table, truth, names, aggregates)


def scored(posteriors: Floats, truth: Ints, among: Ints) -> Score:
    q, right = posteriors[among], truth[among]
    shares, sure = right_shares(q, right), q.max(axis=1)
    clear = sure >= SURE
    error = expected_calibration_error(sure, shares)
    parts = float(clear.mean()), float(shares[clear].sum()), int(clear.sum())
    return Score(float(shares.mean()), float(error), *parts)


def draws(labels: Labels, size: int, number: int) -> Iterable[Ints]:
    for draw in range(number):
        yield np.random.default_rng([draw, size]).choice(labels.able, size, replace=False)


def others(labels: Labels, gold: Ints) -> Ints:
    known = labels.truth >= 0
    known[gold] = False
    return np.flatnonzero(known)


def mean_of(scores: Sequence[Score]) -> tuple[float, float, float, float]:
    """Right, ECE, sure, and of those the right ones (NaN without any), in per cent."""
    number = sum(score.number for score in scores)
    kept = sum(score.hits for score in scores) / number if number else float("nan")
    means = [float(np.mean([score[k] for score in scores])) for k in range(3)]
    return 100 * means[0], 100 * means[1], 100 * means[2], 100 * kept


def random_gold(sets: Iterable[Labels], number: int) -> None:
    """Right / ECE / sure / of these right, without gold and with 20, 50 and 100 gold labels."""
    print("| right / ECE / sure / of these right, % | without | 20 | 50 | 100 |\n|-|-|-|-|-|")
    whole: dict[tuple[bool, int], list[tuple[float, ...]]] = {}
    for labels in sets:
        cells = []
        for size in (0, *SIZES):
            if size > len(labels.able) // 2:
                cells.append("")
                continue
            if not size:
                found = [
                    scored(labels.aggregates[0], labels.truth, others(labels, labels.able[:0]))
                ]
            else:
                found = [
                    scored(labels.told(gold), labels.truth, others(labels, gold))
                    for gold in draws(labels, size, number)
                ]
            figures = mean_of(found)
            alone = figures[0]
            if size:
                rest = [
                    scored(labels.aggregates[0], labels.truth, others(labels, gold)).right
                    for gold in draws(labels, size, number)
                ]
                alone = 100 * float(np.mean(rest))
            whole.setdefault((labels.name in TUNED, size), []).append((*figures, alone))
            gain = f" ({figures[0] - alone:+.1f})" if size else ""
            cells.append(" / ".join(f"{x:.1f}" for x in figures).replace(" /", f"{gain} /", 1))
        star = "" if labels.name in TUNED else " *"
        print(f"| {labels.name}{star} | {' | '.join(cells)} |", flush=True)
    for words, which in (("mean", (True, False)), ("mean of those marked *", (False,))):
        cells = []
        for size in (0, *SIZES):
            rows = [row for mark in which for row in whole.get((mark, size), [])]
            means = np.nanmean(np.array(rows), axis=0)
            gain = f" ({means[0] - means[4]:+.1f})" if size else ""
            cells.append(f"{means[0]:.1f}{gain} / " + " / ".join(f"{x:.1f}" for x in means[1:4]))
        print(f"| **{words}** | {' | '.join(cells)} |", flush=True)


def best_judge(labels: Labels) -> float:
    """The right labels of the best labeler among those who gave at least half of all, by truth."""
    table, truth = labels.table, labels.truth[labels.table.item]
    there = truth >= 0
    given, right = (
        np.bincount(table.labeler[x], minlength=len(table.labelers))
        for x in (there, there & (table.said == truth))
    )
    often = given >= given.max() / 2
    return 100 * float((right[often] / given[often]).max())


def crude(labels: Labels, gold: Ints) -> Floats:
    """The simplest mixture: a judge says .85 or .15, an aggregate .1 to .9, by likelihood."""
    table, truth, K = labels.table, labels.truth, len(labels.table.classes)
    M, n = len(table.labelers), len(truth)
    said = np.full((n, M), -1)
    said[table.item, table.labeler] = table.said
    wrong = 0.15 / (K - 1)
    single = np.where(said[:, :, None] == np.arange(K), 0.85, wrong)
    single[said < 0] = 1 / K
    rows = [np.clip(q, 0.1, 0.9) for q in labels.aggregates]
    every = np.concatenate(
        [single, np.stack([q / q.sum(axis=1, keepdims=True) for q in rows], 1)], 1
    )
    logs = np.log(every[gold, :, truth[gold]]).sum(axis=0)
    logs[:M] += np.log(4 / M)
    weights = np.exp(logs - logs.max())
    return np.asarray(np.einsum("c,ick->ik", weights / weights.sum(), every))


def judges(sets: Iterable[Labels], number: int) -> None:
    """Right verdicts on the sets of judges, beside the crude mixture and the best judge."""
    heads = [f"{size} {how}" for size in SIZES for how in ("crude", "gold")]
    print(f"| right, % | without | {' | '.join(heads)} | best judge |\n{'|-' * (len(heads) + 3)}|")
    for labels in sets:
        if labels.name not in JUDGES:
            continue
        cells = [f"{100 * scored(labels.aggregates[0], labels.truth, labels.able).right:.1f}"]
        for size in SIZES:
            for way in (crude, Labels.told):
                found = [
                    scored(way(labels, gold), labels.truth, others(labels, gold)).right
                    for gold in draws(labels, size, number)
                ]
                error = np.std(found) / np.sqrt(len(found))
                cells.append(f"{100 * np.mean(found):.1f} ± {100 * error:.1f}")
        print(f"| {labels.name} | {' | '.join(cells)} | {best_judge(labels):.1f} |", flush=True)


def asked(sets: Iterable[Labels], number: int) -> None:
    """Right verdicts on all items: asked in fives, against drawn at random."""
    heads = "5 asked | 10 asked | 20 asked | 20 random"
    print(f"| right, % | without | {heads} |\n|-|-|-|-|-|-|")
    for labels in map(known_only, sets):
        able = labels.truth < len(labels.table.classes)
        cells = [f"{100 * _all_right(labels, labels.aggregates[0], labels.able[:0]):.1f}"]
        found: dict[int, list[float]] = {5: [], 10: [], 20: []}
        for seed in range(number):
            known = np.full(len(labels.truth), -1)
            for size in (5, 10, 15, 20):
                _answer(labels, known, able, seed)
                gold = np.flatnonzero(known >= 0)
                if size in found:
                    q = _told_asked(labels, known, gold)
                    found[size].append(_all_right(labels, q, gold))
        cells += [f"{100 * np.mean(values):.1f}" for values in found.values()]
        random = [_all_right(labels, labels.told(g), g) for g in draws(labels, 20, number)]
        cells.append(f"{100 * np.mean(random):.1f}")
        print(f"| {labels.name} | {' | '.join(cells)} |", flush=True)


def skills(sets: Iterable[Labels], number: int) -> None:
    """Mean error of skills, and coverage of their 90 % intervals, of labelers with 20 labels."""
    print("| error / coverage, % | without | 20 asked | 20 | 50 | 100 |\n|-|-|-|-|-|-|")
    for labels in map(known_only, sets):
        table, M = labels.table, len(labels.table.labelers)
        given = np.bincount(table.labeler, minlength=M)
        hits = (table.said == labels.truth[table.item]).astype(np.float64)
        right = np.bincount(table.labeler, hits, minlength=M) / np.maximum(given, 1)
        some = given >= 20
        if not some.any():
            continue
        alone = Auto().fit(table)
        cells = [_skill_cell([(alone.competences_, alone.skill_intervals_)], right, some)]
        lists: list[list[tuple[Ints, bool]]] = [[]]
        able = labels.truth < len(table.classes)
        for seed in range(number):
            known = np.full(len(labels.truth), -1)
            for _ in range(4):
                _answer(labels, known, able, seed)
            lists[0].append((np.flatnonzero(known >= 0), True))
        for size in SIZES:
            few = size > len(labels.able) // 2
            lists.append([] if few else [(gold, False) for gold in draws(labels, size, number)])
        for some_gold in lists:
            told = [_told_skills(labels, gold, chosen) for gold, chosen in some_gold]
            found = [(one.skills, one.intervals()) for one in told]
            cells.append(_skill_cell(found, right, some))
        print(f"| {labels.name} | {' | '.join(cells)} |", flush=True)


def _told_skills(labels: Labels, gold: Ints, was_asked: bool) -> ToldSkills:
    known = np.full(len(labels.truth), -1)
    known[gold] = labels.truth[gold]
    answers = {labels.table.items[i] for i in gold.tolist()} if was_asked else ()
    found = mixture_by_gold(labels.table, known, labels.names, labels.aggregates, answers)
    assert found is not None
    return told_skills(labels.table, known, found, labels.aggregates)


def _skill_cell(
    found: Sequence[tuple[Floats, Floats]], right: Floats, some: NDArray[np.bool_]
) -> str:
    if not found:
        return ""
    error = np.mean([np.abs(skill - right)[some].mean() for skill, _ in found])
    inside = [((ends[:, 0] <= right + 1e-9) & (right <= ends[:, 1] + 1e-9)) for _, ends in found]
    return f"{100 * error:.1f} / {100 * np.mean([one[some].mean() for one in inside]):.0f}"


def known_only(labels: Labels) -> Labels:
    """The items of known truth, which are those that can be answered."""
    known, table = labels.truth >= 0, labels.table
    place, there = np.cumsum(known) - 1, known[table.item]
    items = [table.items[i] for i in np.flatnonzero(known).tolist()]
    codes = place[table.item[there]], table.labeler[there], table.said[there]
    some = LabelTable.from_codes(*codes, items, table.labelers, table.classes)
    rows = [q[known] for q in labels.aggregates]
    return Labels(labels.name, some, labels.truth[known], labels.names, rows)


def _answer(labels: Labels, known: Ints, able: NDArray[np.bool_], seed: int) -> None:
    """Ask about five items, and write their truth."""
    place = {item: i for i, item in enumerate(labels.table.items)}
    some = chosen(labels.table, labels.names, labels.aggregates, 15, known, seed).asked
    items = [place[one.item] for one in some if able[place[one.item]]][:5]
    known[items] = labels.truth[items]


def _told_asked(labels: Labels, known: Ints, gold: Ints) -> Floats:
    answers = {labels.table.items[i] for i in gold.tolist()}
    found = mixture_by_gold(labels.table, known, labels.names, labels.aggregates, answers)
    assert found is not None
    return np.asarray(found.posteriors(labels.table, labels.aggregates))


def _all_right(labels: Labels, posteriors: Floats, gold: Ints) -> float:
    """The share of right verdicts on all items; those on gold are."""
    shares = right_shares(posteriors, labels.truth)
    shares[gold] = 1.0
    return float(shares[labels.truth >= 0].mean())


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks gold")
    parser.add_argument("parts", nargs="*", default=["random", "judges", "asked"])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--sets", nargs="*", default=SETS)
    given = parser.parse_args(arguments)
    names = [name for name in given.sets if (given.data / name).is_dir()]
    if not names:
        sys.exit("none of the sets is in that folder; each is a folder with labels.csv, truth.csv")
    known: dict[str, Callable[[Iterable[Labels], int], None]] = {
        "random": random_gold,
        "judges": judges,
        "asked": asked,
        "skills": skills,
    }
    for part in given.parts:
        wanted = [name for name in names if name in JUDGES] if part == "judges" else names
        known[part]((read(given.data, name) for name in wanted), given.draws)
