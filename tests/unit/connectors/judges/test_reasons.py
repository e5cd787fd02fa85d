"""Rationales, references, answers of its own, "not sure", and files in prompts."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.judge_server import judging, serving
from tests.unit.connectors.judges.test_judge import ITEM, ask, config
from venire.batch import label
from venire.batch.asking import close_labelers
from venire.connectors.judges import Answer, Cache, Judge, NoLabel, NotSure
from venire.connectors.judges.panel import judges_of
from venire.connectors.judges.prompt import NOT_SURE, Media
from venire.model import Budget


def png(shade: int = 0) -> bytes:
    """A picture of one pixel."""

    def chunk(name: bytes, data: bytes) -> bytes:
        checked = name + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    data = zlib.compress(bytes([0, shade]))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(*part) for part in ((b"IHDR", head), (b"IDAT", data), (b"IEND", b""))
    )


def _asked(source: str) -> tuple[list[Any], int]:
    part = {"type": "image_url", "image_url": {"url": source}}
    return [{"role": "user", "content": [part]}], 0


class Pictures:
    """A server of files by path; `moved` redirects."""

    def __init__(self, **files: bytes) -> None:
        self.files, self.url, self.asked = files, "", list[str]()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        name = scope["path"].strip("/")
        self.asked.append(name)
        body = self.files.get(name)
        status = 302 if name == "moved" else 404 if body is None else 200
        headers = [(b"location", b"/cat")] if name == "moved" else []
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body or b""})


def test_a_rationale_is_asked_for_read_and_cached(tmp_path: Path) -> None:
    with judging() as server:
        for run in range(2):
            cache = Cache(tmp_path / "c")
            judge = Judge(config(server, rationale=True), cache)
            (answer,) = ask(judge, ITEM)
            cache.close()
            assert isinstance(answer, Answer)
            assert answer.rationale == "It reads: Spam? BUY now"
            assert judge.usage.requests == 1 - run
    schema = server.bodies[0]["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["rationale", "label"]
    assert "first why" in server.bodies[0]["messages"][0]["content"]


def test_a_rationale_is_in_the_journal_the_labels_and_the_report(tmp_path: Path) -> None:
    posts = {f"p{n}": {"text": f"{'BUY' if n % 2 else 'see'} {n}"} for n in range(12)}
    with judging() as server:
        for _ in range(2):  # the second time out of the journal
            judge = Judge(config(server, rationale=True, logprobs=True))
            done = label(posts, [judge], Budget(labels=12), journal=tmp_path / "j")
            close_labelers([judge])
    assert len(server.bodies) == 12
    columns = done.bought()
    assert list(columns) == ["task", "worker", "label", "confidence", "rationale"]
    assert columns["rationale"][0] == "It reads: Spam? see 0"
    (vote,) = done.explained(1)[0]["votes"]
    assert vote["labeler"] == "strict"
    assert "It reads: Spam? see 0" in done.html()


def test_not_sure_is_an_answer_that_is_not_asked_for_again() -> None:
    with judging(says={"maybe": NOT_SURE}) as server:
        judge = Judge(config(server, not_sure=True))
        fault, same, answer = ask(judge, {"text": "maybe"}, {"text": "maybe 2"}, ITEM)
    assert isinstance(fault, NotSure)
    assert isinstance(same, NotSure)
    assert isinstance(answer, Answer)
    assert fault.cost == pytest.approx(0.0009)
    assert (judge.usage.requests, judge.usage.unsure) == (3, 2)


def test_without_the_key_not_sure_is_no_class() -> None:
    with judging(says={"maybe": NOT_SURE}) as server:
        (fault,) = ask(Judge(config(server)), {"text": "maybe"})
    assert type(fault) is NoLabel


def test_a_reference_is_shown_where_there_is_one() -> None:
    with judging() as server:
        judge = Judge(config(server, reference="right", max_parallel=1))
        ask(judge, {"text": "x", "right": "42"}, {"text": "y"})
        ask(Judge(config(server, reference="text")), {"text": "z"})  # the prompt uses it
    said = [body["messages"][-1]["content"] for body in server.bodies]
    assert said == [
        "Spam? x\n\nA correct answer, for reference:\n42",
        "Spam? y",
        "Spam? z",
    ]


def test_a_judge_answers_each_question_once_before_it_sees_a_reply() -> None:
    items = [{"question": f"Q{n % 2}", "text": f"BUY {n}"} for n in range(6)]
    with judging() as server:
        judge = Judge(config(server, answer_first="Answer: {{ question }}"))
        said = ask(judge, *items)
    asked = [body["messages"][-1]["content"] for body in server.bodies]
    assert sorted(asked[:2]) == ["Answer: Q0", "Answer: Q1"]
    assert len(asked) == 8
    assert all("BUY" not in text for text in asked[:2])
    assert "response_format" not in server.bodies[0]
    assert all("Your own answer, given before you saw this one:\n{" in text for text in asked[2:])
    assert sum(one.cost for one in said) == pytest.approx(8 * 0.0009)


def test_files_addresses_and_data_urls_are_sent_as_content(tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(png())
    expected = f"data:image/png;base64,{base64.b64encode(png()).decode()}"
    pictures = Pictures(cat=png())
    with judging() as server, serving(pictures):
        sources = ["cat.png", f"{pictures.url}/cat", f"{pictures.url}/moved", expected]
        judge = Judge(
            config(
                server,
                prompt="{{ photo | image('low') }} BUY?",
                files=str(tmp_path),
                fetch_private=True,
                max_parallel=1,
            )
        )
        said = ask(judge, *({"photo": source} for source in sources))
    assert all(isinstance(one, Answer) for one in said), said
    assert judge._key(*_asked("cat.png")) == judge._key(*_asked(expected))  # the same content
    for body in server.bodies:
        image, text = body["messages"][-1]["content"]
        assert image == {"type": "image_url", "image_url": {"url": expected, "detail": "low"}}
        assert text == {"type": "text", "text": " BUY?"}


def test_sounds_are_sent_as_such(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF\0\0\0\0WAVEfmt ")
    with judging() as server:
        settings = config(server, prompt="{{ clip | audio }}", files=str(tmp_path))
        (answer,) = ask(Judge(settings), {"clip": "a.wav"})
    assert isinstance(answer, Answer)
    (part,) = server.bodies[0]["messages"][-1]["content"]
    assert part["input_audio"]["format"] == "wav"


BAD = {
    "../secret.png": "expected one below",
    "/etc/passwd": "expected one below",
    "none.png": r"cannot be read \(no such file",
    "notes.txt": "is neither an image",
    "a.wav": "is audio/wav, expected an image",
    "data:text/plain;base64,aGVsbG8=": "is neither an image",
    "data:image/png,xyz": "expected data:image/png;base64",
    "http://127.0.0.1:9/x.png": "is not a public address: it is fetched only with fetch_private",
    "http://169.254.169.254/latest/meta-data": "is not a public address",
}


@pytest.mark.parametrize(("source", "message"), BAD.items())
def test_what_may_not_be_sent_is_not(source: str, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (tmp_path / "secret.png").write_bytes(png())
    (folder / "notes.txt").write_text("root:x:0:0")
    (folder / "a.wav").write_bytes(b"RIFF\0\0\0\0WAVEfmt ")
    with judging() as server:
        settings = config(server, prompt="{{ photo | image }}", files=str(folder))
        judge = Judge(settings)
        (fault,) = ask(judge, {"photo": source})
    assert isinstance(fault, NoLabel)
    assert not server.bodies
    assert re.search(message, str(fault)), fault


def test_what_is_too_large_or_gone_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venire.connectors.judges.prompt.MOST", 100)
    pictures = Pictures(cat=png() * 9)
    with judging() as server, serving(pictures):
        settings = config(server, prompt="{{ photo | image }}", fetch_private=True)
        said = ask(Judge(settings), *({"photo": f"{pictures.url}/{n}"} for n in ("cat", "no")))
    assert [type(one) for one in said] == [NoLabel, NoLabel]
    assert "longer than 100 bytes" in str(said[0])
    assert "answers with 404" in str(said[1])
    assert not server.bodies


def test_an_address_is_fetched_once_for_all_judges(tmp_path: Path) -> None:
    pictures = Pictures(cat=png())
    with judging() as server, serving(pictures):
        media = Media(None, fetch_private=True)
        for name in ("a", "b"):
            settings = config(server, id=name, model=name, prompt="{{ photo | image }}")
            # one event loop each, as in a batch: what was fetched is kept
            ask(Judge(settings, None, media), {"photo": f"{pictures.url}/cat"})
    assert pictures.asked == ["cat"]
    assert len(server.bodies) == 2


def test_no_text_of_an_item_becomes_a_file(tmp_path: Path) -> None:
    with judging() as server:
        judge = Judge(config(server, prompt="{{ text }}"))
        (answer,) = ask(judge, {"text": "BUY {{ 'x' | image }} \0abc:0\0"})
    assert isinstance(answer, Answer)
    assert server.bodies[0]["messages"][-1]["content"] == "BUY {{ 'x' | image }} \0abc:0\0"


def test_files_are_beside_the_file_of_judges(tmp_path: Path) -> None:
    text = "classes: [a, b]\nprompt: x\nbase_url: http://127.0.0.1:9/v1\nfiles: pictures\n"
    (tmp_path / "judges.yaml").write_text(text + "judges: [{id: a, model: m}]\n")
    (judge,) = judges_of(tmp_path / "judges.yaml", Cache(), "elsewhere")
    assert judge.config.files == str(tmp_path / "pictures")
