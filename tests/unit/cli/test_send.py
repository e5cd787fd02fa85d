"""`venire send`: rows become items, and those that are refused are found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.cli import main
from venire.cli.stream import _post
from venire.client import ServerError
from venire.errors import FileError, InputError
from venire.files.items import TOGETHER, Sent, read_sent, send_all


class Server:
    """Takes items, each once, and refuses requests with a bad one in them."""

    def __init__(self, bad: set[int]) -> None:
        self.bad, self.there = {str(n) for n in bad}, dict[str, Any]()

    def __call__(self, items: Any) -> dict[str, int]:
        assert 0 < len(items) <= TOGETHER
        wrong = next((item["id"] for item in items if item["id"] in self.bad), None)
        if wrong is not None:
            raise InputError(f"item {wrong} is odd")
        new = [item for item in items if item["id"] not in self.there]
        self.there |= {item["id"]: item for item in new}
        return {"created": len(new), "exists": len(items) - len(new)}


@given(st.integers(0, 1300), st.sets(st.integers(0, 1299), max_size=5))
def test_all_but_the_refused_are_sent_once(rows: int, bad: set[int]) -> None:
    server = Server(bad)
    sent = [Sent(n + 2, {"id": str(n)}) for n in range(rows)]
    done = send_all(iter(sent), server)
    refused = sorted(n for n in bad if n < rows)
    assert done["created"] == len(server.there) == rows - len(refused)
    assert [row["line"] for row in done["refused"]] == [n + 2 for n in refused]
    again = send_all(iter(sent), server)
    assert (again["created"], again["exists"]) == (0, rows - len(refused))


@pytest.mark.parametrize("status", [401, 403, 404, 422, 500])
def test_what_is_not_about_items_ends_it(status: int) -> None:
    class Refusing:
        def add_items(self, stream: str, items: Any) -> Any:
            raise ServerError(status, "no", "invalid request: body.line 1.id: no")

    client: Any = Refusing()
    rows = [Sent(2, {"id": "a"}), Sent(3, {"id": "b"})]
    if status == 422:
        done = send_all(iter(rows), lambda items: _post(client, "posts", items))
        assert [row["why"] for row in done["refused"]] == ["id: no", "id: no"]
        return
    with pytest.raises(ServerError):
        send_all(iter(rows), lambda items: _post(client, "posts", items))


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(
        '{"id": 7, "payload": {"text": "x"}, "weight": 2}\n'
        '{"id": "b", "text": "y", "eligible": ["ann"]}\n[1]\n{"text": "z"}\nnot json\n'
    )
    rows = list(read_sent(path))
    assert [row.item for row in rows[:2]] == [
        {"id": "7", "payload": {"text": "x"}, "weight": 2},
        {"id": "b", "payload": {"text": "y"}, "eligible": ["ann"]},
    ]
    assert [row.line for row in rows if row.item is None] == [3, 4, 5]
    assert ["expected an object" in row.why for row in rows[2:]] == [True, False, True]


def test_ids_of_the_content(tmp_path: Path) -> None:
    path = tmp_path / "posts.csv"
    path.write_text("text,label by hand\nBuy!,spam\nSee you,ok\nBuy!,spam\n")
    with pytest.raises(FileError, match=r"no column of ids .* \(--id\), or .* \(--hash-ids\)"):
        list(read_sent(path))
    ids = [row.item["id"] for row in read_sent(path, hashed=True) if row.item]
    assert ids[0] == ids[2] != ids[1]
    assert [row.item["id"] for row in read_sent(path, id="text") if row.item][1] == "See you"
    with pytest.raises(FileError, match="there is no 'nr', got text, label by hand"):
        list(read_sent(path, id="nr"))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ([], "no key was given: use --key"),
        (["--key", "k", "--id", "a", "--hash-ids"], "exclude each other"),
    ],
)
def test_options(more: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["send", "posts", "posts.csv", *more]) == 2
    assert says in capsys.readouterr().err


def test_an_interruption_says_what_arrived(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "posts.csv"
    path.write_text("id,text\n" + "".join(f"p{n},hello {n}\n" for n in range(1500)))

    class Interrupted:
        def __init__(self, *address: str) -> None:
            self.requests = 0

        def __enter__(self) -> Interrupted:
            return self

        def __exit__(self, *error: object) -> None: ...

        def stream(self, stream: str) -> None: ...

        def add_items(self, stream: str, items: Any) -> dict[str, int]:
            self.requests += 1
            if self.requests == 3:
                raise KeyboardInterrupt
            return {"created": len(items), "exists": 0}

    monkeypatch.setattr("venire.client.Client", Interrupted)
    assert main(["send", "posts", str(path), "--key", "k"]) == 130
    said = capsys.readouterr().err
    assert said == "1,000 items sent so far; the same command goes on\ninterrupted\n"


def test_a_row_that_is_refused_says_nothing_of_the_others() -> None:
    class Refusing:
        def add_items(self, stream: str, items: Any) -> Any:
            said = "item 'a' exists with different content: nothing in the request was accepted"
            raise ServerError(409, "conflict", said)

    client: Any = Refusing()
    with pytest.raises(InputError, match=r"exists with different content$"):
        _post(client, "posts", [{"id": "a"}])


def test_names_of_labelers_and_numbers(tmp_path: Path) -> None:
    path = tmp_path / "posts.csv"
    path.write_text("id,text,weight,eligible\na,Buy!,20,ann | bob\nb,See you,,\n")
    assert json.loads(json.dumps([row.item for row in read_sent(path)])) == [
        {"id": "a", "payload": {"text": "Buy!"}, "weight": 20.0, "eligible": ["ann", "bob"]},
        {"id": "b", "payload": {"text": "See you"}},
    ]
