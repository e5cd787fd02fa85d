"""Models behind HTTP: what is sent, what is read, and every fault of which none is a label."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

import venire as vn
from tests.judge_server import CLASSES, most_in_a_window, truth
from tests.model_server import ModelServer, modelling
from venire.batch import Answer, NoAnswer
from venire.batch.asking import close_labelers
from venire.connectors.http import Calling, HttpModel
from venire.connectors.label_studio_ml import LabelStudioBackend
from venire.errors import GaveUp, InputError, NotNow
from venire.tools import http

REQUEST = {"instances": "{{ items | map(attribute='text') | list }}"}
BUDGET = vn.Budget(labels=300)
ITEMS = [{"text": f"{'BUY' if n % 2 else 'see'} {n}"} for n in range(6)]


def model(server: ModelServer, calling: Calling | None = None, **options: Any) -> HttpModel:
    given: dict[str, Any] = {
        "label": "label",
        "confidence": "score",
        "answers": "predictions",
        "batch": 4,
    }
    given |= options
    used = {key: value for key, value in given.items() if value is not None}
    quick = calling or Calling(num_retries=2, timeout=60.0)
    return HttpModel("m", f"{server.url}/predict", request=REQUEST, calling=quick, **used)


def ask(labeler: Any, items: Sequence[Any]) -> Any:
    async def run() -> Any:
        try:
            return await labeler.answer(items)
        finally:
            await labeler.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    "paths",
    [
        {},
        {"label": "number", "classes": CLASSES},
        {"label": None, "confidence": None, "probabilities": "probs"},
        {"label": None, "confidence": None, "probabilities": "list", "classes": CLASSES},
    ],
    ids=["label", "number", "probabilities by name", "probabilities in a list"],
)
def test_answers_are_found_where_the_paths_lead(paths: dict[str, Any]) -> None:
    with modelling() as server:
        said = ask(model(server, **paths), ITEMS)
    assert [one.label for one in said] == [truth(item["text"])[0] for item in ITEMS]
    sure = [truth(item["text"])[1] for item in ITEMS]
    assert [one.confidence for one in said] == pytest.approx(sure)
    assert server.bodies == [{"instances": [item["text"] for item in ITEMS]}]


def test_a_reason_is_found_where_its_path_leads() -> None:
    with modelling() as server:
        (said, *_) = ask(model(server, rationale="label"), ITEMS[:4])
        (shares, *_) = ask(
            model(server, label=None, confidence=None, probabilities="probs", rationale="number"),
            ITEMS[:4],
        )
    assert said.rationale == said.label
    assert shares.rationale is None, "a number is no reason"


@pytest.mark.parametrize("fault", ["500", "html", "503", "broken", "list", "dropped", "limited-ms",
                                   "error-in-200", "no-list", "too-few", "no-field"])  # fmt: skip
def test_what_may_pass_is_asked_again(fault: str) -> None:
    with modelling(fault) as server:
        said = ask(model(server), ITEMS[:4])
    assert [one.label for one in said] == [truth(item["text"])[0] for item in ITEMS[:4]]
    assert len(server.bodies) == 2


@pytest.mark.parametrize("fault", ["500", "html", "broken", "no-list", "too-few", "no-field"])
def test_what_does_not_pass_is_no_label_for_now(fault: str) -> None:
    with modelling(always=fault) as server, pytest.raises(NotNow, match="labeler m: no answer"):
        ask(model(server), ITEMS[:4])


def test_a_slow_model_is_not_waited_for() -> None:
    how = Calling(timeout=0.2, num_retries=0)
    with modelling(always="slow") as server, pytest.raises(NotNow, match="within"):
        ask(model(server, how), ITEMS[:1])


@pytest.mark.parametrize("fault", ["no-label", "no-class"])
def test_an_answer_that_is_no_class_is_no_label(fault: str) -> None:
    options: dict[str, Any] = {}
    if fault == "no-class":
        options = {"label": "number", "classes": CLASSES}
    with modelling(always=fault) as server:
        said = ask(model(server, **options), ITEMS[:3])
    assert isinstance(said[0], NoAnswer)
    assert all(isinstance(one, Answer) for one in said[1:])


def test_probabilities_that_are_missing_are_no_label() -> None:
    paths: dict[str, Any] = {"label": None, "confidence": None, "probabilities": "probs"}
    with modelling("no-label") as server:
        said = ask(model(server, **paths), ITEMS[:2])
    assert isinstance(said[0], NoAnswer)
    assert said[1].label == "spam"


def test_a_confidence_that_is_no_number_is_none() -> None:
    with modelling("odd-score") as server:
        assert ask(model(server), ITEMS[:1]) == [Answer("ok", confidence=None)]


@pytest.mark.parametrize("fault", ["quota", "paid", "key", "model", "redirect", "limited-day"])
def test_what_will_not_pass_stops_the_labeler(fault: str) -> None:
    with modelling(always=fault) as server:
        labeler = model(server)
        with pytest.raises(GaveUp):
            ask(labeler, ITEMS[:2])
        assert len(server.bodies) == 1
    assert labeler.stopped


def test_an_item_that_is_refused_costs_its_batch_nothing() -> None:
    with modelling(refuses_texts="see 2") as server:
        said = ask(model(server), ITEMS[:4])
    assert [isinstance(one, NoAnswer) for one in said] == [False, False, True, False]
    assert "cannot be read" in str(said[2])


def test_a_path_that_leads_nowhere_stops_the_labeler_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "_backoff", lambda so_far: 0.0)
    with modelling() as server:
        labeler = model(server, label="result.label")
        with pytest.raises(InputError, match="no label was bought"):
            vn.label({str(n): {"text": f"see {n}"} for n in range(80)}, [labeler], BUDGET)
        close_labelers([labeler])
    assert "there is no result.label in the answer" in str(labeler.stopped)


def test_limits_are_kept_on_our_side() -> None:
    async def many(labeler: HttpModel) -> None:
        await asyncio.gather(*(labeler.answer([item]) for item in ITEMS * 6))
        await labeler.close()

    with modelling(latency=0.01) as server:
        asyncio.run(many(model(server, Calling(rpm=3000, max_parallel=2))))
    assert server.most_in_flight <= 2
    assert most_in_a_window(server.times, 0.4) <= 24


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-secret")
    how = Calling(api_key_env="MODEL_KEY", api_key_header="x-api-key")
    with modelling(key="sk-secret") as server:
        assert ask(model(server, how), ITEMS[:1])[0].label == "ok"
    with modelling(key="another") as server, pytest.raises(GaveUp) as fault:
        ask(model(server, how), ITEMS[:1])
    assert "401" in str(fault.value)
    assert "sk-secret" not in str(fault.value)
    monkeypatch.delenv("MODEL_KEY")
    with pytest.raises(InputError, match="the environment has no MODEL_KEY"):
        model(ModelServer(url="http://127.0.0.1:9"), how)


def test_an_item_cannot_change_the_request() -> None:
    odd = {"text": '"}], "admin": "{{ 7 * 7 }}'}
    with modelling() as server:
        ask(model(server), [odd])
    assert server.bodies == [{"instances": [odd["text"]]}]


def test_an_item_without_the_field_is_no_answer_and_not_sent() -> None:
    with modelling() as server:
        said = ask(model(server), [{"body": "BUY"}, ITEMS[1]])
    assert isinstance(said[0], NoAnswer)
    assert said[1].label == "spam"
    assert server.bodies == [{"instances": [ITEMS[1]["text"]]}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"probabilities": "p"}, "either label or probabilities"),
        ({"answers": None}, "it needs answers"),
        ({"label": "a..b"}, "expected keys and numbers"),
        ({"batch": 0, "answers": None}, "batch is 0"),
    ],
)
def test_a_wrong_setting_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        model(ModelServer(url="http://127.0.0.1:9"), **options)


def test_answers_in_lists_of_their_own() -> None:
    """The rows of the table in docs/models.md."""
    listed = HttpModel(
        "m",
        "http://x",
        request={},
        answers="predictions",
        probabilities=".",
        classes=["ok", "spam"],
    )
    assert listed.read({"predictions": [[0.1, 0.9]]}) == [Answer("spam", confidence=0.9)]
    ranked = HttpModel(
        "m", "http://x", request={}, answers=".", label="[0].label", confidence="[0].score"
    )
    said = [[{"label": "spam", "score": 0.9}, {"label": "ok", "score": 0.1}]]
    assert ranked.read(said) == [Answer("spam", confidence=0.9)]


def test_a_third_of_the_requests_fails_and_no_label_is_wrong() -> None:
    kinds = ("limited-ms", "html", "500", "broken", "no-label", "too-few", "no-field")
    posts = {f"p{n}": {"text": f"{'BUY' if n % 3 else 'see'} {n}"} for n in range(300)}
    with modelling(shares={kind: 1 / 3 / len(kinds) for kind in kinds}) as server:
        labeler = model(server, Calling(num_retries=6), batch=16)
        done = vn.label(posts, [labeler], BUDGET)
        close_labelers([labeler])
    given = {done.table.items[i]: CLASSES.index(str(done.table.classes[k]))
             for i, k in zip(done.table.item, done.table.said, strict=True)}  # fmt: skip
    assert len(given) >= 280
    assert all(CLASSES[k] == truth(posts[item]["text"])[0] for item, k in given.items())


def backend(server: ModelServer, **options: Any) -> LabelStudioBackend:
    quick = Calling(num_retries=1, timeout=60.0)
    return LabelStudioBackend("b", server.url, classes=CLASSES, calling=quick, **options)


@pytest.mark.parametrize("form", ["fine", "several"])
def test_a_backend_of_label_studio_labels(form: str) -> None:
    with modelling(always=form) as server:
        said = ask(backend(server), ITEMS)
    assert [(one.label, one.confidence) for one in said] == [truth(i["text"]) for i in ITEMS]
    (body,) = server.bodies
    assert [task["data"] for task in body["tasks"]] == ITEMS
    assert '<Choice value="spam"/>' in body["label_config"]


@pytest.mark.parametrize("fault", ["no-choice", "two-choices", "no-class"])
def test_a_prediction_that_is_no_choice_is_no_label(fault: str) -> None:
    with modelling(always=fault) as server:
        said = ask(backend(server), ITEMS[:3])
    assert [isinstance(one, NoAnswer) for one in said] == [True, False, False]


def test_an_empty_list_of_classes_refuses_every_choice() -> None:
    config = '<View><Choices name="label"><Choice value="spam"/></Choices></View>'
    with modelling() as server:
        labeler = LabelStudioBackend("b", server.url, classes=[], label_config=config)
        said = ask(labeler, ITEMS[:3])
    assert [str(one) for one in said if isinstance(one, NoAnswer)] == [
        f"labeler b: {truth(item['text'])[0]!r} is not a class" for item in ITEMS[:3]
    ]


@pytest.mark.parametrize("fault", ["too-few", "500", "broken"])
def test_a_backend_that_fails_is_no_label_for_now(fault: str) -> None:
    with modelling(always=fault) as server, pytest.raises(NotNow):
        ask(backend(server), ITEMS[:3])


def test_a_backend_needs_classes_or_a_config() -> None:
    with pytest.raises(InputError, match="label_config"):
        LabelStudioBackend("b", "http://127.0.0.1:9090")
    with pytest.raises(InputError, match="check label_config"):
        LabelStudioBackend("b", "http://127.0.0.1:9090", label_config="none.xml")


def test_connections_that_are_refused_are_no_label_for_now() -> None:
    began = time.monotonic()
    with pytest.raises(NotNow, match="no answer after"):
        ask(model(ModelServer(url="http://127.0.0.1:9")), ITEMS[:1])
    assert time.monotonic() - began < 20
