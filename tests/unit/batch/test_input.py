"""Bad input says what was got, what was expected and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import venire as vn
from venire.batch.labelling import read_batch, read_batch_panel


def yes(item: Any) -> str:
    return "yes"


BUDGET = vn.Budget(labels=5)


@pytest.mark.parametrize(
    ("items", "labelers", "budget", "options", "message"),
    [
        ({}, {"a": yes}, BUDGET, {}, "got no items"),
        ([{"text": "x"}], {"a": yes}, BUDGET, {}, "item 1 is .* expected a record with an id"),
        ([{"id": 1}, {"id": "1"}], {"a": yes}, BUDGET, {}, "got item '1' twice"),
        ([{"id": 1, "weight": 0}], {"a": yes}, BUDGET, {}, "has weight 0"),
        ([{"id": 1, "weight": "big"}], {"a": yes}, BUDGET, {}, "has weight 'big'"),
        ([{"id": 1, "target": 95}], {"a": yes}, BUDGET, {}, "has target 95, expected a confidence"),
        ([{"id": 1, "eligible": ["zoe"]}], {"a": yes}, BUDGET, {}, "names the labeler 'zoe'"),
        ({"a": 1}, {}, BUDGET, {}, "got no labelers"),
        ({"a": 1}, {"a": "yes"}, BUDGET, {}, "labeler 'a' is 'yes', expected a function"),
        ({"a": 1}, [3], BUDGET, {}, "got the labeler 3"),
        (
            {"a": 1},
            {"a": yes},
            BUDGET,
            {"classes": ["yes", "no"], "gold": {"a": "maybe"}},
            "gold has the label 'maybe', which is not one of the classes",
        ),
        ({"a": 1}, {"a": yes}, None, {}, "got neither a budget nor a target"),
        ({"a": 1}, {"a": yes}, 5.0, {}, "labelers without a price"),
        ({"a": 1}, {"a": yes}, vn.Budget(labels=5, per_day=True), {}, "got a budget per day"),
        ({"a": 1}, {"a": yes}, BUDGET, {"target": 1.0}, "got target 1.0"),
        ({"a": 1}, {"a": yes}, vn.Budget(labels=0), {}, "no label was bought"),
        (
            {"a": 1},
            {"a": lambda item: None},
            BUDGET,
            {},
            "no label was bought: of 1 answers none was a label: does the function return it",
        ),
        ({"a": 1}, {"a": yes}, BUDGET, {"costs": {("x", "x"): 1.0}}, "that verdict is right"),
    ],
)
def test_bad_input(
    items: Any, labelers: Any, budget: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(vn.InputError, match=message):
        vn.label(items, labelers, budget, **options)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("i.jsonl", "", "holds no items"),
        ("i.jsonl", '{"id": 1}\n{"id": ""}\n', "line 2: has no id"),
        ("i.jsonl", '{"id": 1}\n\n{"id": 1}\n', "line 3: item .* is on line 1 already"),
        ("i.jsonl", '{"id": 1}\n{"id": 2\n', "line 2: not JSON"),
        ("i.jsonl", "[1]\n", "expected an object"),
        ("i.jsonl", '{"id": 1, "target": 2}\n', "line 1: item '1' has target 2"),
        ("i.csv", "name,text\na,b\n", "expected one called id"),
        ("i.csv", "id,weight\na,much\n", "line 2: weight is 'much', expected a number"),
    ],
)
def test_a_bad_file_of_items(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(vn.FileError, match=message):
        read_batch(path)


def test_items_from_csv(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("id,text,weight,target,eligible\na,hello,2,0.9,ann|bob\nb,you,,,\n")
    one, two = read_batch(path)
    assert (one.weight, one.target, one.eligible) == (2.0, 0.9, frozenset({"ann", "bob"}))
    assert (two.weight, two.target, two.eligible) == (1.0, None, None)
    assert one.content["text"] == "hello"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.json", "[", "line 1: this is not JSON"),
        ("p.yaml", "- {id: a", "line 1: this is not YAML"),
        ("p.toml", "x =", "this is not TOML"),
        ("p.json", "{}", "expected a list of labelers"),
        ("p.json", '[{"id": "a"}]', "labeler 1: a needs one of call"),
        ("p.json", '[{"id": "a", "call": "x:y", "prize": 1}]', "has the key 'prize', expected id"),
        ("p.json", '[{"id": "a", "column": "x", "price": -1}]', "has price -1"),
        ("p.json", '[{"id": "a", "column": "x"}, {"id": "a", "column": "y"}]', "is there twice"),
    ],
)
def test_a_bad_panel(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(vn.FileError, match=message):
        read_batch_panel(path, lambda name: yes)


def test_a_panel_in_three_formats(tmp_path: Path) -> None:
    texts = {
        "p.yaml": "labelers:\n  - {id: a, price: 0.5, call: 'mine:judge', parallel: 3}\n",
        "p.toml": '[[labelers]]\nid = "a"\nprice = 0.5\ncall = "mine:judge"\nparallel = 3\n',
        "p.json": '[{"id": "a", "price": 0.5, "call": "mine:judge", "parallel": 3}]',
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.write_text(text)
        (caller,) = read_batch_panel(path, lambda name: yes)
        assert (caller.id, caller.price, caller.parallel) == ("a", 0.5, 3)


def test_every_labeler_needs_a_price() -> None:
    rows = [("a", "ann", 1), ("a", "bob", 0)]
    with pytest.raises(vn.InputError, match="no price for labeler 'bob'"):
        vn.label_recorded(rows, 5.0, prices={"ann": 1.0})


def test_gold_of_a_class_that_nobody_says_is_told() -> None:
    with pytest.warns(
        UserWarning, match="nobody said 'maybe', so gold of that class taught nothing"
    ):
        vn.label({"a": 1, "b": 2}, {"one": yes}, BUDGET, gold={"a": "maybe"})
