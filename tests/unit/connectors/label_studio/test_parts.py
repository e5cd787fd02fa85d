"""The parts of the sync with Label Studio that need no server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.studio.double import ANNOTATORS
from venire.connectors.label_studio import read_export, with_verdicts
from venire.connectors.label_studio.annotations import annotator, choose_people
from venire.connectors.label_studio.studio import FIELD, LabelStudio, User
from venire.connectors.label_studio.sync import changes
from venire.connectors.rounds import Verdict
from venire.errors import FileError, InputError, UnknownName
from venire.files.label_config import Control, find_control, read_controls

ANN, BOB = ANNOTATORS[:2]
USERS = [User(1, "Owner@example.org"), User(2, ANN), User(3, BOB)]


def made(who: int, cancelled: bool = False) -> dict[str, Any]:
    return {"completed_by": who, "was_cancelled": cancelled}


def look_again(task: dict[str, Any], skips_count: bool) -> bool:
    """Label Studio's own rule: a task is done when so many people have annotated it."""
    people = {
        annotator(one) for one in task["annotations"] if skips_count or not one["was_cancelled"]
    }
    return bool(len(people) >= task["overlap"])


tasks = st.builds(
    lambda annotations, overlap, labeled, held: {
        "data": {"text": "a", **({FIELD: held} if held else {})},
        "annotations": annotations,
        "overlap": overlap,
        "is_labeled": labeled,
    },
    st.lists(st.builds(made, st.integers(1, 4), st.booleans()), max_size=6),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from(["", f"|{ANN}|", f"|{ANN}||{BOB}|"]),
)


@given(
    tasks,
    st.lists(st.sampled_from(ANNOTATORS), unique=True, max_size=3),
    st.none() | st.builds(Verdict, st.sampled_from(["spam", None]), st.floats(0, 1)),
    st.booleans(),
    st.integers(1, 9),
)
def test_a_task_stays_as_it_is_made(
    task: Any, holders: list[str], verdict: Verdict | None, skips_count: bool, who: int
) -> None:
    after = {**task, **changes(task, holders, verdict)}
    assert changes(after, holders, verdict) == {}
    assert after["data"]["text"] == "a"
    assert after["is_labeled"] == (verdict is not None)
    if verdict is None:
        assert after["data"].get(FIELD, "") == "".join(f"|{email}|" for email in holders)
        for extra in range(len(holders)):  # all holders annotate, and it is still open
            after["annotations"] = [*after["annotations"], made(10 + extra)]
        assert not look_again(after, skips_count)
    else:
        assert after["data"].get(FIELD, "") == ""
        # Without any annotation, Label Studio looks again only when the first one comes.
        after["annotations"] = [*after["annotations"], made(who)]
        assert look_again(after, skips_count)


names = st.text("abcdefgh-_<>&\"' é", min_size=1, max_size=8).filter(lambda name: name.strip())


@given(st.lists(names, min_size=1, max_size=5, unique=True), names, names)
def test_the_config_gives_back_its_names(classes: list[str], name: str, about: str) -> None:
    from xml.sax.saxutils import quoteattr

    options = "".join(f"<Choice value={quoteattr(one)}/>" for one in classes)
    config = (
        f"<View><Text name={quoteattr(about)} value='$body'/><Choices name={quoteattr(name)} "
        f"toName={quoteattr(about)}>{options}</Choices></View>"
    )
    control = find_control(config)
    assert control == Control(name, about, "choices", tuple(classes), "body")
    for label in classes:
        [part] = result = control.result(label)
        assert (part["from_name"], part["to_name"]) == (name, about)
        assert control.said(result) == [label]


def test_the_controls_of_a_config() -> None:
    config = """<View>
      <Image name="img" value="$image"/>
      <Choices name="kind" toName="img" choice="single">
        <Choice value="Cat"><Choice value="Lion"/></Choice><Choice value="Dog" alias="dog"/>
      </Choices>
      <Rating name="stars" toName="img" maxRating="3"/>
      <Choices name="own" toName="img" value="$options"/>
      <Choices name="region" toName="img" perRegion="true"><Choice value="x"/></Choices>
      <RectangleLabels name="box" toName="img"><Label value="Car"/></RectangleLabels>
    </View>"""
    assert [(one.name, one.classes) for one in read_controls(config)] == [
        ("kind", ("Cat", "Lion", "dog")),
        ("stars", ("1", "2", "3")),
        ("own", ()),
    ]
    with pytest.raises(InputError, match=r"kind, stars, own; expected one.*--control"):
        find_control(config)
    stars = find_control(config, "stars")
    assert stars.result("2")[0]["value"] == {"rating": 2}
    assert stars.said(stars.result("2")) == ["2"]
    with pytest.raises(InputError, match="got the class 'good', expected a number"):
        stars.result("good")
    with pytest.raises(UnknownName, match="did you mean 'kind'"):
        find_control(config, "knd")
    with pytest.raises(InputError, match=r"none; expected one <Choices>.*labelling setup"):
        find_control("<View/>")
    with pytest.raises(InputError, match="is not XML"):
        find_control("Choices")


@pytest.mark.parametrize("result", [None, [], ["x"], [{}], [{"from_name": "kind"}]])
def test_an_annotation_that_says_nothing(result: Any) -> None:
    assert Control("kind", "img").said(result) == []


def test_who_takes_part() -> None:
    def labelers(settings: Any, *named: str) -> list[tuple[int, str]]:
        return [(one.user, one.labeler) for one in choose_people(USERS, settings, named)]

    assert len(labelers({})) == 3
    assert labelers({"panel": [{"id": BOB}, {"id": "a-judge"}]}) == [(3, BOB)]
    assert labelers({"panel": [{"id": "a-judge"}]}) == [
        (1, "Owner@example.org"),
        (2, ANN),
        (3, BOB),
    ]
    assert labelers({}, f"{ANN}=ann", BOB) == [(2, "ann"), (3, BOB)]
    assert labelers({}, "owner@example.org") == [(1, "Owner@example.org")]
    assert labelers({"panel": [{"id": ANN, "trusted": True}, {"id": BOB}]}) == [(3, BOB)]
    with pytest.raises(InputError, match=r"no user of Label Studio takes part.*--labeler"):
        labelers({"panel": [{"id": "a-judge"}], "open_panel": False})
    with pytest.raises(InputError, match="got two users for x"):
        labelers({}, f"{ANN}=x", f"{BOB}=x")
    with pytest.raises(UnknownName, match=r"unknown user of Label Studio 'an@example.org'"):
        labelers({}, "an@example.org")


def test_an_address_without_a_scheme_is_an_error() -> None:
    with pytest.raises(InputError, match="expected that of Label Studio: http://"):
        LabelStudio("127.0.0.1:8080", "t", 1)


def write(path: Path, tasks: Any) -> Path:
    path.write_text(tasks if isinstance(tasks, str) else json.dumps(tasks))
    return path


def choice(said: str, name: str = "kind") -> dict[str, Any]:
    return Control(name, "img").result(said)[0]


EXPORT = [
    {
        "id": 7,
        "data": {"image": "a.png"},
        "annotations": [
            {"id": 2, "completed_by": {"id": 3, "email": BOB}, "result": [choice("dog")]},
            {"id": 1, "completed_by": {"id": 3, "email": BOB}, "result": [choice("cat")]},
            {"id": 3, "completed_by": 2, "result": [choice("cat"), choice("x", "other")]},
            {"id": 4, "completed_by": 4, "result": [], "was_cancelled": True},
            {"id": 5, "completed_by": 5, "result": [choice("cat"), choice("dog")]},
            {"id": 6, "completed_by": 6, "result": []},
        ],
    },
    {"id": 8, "data": {"image": "b.png"}, "annotations": []},
]


def test_an_export_becomes_labels(tmp_path: Path) -> None:
    path = write(tmp_path / "export.json", EXPORT)
    with pytest.raises(FileError, match="it has the controls kind, other: name one"):
        read_export(path)
    with pytest.raises(FileError, match="got --control knd, expected one of kind, other"):
        read_export(path, "knd")
    found = read_export(path, "kind")
    assert found.labels == [("7", BOB, "cat"), ("7", "2", "cat")]
    assert found.left_out == {
        "changed": 1,
        "skipped": 1,
        "several classes": 1,
        "no class": 1,
    }


def test_a_short_export_becomes_labels(tmp_path: Path) -> None:
    rows = [
        {"image": "a", "id": 7, "kind": "dog", "annotator": 2, "annotation_id": 9, "lead_time": 1},
        {"image": "a", "id": 7, "kind": "cat", "annotator": 2, "annotation_id": 4, "lead_time": 1},
        {
            "image": "b",
            "id": 8,
            "kind": {"choices": ["a", "b"]},
            "annotator": 2,
            "annotation_id": 5,
        },
        {"image": "b", "id": 8, "kind": "dog", "annotator": 3, "annotation_id": 6},
        {"image": "b", "id": 8, "annotator": 4, "annotation_id": 7},
    ]
    found = read_export(write(tmp_path / "export.json", rows))
    assert sorted(found.labels) == [("7", "2", "cat"), ("8", "3", "dog")]
    assert found.left_out == {"several classes": 1, "no class": 1, "changed": 1}
    with pytest.raises(FileError, match="got JSON-MIN"):
        list(with_verdicts(tmp_path / "export.json", {}))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nonsense", "it is not JSON .*: export as JSON or JSON-MIN"),
        ('{"id": 1}', "expected a list of tasks"),
        ("[1]", "expected a list of tasks"),
        ('[{"data": {}}]', "expected a list of tasks with ids"),
        ("[]", "it has the controls none"),
    ],
)
def test_what_is_no_export_is_said(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(FileError, match=why):
        read_export(write(tmp_path / "export.json", text))


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read: No such file"):
        read_export(tmp_path / "nothing.json")


def test_verdicts_become_predictions(tmp_path: Path) -> None:
    path = write(tmp_path / "export.json", EXPORT)
    first, second = with_verdicts(path, {"7": ("cat", 0.8)}, Control("kind", "img"))
    assert first["data"] == {"image": "a.png"}
    [prediction] = first["predictions"]
    assert prediction == {"model_version": "venire", "score": 0.8, "result": [choice("cat")]}
    assert "predictions" not in second
    with pytest.raises(FileError, match="it has no task 9, which has a verdict"):
        list(with_verdicts(path, {"9": ("cat", 0.8)}, Control("kind", "img")))
