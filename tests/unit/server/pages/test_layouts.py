"""What the labelling page shows: by the stream's layout, or by the payload's shape."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from venire.server.pages.rendering import LONGEST_PATH, MOST_ROWS, MOST_SOUGHT, lay_out
from venire.server.settings import Block, StreamSettings

PNG, WAV = "data:image/png;base64,AAAA", "data:audio/wav;base64,AAAA"
PAYLOADS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.sampled_from(["text", "prompt", "a", "b", "image", "messages"]), st.text()
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)
BLOCKS = st.builds(
    Block,
    field=st.sampled_from(["", "text", "a.b", "messages.0.content", "0"]),
    show=st.sampled_from(["auto", "text", "markdown", "code", "image", "audio", "table"]),
    title=st.text(max_size=5),
    beside=st.booleans(),
    highlight=st.sampled_from(["", "a", "text"]),
)
KINDS = {"text", "markdown", "code", "image", "audio", "table"}


@pytest.mark.parametrize("reference", [False, True])
def test_a_reference_is_shown_to_people_if_the_stream_says_so(reference: bool) -> None:
    blocks = [Block(field="answer"), *([Block(field="reference")] if reference else [])]
    parts = lay_out({"answer": "41", "reference": "42"}, "item", blocks)
    assert [part["text"] for part in parts] == (["41", "42"] if reference else ["41"])


@given(PAYLOADS, st.lists(BLOCKS, max_size=3))
def test_anything_can_be_shown(payload: Any, blocks: list[Block]) -> None:
    parts = lay_out(payload, "item", blocks)
    assert parts
    for part in parts:
        assert part["kind"] in KINDS
        assert isinstance(part["text"], str)
        assert "".join(piece for piece, _ in part.get("pieces", [])) in ("", part["text"])
        assert all(isinstance(cell, str) for row in part.get("rows", ()) for cell in row)


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        (None, [("text", "", "i")]),
        ("hello", [("text", "", "hello")]),
        (7, [("text", "", "7")]),
        (PNG, [("image", "", PNG)]),
        ({"image": PNG, "text": "a"}, [("image", "", PNG), ("text", "", "a")]),
        ({"audio": WAV}, [("audio", "", WAV)]),
        ({"text": "a", "id": 3}, [("text", "", "a")]),
        ({"question": "q", "answer": "a"}, [("text", "Question", "q"), ("text", "Answer", "a")]),
        ({"prompt": "p", "responses": ["x", "y"]},
         [("text", "Prompt", "p"), ("text", "A", "x"), ("text", "B", "y")]),
        ({"prompt": "p", "chosen": "x", "rejected": "y"},
         [("text", "Prompt", "p"), ("text", "Chosen", "x"), ("text", "Rejected", "y")]),
        ({"messages": [{"role": "user", "content": "hi"}]}, [("text", "User", "hi")]),
        ({"name": "Ann", "age": 4}, [("table", "", "")]),
        ([1, 2], [("code", "", "[\n  1,\n  2\n]")]),
        ({}, [("code", "", "{}")]),
    ],
)  # fmt: skip
def test_the_shape_decides(payload: Any, shown: list[tuple[str, str, str]]) -> None:
    parts = lay_out(payload, "i")
    assert [(part["kind"], part.get("title", ""), part["text"]) for part in parts] == shown


FENCED = "Use this:\n```python\nx = 1\n```"


@pytest.mark.parametrize(
    ("payload", "kinds"),
    [
        ({"prompt": "Sort it", "response_a": FENCED, "response_b": "- one\n- two"},
         ["text", "markdown", "markdown"]),
        ({"prompt": "p", "answer_1": "**no**", "answer_2": "no"}, ["text", "markdown", "text"]),
        ({"question": "# Task\nAdd.", "answer": "|a|b|\n|-|-|\n|--|--|"}, ["markdown", "markdown"]),
        ([{"role": "user", "content": "`ls`?"}, {"role": "bot", "content": "2 * 3 * 4"}],
         ["markdown", "text"]),
        ({"text": FENCED}, ["markdown"]),
        (FENCED, ["markdown"]),
        ("**FREE** [click](https://x.example)", ["text"]),  # a post is judged as it was written
        ({"text": "#tag - one\n\nsnake_case_name"}, ["text"]),
        ({"response": "```\nnever closed"}, ["text"]),
        ({"response": FENCED + "x" * 30_000}, ["text"]),
    ],
)  # fmt: skip
def test_what_has_the_marks_of_markdown_is_drawn_as_such(payload: Any, kinds: list[str]) -> None:
    parts = lay_out(payload, "i")
    assert [part["kind"] for part in parts] == kinds
    for part in parts:
        if "```python" in str(payload) and part["kind"] == "markdown" and "Use" in part["text"]:
            assert "<pre><code>x = 1" in part["text"]


def test_only_the_second_response_stands_beside() -> None:
    parts = lay_out({"prompt": "p", "a": "x", "b": "y"}, "i")
    assert [part.get("beside", False) for part in parts] == [False, False, True]


def test_a_block_of_a_missing_field_is_left_out_and_without_any_the_shape_decides() -> None:
    blocks = [Block(field="title"), Block(field="body")]
    assert [part["text"] for part in lay_out({"body": "b"}, "i", blocks)] == ["b"]
    assert [part["text"] for part in lay_out({"text": "t"}, "i", blocks)] == ["t"]


def test_marks_count_characters_and_overlap() -> None:
    block = Block(field="text", highlight="spans")
    (part,) = lay_out({"text": "😀 to be", "spans": [[0, 1], [2, 5], "to be"]}, "i", [block])
    assert part["pieces"] == [("😀", True), (" ", False), ("to be", True)]


def test_of_a_hostile_payload_no_more_is_parsed_than_takes_no_time() -> None:
    (part,) = lay_out("[" * 30_000, "i", [Block(show="markdown")])  # seconds, and the square of it
    assert (part["kind"], len(part["text"])) == ("text", 30_000)
    marked = {"text": "ab", "words": ["x"] * 1000 + ["a"]}
    assert "pieces" not in lay_out(marked, "i", [Block(field="text", highlight="words")])[0]


def test_words_that_would_take_long_to_look_for_are_left_out() -> None:
    payload = {"text": "ab" * 1000, "words": ["a" * 500_000, "b"]}
    blocks = [Block(field="text", highlight="words")]
    assert "pieces" not in lay_out(payload, "i", blocks)[0]
    payload["words"] = ["b" * (MOST_SOUGHT - 1), "a", "b"]
    pieces = lay_out(payload, "i", blocks)[0]["pieces"]
    assert {piece for piece, marked in pieces if marked} == {"a"}


def test_a_table_does_not_repeat_a_long_name_in_every_row() -> None:
    """A payload of some megabytes could be shown as hundreds of gigabytes."""
    (part,) = lay_out({"k" * 100_000: {f"a{n}": "x" for n in range(100_000)}}, "i")
    assert len(part["rows"]) == MOST_ROWS + 1
    assert part["rows"][-1][0] == "…"
    assert max(len(path) for path, _ in part["rows"]) == LONGEST_PATH
    (part,) = lay_out({f"a{n}": "x" for n in range(MOST_ROWS)}, "i")
    assert part["rows"][-1] == (f"a{MOST_ROWS - 1}", "x")


def test_a_payload_that_is_nested_too_deeply_says_so() -> None:
    payload: Any = 1
    for _ in range(3000):
        payload = {"a": payload, "x": 1}
    assert "too deeply" in lay_out(payload, "i")[0]["text"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"descriptions": {"c": "x"}}, "name the class 'c'"),
        ({"practice": [{"payload": 1, "answer": "c"}]}, "name the class 'c'"),
        ({"practice": [{"payload": "x" * 60_000, "answer": "a"}]}, "more than 50,000"),
        ({"layout": [{"show": "video"}]}, "layout"),
        ({"guidelines": "x" * 50_001}, "50000"),
        ({"ahead": 101}, "ahead"),
        ({"undo_seconds": -1}, "undo_seconds"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        StreamSettings(classes=("a", "b"), **settings)
