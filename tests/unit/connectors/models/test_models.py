"""scikit-learn and ONNX as labelers, batches, panel files, and what is no label."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import venire as vn
from tests.integration.server.harness import SOURCE
from venire.batch import Answer, NoAnswer
from venire.cli.shared.callables import find_callable
from venire.connectors.crew import label_of
from venire.connectors.models import (
    Batching,
    Model,
    answers_of,
    margins_of,
    read_panel_of_models,
    shares_of,
)
from venire.connectors.onnx import OnnxModel
from venire.connectors.sklearn import SklearnModel, load
from venire.errors import FileError, InputError, MissingExtra

DIGITS = load_digits()
PIXELS = DIGITS.data / 16
TEXTS = ["buy now", "see you", "buy this", "hello you"]
KINDS = ["spam", "ok", "spam", "ok"]
SPAM = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, KINDS)


def save(fitted: Any, path: Path) -> None:
    import skops.io  # which imports all of scikit-learn

    skops.io.dump(fitted, path)


def shown(count: int = 5) -> list[dict[str, Any]]:
    return [{"id": f"d{n}", "pixels": PIXELS[n].tolist()} for n in range(count)]


@pytest.fixture(scope="module")
def digits() -> LogisticRegression:
    return LogisticRegression(max_iter=300).fit(PIXELS[500:], DIGITS.target[500:])


def test_an_estimator_says_what_it_predicts_and_how_sure_it_is(digits: Any) -> None:
    said: Any = SklearnModel("d", digits, fields="pixels").answer(shown())
    assert [one.label for one in said] == digits.predict(PIXELS[:5]).tolist()
    sure = digits.predict_proba(PIXELS[:5]).max(axis=1)
    assert [one.confidence for one in said] == pytest.approx(sure.tolist())
    assert type(said[0].label) is int


def test_texts_classes_of_other_names_and_dataframes() -> None:
    said: Any = SklearnModel("t", SPAM, fields="text", classes=["fine", "bad"]).answer(
        [{"text": "buy"}, {"text": "you"}, {"body": "no text"}]
    )
    assert [one.label for one in said[:2]] == ["bad", "fine"]
    assert isinstance(said[2], NoAnswer)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 1.0, 0.0, 0.0]})
    fitted = LogisticRegression().fit(frame, ["x", "x", "y", "y"])
    said = SklearnModel("f", fitted).answer([{"id": 1, "b": 0.0, "a": 3.0}, {"a": 0.0}])
    assert said[0].label == "y"
    assert isinstance(said[1], NoAnswer)  # without b it cannot predict


def test_a_classifier_without_probabilities_has_margins_and_one_without_both_has_none() -> None:
    line = LinearSVC().fit(PIXELS[:300], DIGITS.target[:300] % 2)
    said: Any = SklearnModel("svm", line, fields="pixels").answer(shown(40))
    margin = np.abs(line.decision_function(PIXELS[:40]))
    assert np.argsort([one.confidence for one in said]).tolist() == np.argsort(margin).tolist()

    class Rule:
        def predict(self, texts: list[str]) -> list[str]:
            return ["loud" if text.isupper() else "quiet" for text in texts]

    assert SklearnModel("r", Rule(), fields="t").answer([{"t": "BUY"}]) == [Answer("loud")]
    with pytest.raises(InputError, match="expected an object with predict"):
        SklearnModel("r", object())


def test_one_bad_item_costs_its_batch_nothing_but_a_broken_model_is_an_error(digits: Any) -> None:
    items = [*shown(3), {"pixels": [1.0, 2.0]}, {"pixels": [float("nan")] * 64}]
    said: Any = SklearnModel("d", digits, fields="pixels").answer(items)
    assert [isinstance(one, NoAnswer) for one in said] == [False, False, False, True, True]
    with pytest.raises(ValueError, match="features"):
        SklearnModel("d", digits, fields="pixels").answer([{"pixels": [1.0]}, {"pixels": [2.0]}])


def test_a_field_that_no_item_has_is_an_error() -> None:
    model = SklearnModel("t", SPAM, fields="txt")
    with pytest.raises(InputError, match="none of 10 items has the field 'txt': they"):
        model.answer([{"text": "buy"}] * 12)


def test_a_model_that_likes_64_gets_64() -> None:
    sizes: list[int] = []

    def predict(inputs: list[Any]) -> list[Any]:
        sizes.append(len(inputs))
        return [Answer("even" if n % 2 == 0 else "odd", confidence=0.5 + n / 1000) for n in inputs]

    model = Model("m", predict, batch=64)
    done = vn.label({str(n): n for n in range(3000)}, [model], vn.Budget(labels=3000))
    assert done.asked == 3000
    assert max(sizes) == 64
    assert sizes.count(64) >= 40


def test_what_a_batch_of_models_is_right_on(digits: Any) -> None:
    """Three models, right on 70, 82 and 95 %, which share errors: it stays with the vote."""
    weak = LogisticRegression().fit(PIXELS[500:540], DIGITS.target[500:540])
    half = LogisticRegression().fit(PIXELS[540:700], DIGITS.target[540:700])
    models = [weak, half, digits]
    panel = [SklearnModel(f"m{n}", one, fields="pixels") for n, one in enumerate(models)]
    truth = {f"d{n}": int(DIGITS.target[n]) for n in range(400)}
    done = vn.label(shown(400), panel, vn.Budget(labels=1200), truth=truth)
    assert done.accuracy is not None
    assert done.accuracy > 0.86


def test_files_of_estimators_and_whom_to_trust(tmp_path: Path, digits: Any) -> None:
    save(SPAM, tmp_path / "spam.skops")
    assert load(tmp_path / "spam.skops").predict(["buy"]).tolist() == ["spam"]
    joblib.dump(SPAM, tmp_path / "spam.joblib")
    with pytest.raises(FileError, match="a program that runs when it is loaded"):
        load(tmp_path / "spam.joblib")
    with pytest.raises(FileError, match="a program that runs"):
        load(tmp_path / "spam.joblib", trust=["a.type"])
    assert load(tmp_path / "spam.joblib", trust=True).predict(["buy"]).tolist() == ["spam"]
    (tmp_path / "odd.skops").write_bytes(b"no model")
    with pytest.raises(FileError, match="cannot be loaded"):
        load(tmp_path / "odd.skops")
    with pytest.raises(FileError, match="no such file"):
        load(tmp_path / "none.skops")
    (tmp_path / "model.h5").write_bytes(b"")
    with pytest.raises(FileError, match=r"expected a model saved as \.skops"):
        load(tmp_path / "model.h5")


class Odd(DummyClassifier):  # type: ignore[misc]
    """A type that skops does not know."""


def test_a_skops_file_with_unknown_types_names_them(tmp_path: Path) -> None:
    save(Odd(strategy="prior").fit([[0]] * 4, KINDS), tmp_path / "odd.skops")
    with pytest.raises(FileError, match="Odd") as fault:
        load(tmp_path / "odd.skops")
    named = str(fault.value).rpartition("trust: [")[2].rstrip("]").split(", ")
    assert load(tmp_path / "odd.skops", trust=named).predict([[0]]).tolist() == ["ok"]


def test_a_pickle_is_not_run_unless_it_is_trusted(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "ran",)

    (tmp_path / "bomb.pkl").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(FileError):
        load(tmp_path / "bomb.pkl")
    assert not (tmp_path / "ran").exists()


@pytest.fixture
def net(tmp_path: Path, digits: Any) -> Path:
    """A network of one layer whose output are logits, for any number of items."""
    return layer(tmp_path / "net.onnx", digits, "n")


def layer(path: Path, fitted: Any, count: str | int, softmax: bool = False) -> Path:
    weights = helper.make_tensor(
        "w", TensorProto.FLOAT, [64, 10], fitted.coef_.T.astype(np.float32).ravel().tolist()
    )
    bias = helper.make_tensor("b", TensorProto.FLOAT, [10], fitted.intercept_.tolist())
    last = "logits" if softmax else "out"
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("Add", ["xw", "b"], [last]),
    ]
    if softmax:
        nodes.append(helper.make_node("Softmax", ["logits"], ["out"], axis=1))
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [count, 64])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [count, 10])],
        [weights, bias],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
    return path


def test_a_network_with_logits_says_what_the_estimator_says(net: Path, digits: Any) -> None:
    said: Any = OnnxModel("net", net, fields="pixels", scores="logits").answer(shown(20))
    assert [one.label for one in said] == digits.predict(PIXELS[:20]).tolist()
    sure = digits.predict_proba(PIXELS[:20]).max(axis=1)
    assert [one.confidence for one in said] == pytest.approx(sure.tolist(), abs=1e-4)
    square = [{"pixels": PIXELS[0].reshape(8, 8).tolist()}]
    names = [f"number {n}" for n in range(10)]
    model = OnnxModel("net", net, fields="pixels", scores="logits", classes=names)
    said = model.answer(square)
    assert said[0].label == "number 0"


def test_logits_are_not_taken_for_probabilities(net: Path) -> None:
    with pytest.raises(InputError, match="say scores: logits"):
        OnnxModel("net", net, fields="pixels").answer(shown())


def test_a_file_for_a_fixed_number_of_items_gets_that_number(tmp_path: Path, digits: Any) -> None:
    path = layer(tmp_path / "fixed.onnx", digits, 8, softmax=True)
    model = OnnxModel("fixed", path, fields="pixels")
    assert model.many == 8
    said: Any = model.answer(shown(3))
    assert [one.label for one in said] == digits.predict(PIXELS[:3]).tolist()


@pytest.mark.parametrize("maps", [True, False])
def test_what_sklearn_onnx_writes_is_read(tmp_path: Path, maps: bool) -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import FloatTensorType

    fitted = LogisticRegression().fit(
        PIXELS[:300, 20:30], np.where(DIGITS.target[:300] > 4, "b", "a")
    )
    made = skl2onnx.to_onnx(
        fitted,
        initial_types=[("x", FloatTensorType([None, 10]))],
        options={id(fitted): {"zipmap": maps}},
        target_opset=17,
    )
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    fields = [f"f{n}" for n in range(10)]
    items = [dict(zip(fields, PIXELS[n, 20:30].tolist(), strict=True)) for n in range(300, 320)]
    said: Any = OnnxModel("m", tmp_path / "m.onnx", fields=fields).answer(items)
    assert [one.label for one in said] == fitted.predict(PIXELS[300:320, 20:30]).tolist()
    sure = fitted.predict_proba(PIXELS[300:320, 20:30]).max(axis=1)
    assert [one.confidence for one in said] == pytest.approx(sure.tolist(), abs=1e-4)


def test_a_file_that_is_no_model_is_refused(tmp_path: Path, net: Path) -> None:
    (tmp_path / "odd.onnx").write_bytes(b"no model")
    with pytest.raises(FileError, match="not an ONNX model"):
        OnnxModel("m", tmp_path / "odd.onnx")
    with pytest.raises(FileError, match="no such file"):
        OnnxModel("m", tmp_path / "none.onnx")
    with pytest.raises(FileError, match="has no output 'scores': it has out"):
        OnnxModel("m", net, output="scores")
    with pytest.raises(InputError, match="did you mean 'logits'"):
        OnnxModel("m", net, scores="logit")
    with pytest.raises(InputError, match="10 scores for an item, and there are 2 classes"):
        OnnxModel("m", net, fields="pixels", scores="logits", classes=["a", "b"]).answer(shown(1))


@given(st.lists(st.lists(st.floats(-30, 30), min_size=3, max_size=3), min_size=1, max_size=9))
def test_shares_of_logits_are_probabilities_in_the_same_order(rows: list[list[float]]) -> None:
    shares = shares_of(rows, "logits")
    assert shares.sum(axis=1) == pytest.approx(1.0)
    for row, said in zip(rows, answers_of(shares), strict=True):
        assert isinstance(said, Answer)
        assert row[int(str(said.label))] == pytest.approx(max(row), abs=1e-6)
        assert said.confidence == pytest.approx(np.exp(max(row)) / np.exp(row).sum(), rel=1e-6)


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=9))
def test_margins_rise_with_the_distance(gaps: list[float]) -> None:
    sure = margins_of(gaps)
    assert ((sure >= 0.5) & (sure <= 1.0)).all()
    order = np.argsort(np.abs(gaps), kind="stable")
    assert (np.diff(sure[order]) >= 0).all()


PANEL = """
labelers:
  - {id: spam, sklearn: spam.skops, fields: text, batch: 32, price: 0.01}
  - {id: rules, call: "string:capwords"}
"""


def test_a_panel_file_has_models_and_functions(tmp_path: Path) -> None:
    save(SPAM, tmp_path / "spam.skops")
    (tmp_path / "panel.yaml").write_text(PANEL)
    spam, rules = read_panel_of_models(tmp_path / "panel.yaml", find_callable)
    assert (spam.id, spam.many, spam.price, rules.id) == ("spam", 32, 0.01, "rules")
    assert spam.call([{"text": "buy"}])[0].label == "spam"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{id: a}", "a needs one of call: module:function, column: a field, sklearn, onnx, http"),
        ("{id: a, onnx: x.onnx, call: 'a:b'}", "a needs one of"),
        ("{id: a, sklearn: x.skops, field: text}", "did you mean 'fields'"),
        ("{id: a, sklearn: x.skops}", "x.skops: cannot be read"),
        ("{id: a, http: 'ftp://x'}", "a needs request"),
        ("{id: a, http: 'ftp://x', request: {}, label: x}", "expected http://"),
        ("{id: a, http: 'http://x', request: {}, label: x, rpm: 0}", "rpm is 0"),
        ("{id: a, onnx: x.onnx, classes: [yes, no]}", "in quotes"),
        ("{id: a, label_studio_ml: 'http://127.0.0.1:1'}", "needs classes"),
        ("{id: a, sklearn: x.pkl, batch: 0}", "x.pkl: cannot be read"),
    ],
)
def test_a_mistake_in_a_panel_file_is_named(tmp_path: Path, entry: str, message: str) -> None:
    (tmp_path / "panel.yaml").write_text(f"- {entry}\n")
    with pytest.raises(FileError, match="labeler 1") as fault:
        read_panel_of_models(tmp_path / "panel.yaml", find_callable)
    assert message in str(fault.value)


@pytest.mark.parametrize(
    ("missing", "call", "extra"),
    [
        ("onnxruntime", "OnnxModel('m', 'm.onnx')", "onnx"),
        ("sklearn", "load('m.skops')", "sklearn"),
        ("skops", "load('m.skops')", "sklearn"),
        ("jinja2", "HttpModel('m', 'http://x', request={}, label='x')", "judges"),
        ("httpx2", "HttpModel('m', 'http://x', request={}, label='x')", "judges"),
    ],
)
def test_a_missing_extra_says_how_to_install_it(
    tmp_path: Path, missing: str, call: str, extra: str
) -> None:
    (tmp_path / "m.skops").write_bytes(b"")
    script = (
        f"import sys; sys.modules[{missing!r}] = None; sys.modules['{missing}.io'] = None\n"
        "from venire.connectors.http import HttpModel\n"
        "from venire.connectors.onnx import OnnxModel\n"
        "from venire.connectors.sklearn import load\n"
        f"{call}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"pip install 'venire[{extra}]'" in done.stderr
    assert MissingExtra.__name__ in done.stderr


def test_calls_that_come_one_by_one_are_made_together() -> None:
    sizes: list[int] = []

    def call(items: list[Any]) -> list[Any]:
        sizes.append(len(items))
        return [NoAnswer("none") if item == 7 else item * 2 for item in items]

    async def run() -> list[Any]:
        double = Batching(call, most=8)
        asked = (double(n) for n in range(30))
        return await asyncio.gather(*asked, return_exceptions=True)

    said = asyncio.run(run())
    assert isinstance(said[7], NoAnswer)
    assert [one for n, one in enumerate(said) if n != 7] == [2 * n for n in range(30) if n != 7]
    assert max(sizes) == 8
    assert sum(sizes) == 30


def test_a_batch_that_fails_fails_for_each_of_its_calls() -> None:
    async def run() -> list[Any]:
        fails = Batching(lambda items: [1], most=4)
        return await asyncio.gather(*(fails(n) for n in range(4)), return_exceptions=True)

    assert all(isinstance(one, InputError) for one in asyncio.run(run()))


def test_labels_of_a_stream_are_text() -> None:
    async def later(items: list[Any]) -> list[Any]:
        return [Answer(1), NoAnswer("none")][: len(items)]

    said = label_of(vn.Caller("a", lambda item: {"spam": 0.9, "ok": 0.1}))("x")
    assert (said.label, said.confidence) == ("spam", 0.9)
    assert asyncio.run(label_of(vn.Caller("a", later, many=2))("x")) == "1"


def test_confidence_is_kept_in_the_journal(tmp_path: Path) -> None:
    items = {str(n): n for n in range(60)}

    def sure(n: int) -> Answer:
        return Answer("a" if n % 2 else "b", confidence=0.5 + n / 200)

    done = [
        vn.label(items, {"m": sure, "k": sure}, vn.Budget(labels=90), journal=tmp_path / "j")
        for _ in range(2)
    ]
    rows = [json.loads(line) for line in (tmp_path / "j").read_text().splitlines()[1:]]
    assert {len(row) for row in rows} == {5}
    assert done[0].confidence.tolist() == done[1].confidence.tolist()
