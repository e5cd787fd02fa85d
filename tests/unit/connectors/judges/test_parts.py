"""The parts of a judge: reading, confidence, pacing, cache, pairs, voices."""

from __future__ import annotations

import asyncio
import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judge_server import judging, most_in_a_window
from venire.connectors.judges import (
    Answer,
    Cache,
    Judge,
    JudgeConfig,
    NoLabel,
    PairJudge,
    PositionBias,
    voices,
)
from venire.connectors.judges.answers import classify, digest, label_confidence, pooled, read_label
from venire.errors import FileError, InputError
from venire.tools.http import Pacer, retry_after

CLASSES = ["spam", "ok"]
NAMES = st.text(st.characters(categories=["L", "N", "Zs"]), min_size=1, max_size=8).map(str.strip)
SETS = st.lists(NAMES.filter(bool), min_size=2, max_size=5, unique_by=str.casefold)


@given(SETS.flatmap(lambda names: st.tuples(st.just(names), st.sampled_from(names))))
def test_a_label_is_read_in_every_usual_form(case: tuple[list[str], str]) -> None:
    names, label = case
    text = json.dumps({"label": label})
    for form in (
        text,
        f"Sure!\n```json\n{text}\n```",
        f"<think>{{</think>\n{text}",
        f"{text} {text}",
    ):
        assert read_label(form, names) == label
    assert read_label(label, names) == label
    assert read_label(json.dumps({"reason": {"label": "x"}, "label": label}), names) == label


@given(st.text(), SETS)
def test_whatever_is_said_a_label_is_one_of_the_classes(text: str, names: list[str]) -> None:
    assert read_label(text, names) in (None, *names)
    assert read_label(text + "{" * 3, names) in (None, *names)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "not spam", "spam or ok", '{"label": "spam"} {"label": "ok"}', '{"label": null}',
     '{"label": ["spam"]}', '{"lab', '{"label": "sp', "This is not ok", '{"other": "spam"}',
     '{"label": "spam|ok"}', "{" * 5000, '{"label": "maybe"} {"label": "spam"}'],
)  # fmt: skip
def test_when_in_doubt_there_is_no_label(text: str) -> None:
    assert read_label(text, CLASSES) is None


def test_numbers_and_truth_values_are_names_too() -> None:
    assert read_label('{"label": 3}', ["3", "4"]) == "3"
    assert read_label('{"label": true}', ["true", "false"]) == "true"


def next_tokens(
    names: list[str], shares: dict[str, float], label: str, cuts: list[int]
) -> list[dict[str, Any]]:
    """The tokens of a model that draws a class by its share and writes it in pieces.

    All classes are cut at the same places, so that each piece has a probability by the shares of
    the classes that begin as the label does so far: the plain chain rule.
    """
    tokens = [{"token": '{"label": "', "logprob": 0.0, "top_logprobs": []}]
    edges = [0, *cuts, 100]
    for start, end in pairwise(edges):
        alive = [name for name in names if (name + '"}')[:start] == (label + '"}')[:start]]
        mass: dict[str, float] = {}
        for name in alive:
            piece = (name + '"}')[start:end]
            mass[piece] = mass.get(piece, 0.0) + shares[name]
        total, said = sum(mass.values()), (label + '"}')[start:end]
        top = [{"token": t, "logprob": math.log(p / total)} for t, p in mass.items() if t]
        if said:
            logprob = math.log(mass[said] / total)
            tokens.append({"token": said, "logprob": logprob, "top_logprobs": top})
    return tokens


WORDS = st.lists(st.text("abc", min_size=1, max_size=6), min_size=2, max_size=5, unique=True)


@given(st.data())
def test_the_confidence_is_the_probability_of_the_class(data: st.DataObject) -> None:
    names = data.draw(WORDS)
    draws = [data.draw(st.floats(0.01, 1)) for _ in names]
    shares = {name: draw / sum(draws) for name, draw in zip(names, draws, strict=True)}
    label = data.draw(st.sampled_from(names))
    cuts = sorted(data.draw(st.sets(st.integers(1, 6), max_size=3)))
    tokens = next_tokens(names, shares, label, cuts)
    assert label_confidence(tokens, label, names) == pytest.approx(shares[label])


@pytest.mark.parametrize("tokens", [None, 3, [], [{"token": 3}], ["x"], [{"token": "other"}]])
def test_tokens_that_do_not_tell_give_no_confidence(tokens: Any) -> None:
    assert label_confidence(tokens, "spam", CLASSES) is None


def test_a_token_without_alternatives_is_sure() -> None:
    assert label_confidence([{"token": "spam", "logprob": -0.1}], "spam", CLASSES) == 1.0


@given(
    st.integers(1, 3000),
    st.lists(st.tuples(st.sampled_from([0.0, 0.01, 1.0, 90.0]), st.floats(0, 3)), max_size=150),
)
def test_no_minute_holds_more_than_allowed(
    per_minute: int, steps: list[tuple[float, float]]
) -> None:
    """However requests come, and however late a timer wakes us."""
    pacer, now, sent = Pacer(per_minute), 0.0, []
    for gap, late in steps * 5:
        now += gap
        if wait := pacer.wait(now):
            now += wait + late
        pacer.take(1, now)
        sent.append(now)
    assert most_in_a_window(sent, 60.0) <= per_minute


def test_a_pacer_that_wakes_late_catches_up_a_little() -> None:
    pacer, now = Pacer(60_000), 0.0
    for _ in range(1000):
        now += pacer.wait(now)
        now += 0.01  # ten times the spacing
        pacer.take(1, now)
    assert now == pytest.approx(10.0, rel=0.2)
    for _ in range(50):  # what was missed in the last 50 ms may follow at once
        assert pacer.wait(now) <= 0.05 / 40
        pacer.take(1, now)
        now += 0.0005


def test_tokens_are_corrected_by_what_was_used() -> None:
    pacer = Pacer(600)
    pacer.take(100, 0.0)
    before = pacer.wait(0.0)
    pacer.correct(-50)
    assert before - pacer.wait(0.0) == pytest.approx(5.0, rel=1e-2)


@given(st.binary(max_size=300), st.integers(100, 599))
def test_whatever_comes_back_means_something(body: bytes, status: int) -> None:
    classify(status, {"retry-after": "soon"}, body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "error", "code", "usage", "logprobs"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from([200, 400, 429, 500]))
def test_whatever_json_comes_back_means_something(said: Any, status: int) -> None:
    classify(status, {}, json.dumps(said).encode())


@pytest.mark.parametrize("text", ["", "-1", "nan", "inf", "tomorrow"])
def test_a_wait_that_is_none(text: str) -> None:
    assert retry_after({"retry-after": text}) is None


def test_the_cache_survives_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "c"
    cache = Cache(path)
    cache.put("ab" * 32, {"label": "spam"})
    cache.close()
    path.write_bytes(path.read_bytes() + b"cd" * 20)  # a crash while writing
    cache = Cache(path)
    assert cache.get("ab" * 32) == {"label": "spam"}
    cache.put("ef" * 32, {"label": "ok"})
    cache.close()
    again = Cache(path)
    assert (len(again), again.get("ef" * 32)) == (2, {"label": "ok"})
    again.close()
    assert path.stat().st_mode & 0o077 == 0


def test_two_caches_may_share_a_file(tmp_path: Path) -> None:
    one, two = Cache(tmp_path / "c"), Cache(tmp_path / "c")
    one.put(digest({"a": 1}), {"label": "spam"})
    two.put(digest({"a": 2}), {"label": "ok"})
    one.close()
    two.close()
    both = Cache(tmp_path / "c")
    assert len(both) == 2
    both.close()


def test_a_cache_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="the cache cannot be opened"):
        Cache(tmp_path)


@given(st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.sampled_from([-1, 0, 1])), min_size=2))
def test_the_bias_is_the_mean_lean_and_its_standard_error(pairs: list[tuple[int, int]]) -> None:
    seen = PositionBias()
    for straight, swapped in pairs:
        seen.count(straight, swapped)
    leans = [(a + b) / 2 for a, b in pairs]
    mean = sum(leans) / len(leans)
    spread = sum((x - mean) ** 2 for x in leans) / (len(leans) - 1)
    assert seen.bias == pytest.approx(mean)
    assert seen.error == pytest.approx(math.sqrt(spread / len(leans)), abs=1e-6)
    assert seen.flips == sum(a != -b for a, b in pairs)


def pair_judge(url: str, **more: Any) -> PairJudge:
    keys = {"id": "two", "model": "rule", "base_url": url, "pair": ["left", "right"]}
    keys |= {"prompt": "A: {{ left }} B: {{ right }}", "classes": ["A", "B", "tie"], **more}
    return PairJudge(JudgeConfig.read(keys))


def compare(judge: PairJudge, *items: Any) -> list[Any]:
    async def run() -> list[Any]:
        async with judge:
            asked = (judge.answer(item) for item in items)
            return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(run())


ITEMS = [{"left": "good", "right": "bad"}, {"left": "bad", "right": "good"}]


def test_a_judge_that_reads_agrees_with_itself() -> None:
    with judging(says={"A: good": "A", "A: bad": "B"}) as server:
        judge = pair_judge(server.url)
        assert isinstance(judge, Judge)
        said = compare(judge, *ITEMS)
    assert [one.label for one in said] == ["A", "B"]
    assert (judge.bias.bias, judge.bias.flips, judge.usage.labels) == (0.0, 0, 2)
    assert judge.usage.requests == 4


def test_a_judge_that_always_takes_the_first_says_nothing() -> None:
    with judging(says={"": "A"}) as server:
        judge, strict = pair_judge(server.url), pair_judge(server.url, classes=["A", "B"])
        ties, faults = compare(judge, *ITEMS), compare(strict, *ITEMS)
    assert [(one.label, one.confidence) for one in ties] == [("tie", 0.0), ("tie", 0.0)]
    assert (judge.bias.bias, judge.bias.flips) == (1.0, 2)
    assert all(isinstance(one, NoLabel) for one in faults)
    assert (strict.usage.labels, strict.usage.faults) == (0, {"order decides": 2})
    assert judge.bias.summary().startswith("position bias +1.00 ± 0.00 over 2 pairs, 100 %")


def test_a_pair_needs_its_fields() -> None:
    with judging() as server:
        judge = pair_judge(server.url)
    (error,) = compare(judge, {"left": "x"})
    assert isinstance(error, InputError)
    assert "compares left and right" in str(error)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 1) | st.none()), min_size=1))
def test_pooled_answers_add_up_to_one(said: list[tuple[str, float | None]]) -> None:
    shares = pooled([Answer(label, sure) for label, sure in said], ["a", "b", "c"])
    assert sum(shares.values()) == pytest.approx(1.0)


@given(st.lists(st.floats(0, 1) | st.none(), min_size=1, max_size=30))
def test_voices_split_a_judge_at_its_median(confidences: list[float | None]) -> None:
    answers = [(str(n), "j", Answer("a", sure)) for n, sure in enumerate(confidences)]
    rows = voices(answers)
    assert [row[0] for row in rows] == [item for item, _, _ in answers]
    sure = [c for c, row in zip(confidences, rows, strict=True) if row[1] == "j (sure)"]
    unsure = [c for c, row in zip(confidences, rows, strict=True) if row[1] == "j (unsure)"]
    known = {c for c in confidences if c is not None}
    assert bool(sure) == bool(unsure) == (len(known) > 1)
    if sure:
        assert min(c for c in sure if c is not None) > max(c for c in unsure if c is not None)
