"""docs/tutorials, block by block, as a newcomer would paste them; what they show is what comes.

A line that a page shows must appear in the output of the block before it. "..." stands for
anything. Numbers may differ: a little where everything is seeded, freely where a server and people
take part; what the page claims of them is tested below.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.newcomer import ROOT, Newcomer, blocks_of, rows_of
from tests.marks import nightly
from venire.connectors.judges import read_judges

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"

#: How far a number may be from the one that is shown; without an entry, as far as it likes.
CLOSE = {
    "aggregate-a-table": 0.05,
    "own-policy": 0.05,
    "judge-answers": 0.15,
    "judges-that-see": 0.05,
    "ask-an-expert": 0.05,
}


def pattern(line: str) -> str:
    """What a line of output looks like, with a group for each number.

    >>> bool(re.fullmatch(pattern("ann  0.92 ..."), "ann 0.9169 on 3 labels"))
    True
    """
    parts = re.split(rf"(\.\.\.|{NUMBER}|\s+)", line.strip())
    kinds = {"...": ".*", " ": r"\s+"}
    return "".join(
        f"({NUMBER})"
        if re.fullmatch(NUMBER, part)
        else kinds.get(part if part.strip() else " ", re.escape(part))
        if part
        else ""
        for part in parts
    )


def numbers(found: list[str]) -> list[float]:
    return [float(text.replace(",", "")) for text in found]


def is_shown(line: str, said: str, close: float | None) -> bool:
    """Whether a line of the output is the one that the page shows."""
    wanted = numbers(re.findall(NUMBER, line))
    for candidate in said.splitlines():
        if match := re.fullmatch(pattern(line), candidate.strip()):
            got = numbers(list(match.groups()))
            if close is None or got == pytest.approx(wanted, rel=close, abs=0.02):
                return True
    return False


#: Lines that come or not, since who labels which picture hangs on who is first.
BY_CHANCE = ("      6 undecided",)


def walk(page: Path, newcomer: Newcomer) -> None:
    """Paste the blocks of a page; look for what it shows in what was said."""
    for language, block in blocks_of(page.read_text()):
        if language != "shown":
            newcomer.paste(language, block)
            continue
        for line in block.splitlines():
            if line.strip() not in ("", "..."):
                shown = is_shown(line, newcomer.said[-1], CLOSE.get(page.stem))
                assert shown or line in BY_CHANCE, (line, newcomer.said[-1])


def the_better_system_is_found(newcomer: Newcomer) -> None:
    for said in [text for text in newcomer.said if "of the verdicts are right" in text]:
        alpha, _, beta, _, right = numbers(re.findall(rf"({NUMBER})%", said))[-5:]
        assert alpha > beta + 5
        assert right > 85
    assert [judge.id for judge in read_judges(newcomer.folder / "real.yaml")][-1] == "local"
    assert "<svg" in (newcomer.folder / "report.html").read_text()


def the_person_gets_what_programs_cannot_decide(newcomer: Newcomer) -> None:
    said = "".join(newcomer.said)
    left, waiting = numbers(list(re.search(r"(\d+) left, (\d+) wait", said).groups()))  # type: ignore[union-attr]
    assert left + waiting == 200
    assert 20 <= waiting <= 70
    missed, alarms = numbers(list(re.search(r"(\d+) harmful.*, (\d+) false", said).groups()))  # type: ignore[union-attr]
    alone = numbers(list(re.search(r"alone: (\d+) missed, (\d+) false", said).groups()))  # type: ignore[union-attr]
    assert missed + alarms <= 14
    assert missed + alarms < sum(alone)


def the_table_is_better_than_a_majority(newcomer: Newcomer) -> None:
    ours, majority = numbers(re.findall(r"tasks: ([\d.]+)% of the verdicts", newcomer.said[-1]))
    assert ours < majority
    (bound,) = re.findall(r"at most ([\d.]+) % of verdicts", "".join(newcomer.said))
    assert float(bound) > ours


def the_team_has_labelled_everything(newcomer: Newcomer) -> None:
    labels = rows_of(newcomer.folder / "labels.csv")
    assert 60 <= len(labels) <= 90
    assert {row["worker"] for row in labels} == {"ann", "bob", "cat"}
    truth = {row["item"]: row["label"] for row in rows_of(newcomer.folder / "truth.csv")}
    verdicts = rows_of(newcomer.folder / "verdicts.csv")
    assert {row["task"] for row in verdicts} == set(truth)
    assert sum(row["label"] == truth[row["task"]] for row in verdicts) >= 24


def the_second_idea_pays_in_bursts(newcomer: Newcomer) -> None:
    first, second = [text for text in newcomer.said if "it keeps the rules" in text]
    assert "UntilSure     1" in first
    assert "UntilSure     9" in second
    (row,) = re.findall(r"^bursts +([\d.]+)", "".join(newcomer.said), re.M)
    assert float(row) > 1.2
    assert (newcomer.folder / "compared" / "index.html").exists()


def half_an_hour_pays(newcomer: Newcomer) -> None:
    wrong = numbers(re.findall(r"tasks: ([\d.]+)% of the verdicts", "".join(newcomer.said)))
    assert wrong[0] > 20 > wrong[1] > 10 > wrong[2]
    low, high = numbers(re.findall(r"([\d.]+) to ([\d.]+) %", newcomer.said[-1])[0])
    assert 50 < low < 59.4 < high


def reasons_are_kept_and_solutions_help(newcomer: Newcomer) -> None:
    plain, told, _ = numbers(re.findall(rf"({NUMBER})% right", newcomer.said[-1]))
    assert told > plain > 85
    rows = rows_of(newcomer.folder / "labels-reference.csv")
    assert all(row["rationale"].startswith(("I read a ", "It should be a ")) for row in rows)
    assert "I read a " in (newcomer.folder / "report.html").read_text()


CHECKS: dict[str, Callable[[Newcomer], None]] = {
    "judge-answers": the_better_system_is_found,
    "moderate-a-stream": the_person_gets_what_programs_cannot_decide,
    "aggregate-a-table": the_table_is_better_than_a_majority,
    "label-images": the_team_has_labelled_everything,
    "ask-an-expert": half_an_hour_pays,
    "judges-that-see": reasons_are_kept_and_solutions_help,
    "own-policy": the_second_idea_pays_in_bursts,
}


#: The others wait for the night: half a CPU minute each.
DAILY = {"aggregate-a-table"}


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "page",
    [page if page.stem in DAILY else nightly(page) for page in TUTORIALS],
    ids=lambda page: page.stem,
)
def test_a_tutorial_does_what_it_says(page: Path, tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    try:
        walk(page, newcomer)
        CHECKS[page.stem](newcomer)
    finally:
        newcomer.close()


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_begins_and_ends_as_all_of_them(page: Path) -> None:
    text = page.read_text()
    _, _, start = text.partition("\n\n")
    assert re.match(r"For [\w ]+ who |For [\w ]+ that |For [\w ]+ with ", start)
    assert "After ten\nminutes" in start or "After ten minutes" in start
    assert text.count("\n## Where to go next\n") == 1
    assert "(../glossary.md)" in text.partition("## Where to go next")[2]


@pytest.mark.parametrize("word", ["slot", "weight", "exit", "evidence", "utility", "verdict"])
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_word_is_explained_where_it_is_first_used(page: Path, word: str) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", page.read_text(), flags=re.S)
    _, _, prose = prose.partition("\n## ")  # what one has afterwards may be named before
    first = re.search(rf"(\*\*)?\b{word}(s|ies)?\b", prose)
    assert first is None or first[1] or f"**{word}" in prose[: first.start()]
