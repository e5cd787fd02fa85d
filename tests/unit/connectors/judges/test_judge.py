"""A judge against a real HTTP server that fails as real ones do: no fault becomes a label."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.judge_server import CLASSES, JudgeServer, judging, truth
from venire.connectors.judges import (
    Answer,
    Cache,
    Judge,
    JudgeConfig,
    JudgeFault,
    NoLabel,
    Stopped,
    Unavailable,
)
from venire.connectors.judges import judge as judge_module
from venire.errors import InputError
from venire.tools import http

ITEM = {"id": "post-1", "text": "BUY now"}

#: Answers that are labels all the same.
GOOD = ["fine", "fenced", "plain", "thinking", "parts"]

#: Faults of one request, after which the next one is answered.
PASSING = ["limited", "limited-ms", "limited-s", "limit-in-200", "500", "html", "503"]
PASSING += ["error-in-200", "broken", "no-choices", "list", "slow", "dropped"]

#: Answers that are no label.
NONE = ["refusal", "filter", "length", "length-whole", "failed", "other", "both", "not", "empty"]

#: After these no request can succeed any more.
FINAL = ["quota", "quota-type", "paid", "key", "model", "redirect", "limited-day"]


def config(server: JudgeServer, **more: Any) -> JudgeConfig:
    keys = {"id": "strict", "model": "rule", "base_url": server.url, "prompt": "Spam? {{ text }}"}
    price = {"input": 10.0, "output": 100.0}
    return JudgeConfig.read({**keys, "classes": CLASSES, "price": price, "timeout": 60, **more})


def ask(judge: Judge, *items: Any) -> list[Answer | JudgeFault]:
    """The answers to items asked at once, or the faults."""

    async def run() -> Sequence[Any]:
        async with judge:
            asked = (judge.answer(item) for item in items)
            return await asyncio.gather(*asked, return_exceptions=True)

    said = asyncio.run(run())
    for one in said:
        if not isinstance(one, Answer | JudgeFault):
            raise one
    return list(said)


@pytest.mark.parametrize("kind", GOOD)
def test_an_answer_in_any_of_these_forms_is_a_label(kind: str) -> None:
    with judging(kind) as server:
        judge = Judge(config(server))
        assert ask(judge, ITEM) == [Answer("spam", None, 0.0009)]
    assert (judge.usage.requests, judge.usage.input_tokens, judge.usage.output_tokens) == (1, 40, 5)


@pytest.mark.parametrize("kind", PASSING)
def test_a_passing_fault_is_waited_for(kind: str) -> None:
    with judging(kind) as server:
        judge = Judge(config(server, timeout=2 if kind == "slow" else 60))
        assert ask(judge, ITEM) == [Answer("spam", None, 0.0009)]
    assert (judge.usage.requests, judge.usage.faults.total()) == (2, 1)
    assert judge.usage.unpriced == (kind in ("slow", "dropped", "broken", "no-choices", "list"))


@pytest.mark.parametrize("kind", NONE)
def test_what_is_no_label_is_asked_for_again_and_paid_for(kind: str) -> None:
    with judging(kind) as server:
        (answer,) = ask(Judge(config(server)), ITEM)
    assert isinstance(answer, Answer)
    assert answer.label == "spam"
    assert answer.cost == pytest.approx(0.0018)


@pytest.mark.parametrize("kind", NONE)
def test_what_stays_no_label_is_a_fault(kind: str) -> None:
    with judging(always=kind) as server:
        judge = Judge(config(server))
        (fault,) = ask(judge, ITEM)
    assert isinstance(fault, NoLabel)
    assert fault.cost == pytest.approx(0.0027)
    assert judge.usage.labels == 0


@pytest.mark.parametrize("kind", ["500", "html", "broken", "error-in-200", "slow"])
def test_a_server_that_stays_down_is_unavailable(kind: str) -> None:
    with judging(always=kind) as server:
        (fault,) = ask(Judge(config(server, num_retries=1, timeout=0.1)), ITEM)
    assert isinstance(fault, Unavailable)
    assert "after 2 tries" in str(fault)


def test_nobody_waits_for_a_day() -> None:
    with judging(always="503-day") as server:
        (fault,) = ask(Judge(config(server)), ITEM)
    assert isinstance(fault, Unavailable)


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with judging() as server:
        settings = config(server, num_retries=0)
    judge = Judge(settings)
    (fault,) = ask(judge, ITEM)
    assert isinstance(fault, Unavailable)
    assert judge.usage.unpriced == 0


@pytest.mark.parametrize("kind", FINAL)
def test_what_will_not_pass_stops_the_judge_with_one_line(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with judging(always=kind) as server, caplog.at_level(logging.WARNING):
        judge = Judge(config(server, max_parallel=2))
        said = ask(judge, *({"text": str(n)} for n in range(20)))
    assert all(isinstance(fault, Stopped) for fault in said)
    assert judge.usage.requests <= 2
    (line,) = caplog.messages
    assert line.startswith("judge strict stops: ")


def test_an_item_that_is_too_long_does_not_stop_the_judge() -> None:
    with judging(*["long"] * 30) as server:
        judge = Judge(config(server, max_parallel=1))
        said = ask(judge, *({"text": str(n)} for n in range(31)))
    assert [type(one) for one in said] == [NoLabel] * 30 + [Answer]


def test_a_judge_whose_every_request_is_rejected_stops() -> None:
    with judging(always="invalid") as server:
        judge = Judge(config(server, max_parallel=1))
        said = ask(judge, *({"text": str(n)} for n in range(30)))
    assert judge.usage.requests == judge_module.REJECTIONS
    assert isinstance(said[0], NoLabel)
    assert isinstance(said[-1], Stopped)
    assert "temperature must be below 2" in str(said[-1])


def test_retry_after_is_kept_by_all_requests_of_the_judge() -> None:
    with judging("limited-s") as server:
        judge = Judge(config(server, max_parallel=4))
        said = ask(judge, *({"text": str(n)} for n in range(12)))
    assert all(isinstance(one, Answer) for one in said)
    times = sorted(server.times)  # one is refused, and four are under way when that is heard
    assert len(times) == 13
    assert times[-8] - times[0] >= 1.0


def test_a_server_that_is_always_over_its_limit_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "PATIENCE", 0.5)
    with judging(always="limited-ms") as server:
        (fault,) = ask(Judge(config(server)), ITEM)
    assert isinstance(fault, Unavailable)
    assert "over its limit" in str(fault)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_third_of_the_requests_may_fail_and_no_label_is_wrong(seed: int) -> None:
    kinds = [*PASSING[1:2], *PASSING[4:-2], *NONE, "long"]
    items = [{"text": f"{'BUY' if n % 3 else 'see'} {n} {seed}"} for n in range(200)]
    with judging(shares={kind: 1 / 3 / len(kinds) for kind in kinds}) as server:
        server._draws.seed(seed)
        judge = Judge(config(server, max_parallel=20))
        said = ask(judge, *items)
    labels = [(item, one) for item, one in zip(items, said, strict=True) if isinstance(one, Answer)]
    assert all(one.label == truth(item["text"])[0] for item, one in labels)
    assert len(labels) >= 185
    assert judge.usage.faults.total() > 50
    assert judge.usage.cost == pytest.approx(sum(one.cost for one in said))


@pytest.mark.parametrize("knows", [set(), {"logprobs"}, {"response_format"}])
def test_a_server_without_a_feature_is_asked_without_it(knows: set[str]) -> None:
    with judging(knows=frozenset(knows)) as server:
        judge = Judge(config(server, logprobs=True, max_parallel=4))
        said = ask(judge, *({"text": f"BUY {n}"} for n in range(20)))
    assert {one.label for one in said if isinstance(one, Answer)} == {"spam"}
    assert len(said) == 20
    assert judge.usage.requests <= 20 + 4 * 2
    sure = {one.confidence for one in said if isinstance(one, Answer)}
    assert {one and round(one, 6) for one in sure} == {0.97 if "logprobs" in knows else None}


def test_the_request_has_a_schema_and_what_is_passed_through() -> None:
    with judging() as server:
        ask(Judge(config(server, temperature=0.5, seed=3, system="Be strict.")), ITEM)
    (body,) = server.bodies
    assert (body["temperature"], body["seed"], body["model"]) == (0.5, 3, "rule")
    schema = body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["label"]["enum"] == CLASSES
    assert body["messages"][0]["content"].startswith("Be strict.\n\nThe classes are:\n- spam")


def test_a_response_format_of_the_user_is_sent_instead() -> None:
    with judging() as server:
        ask(Judge(config(server, response_format={"type": "json_object"})), ITEM)
    assert server.bodies[0]["response_format"] == {"type": "json_object"}


def test_a_response_format_may_be_left_out() -> None:
    with judging(knows=frozenset()) as server:
        judge = Judge(config(server, response_format=None))
        ask(judge, ITEM)
    assert judge.usage.requests == 1
    assert "response_format" not in server.bodies[0]


def test_a_judge_says_what_a_label_costs_about() -> None:
    with judging() as server:
        judge = Judge(config(server, votes=3, max_parallel=5))
        assert judge.price == pytest.approx(3 * (204 * 10 + 10 * 100) / 1e6)
        ask(judge, ITEM)
    assert judge.price == pytest.approx(3 * 0.0009)
    assert judge.parallel == 5


def test_votes_are_asked_for_and_counted() -> None:
    with judging("fine", "fine", "500", "other") as server:
        judge = Judge(config(server, votes=5))
        (answer,) = ask(judge, ITEM)
    assert isinstance(answer, Answer)
    assert (answer.label, answer.confidence) == ("spam", 1.0)
    assert answer.cost == pytest.approx(6 * 0.0009)


def test_half_of_the_votes_is_no_label() -> None:
    with judging("fine", *["refusal"] * 3) as server:
        (fault,) = ask(Judge(config(server, votes=2, max_parallel=1)), ITEM)
    assert isinstance(fault, NoLabel)
    assert fault.cost == pytest.approx(4 * 0.0009)


def test_a_second_run_costs_nothing(tmp_path: Path) -> None:
    items = [{"text": f"BUY {n}"} for n in range(5)]
    with judging() as server:
        for run, expected in ((0, 5), (1, 0)):
            cache = Cache(tmp_path / "new" / "judges.cache")
            judge = Judge(config(server, logprobs=True), cache)
            said = ask(judge, *items)
            cache.close()
            assert judge.usage.requests == expected
            assert [one.confidence for one in said if isinstance(one, Answer)] == [
                pytest.approx(0.97)
            ] * 5
            assert sum(one.cost for one in said) == (0 if run else pytest.approx(5 * 0.0009))
        other = Judge(config(server, logprobs=True, model="another"), Cache(tmp_path / "x"))
        ask(other, *items)
        assert other.usage.requests == 5


def test_a_fault_is_not_kept(tmp_path: Path) -> None:
    with judging(always="refusal") as server:
        ask(Judge(config(server), Cache(tmp_path / "c")), ITEM)
    assert (tmp_path / "c").read_bytes() == b""


def test_the_key_is_sent_and_shown_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-right")
    with judging(key="sk-right") as server, caplog.at_level(logging.DEBUG):
        judge = Judge(config(server, api_key_env="SOME_KEY"), Cache(tmp_path / "c"))
        said = ask(judge, ITEM)
        assert isinstance(said[0], Answer)
        monkeypatch.setenv("SOME_KEY", "sk-wrong")
        wrong = Judge(config(server, api_key_env="SOME_KEY"))
        (fault,) = ask(wrong, {"text": "other"})
    assert isinstance(fault, Stopped)
    shown = [str(fault), repr(vars(fault)), caplog.text, (tmp_path / "c").read_text()]
    shown += [json.dumps(judge.usage.to_json()), judge.usage.summary(), repr(judge.config)]
    assert "Incorrect API key provided: Bearer ***" in str(fault)
    assert all("sk-" not in text for text in shown)


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_a_key_that_a_server_repeats_is_cut_out(
    status: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-wrong")
    monkeypatch.setattr(http, "PATIENCE", 0.1)
    with judging(key="sk-right", refuses=status) as server, caplog.at_level(logging.DEBUG):
        judge = Judge(config(server, api_key_env="SOME_KEY", num_retries=0))
        (fault,) = ask(judge, ITEM)
    assert "Incorrect API key provided: Bearer ***" in str(fault)
    assert "sk-wrong" not in caplog.text + str(fault) + str(judge.stopped)


def test_a_key_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(InputError, match="the environment has no SOME_KEY: set it"):
        Judge(JudgeConfig.read({"id": "a", "model": "m", "prompt": "p", "api_key_env": "SOME_KEY"}))


def test_no_more_requests_at_once_than_allowed() -> None:
    with judging(latency=0.02) as server:
        ask(Judge(config(server, max_parallel=3)), *({"text": str(n)} for n in range(30)))
    assert server.most_in_flight == 3


def test_no_more_requests_a_minute_than_allowed() -> None:
    with judging() as server:
        ask(Judge(config(server)), ITEM)  # so that starting takes none of the time
        judge = Judge(config(server, rpm=1200))
        began = time.monotonic()  # and not the first arrival, which may take as long as the others
        ask(judge, *({"text": str(n)} for n in range(20)))
    waited = [at - began for at in sorted(server.times[1:])]
    assert len(waited) == 20
    assert all(at >= n * 0.05 - http.SLACK for n, at in enumerate(waited))


def test_no_more_tokens_a_minute_than_allowed() -> None:
    with judging() as server:
        ask(Judge(config(server)), ITEM)
        judge = Judge(config(server, tpm=45 * 600))  # ten answers a second
        began = time.monotonic()
        ask(judge, *({"text": str(n)} for n in range(10)))
    assert max(server.times) - began >= 0.5


def test_classes_of_a_stream_are_used_or_must_be_the_same() -> None:
    with judging() as server:
        own = Judge(config(server, classes=None))
        other = Judge(config(server, classes=["yes", "no"]))

    with pytest.raises(InputError, match="has no classes"):
        own.classes()
    assert list(own.classes(["a", "b"])) == ["a", "b"]
    with pytest.raises(InputError, match=r"has the classes \['yes', 'no'\], expected \['spam'"):
        other.classes(CLASSES)


def test_an_item_without_the_field_is_an_error_that_names_it() -> None:
    with judging() as server, pytest.raises(InputError, match="'text' is undefined: the item has"):
        ask(Judge(config(server)), {"body": "x"})
