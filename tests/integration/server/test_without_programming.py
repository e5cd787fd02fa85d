"""A stream without programming: settings as YAML or TOML, uploads, invitations, exports."""

from __future__ import annotations

import csv
import io
import itertools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.server.harness import InProcess, in_process, until
from venire.errors import InputError
from venire.files.items import read_sent, send_all
from venire.server.clock import ManualClock
from venire.server.store.maintenance.export import TABLES, write_table
from venire.tools.addresses import Piped

YAML = "name: yam\nclasses: [keep, remove]\nmin_labels: 2\nalarms:\n  queue: 500\n"
TOML = 'name = "tom"\nclasses = ["keep", "remove"]\n[alarms]\nqueue = 500\n'


@pytest.fixture(scope="module")
def server() -> Iterator[InProcess]:
    with in_process() as served:
        served.make_stream()
        yield served


def create(server: InProcess, text: str, kind: str) -> Any:
    headers = {"content-type": f"application/{kind}"}
    return server.call("POST", "/v1/streams", content=text.encode(), headers=headers)


@pytest.mark.parametrize(("text", "kind"), [(YAML, "yaml"), (TOML, "toml")])
def test_a_stream_is_made_of_a_text(server: InProcess, text: str, kind: str) -> None:
    made = create(server, text, kind)
    assert made.status_code == 201, made.text
    assert made.json()["settings"]["alarms"]["queue"] == 500
    assert create(server, text, kind).status_code == 201  # the same again changes nothing


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        ("name: x\nclasses: [a, b", "yaml", "stream.yaml, line 2: this is not YAML"),
        ("- a\n- b", "yaml", "got a list, expected settings such as name: posts"),
        ("name: x\nclasses: [yes, no]", "yaml", "classes.0: Input should be a valid string"),
        ("name: x\nclasses: [a, b]\nmin_label: 1", "yaml", "min_label: unknown field"),
        ("name: x\nclasses: &c [a, b]\npanel: *c", "yaml", "*c is an alias"),
        ("name = x", "toml", "this is not TOML"),
        ("classes: [a, b]", "yaml", "name: Field required"),
        ("#" * 70_000, "yaml", "expected at most 65,536"),
    ],
)
def test_what_is_wrong_with_a_text_is_said_and_nothing_is_made(
    server: InProcess, text: str, kind: str, why: str
) -> None:
    refused = create(server, text, kind)
    assert refused.status_code in (413, 422)
    assert why in refused.json()["error"]["message"]
    assert "x" not in [one["name"] for one in server.call("GET", "/v1/streams").json()]


def test_the_form_shows_the_settings_of_a_template(server: InProcess) -> None:
    page = server.call("GET", "/new-stream?template=grades").text
    assert 'name="alarms.queue" data-kind="number" type="number"' in page
    assert "1\n2\n3\n4\n5</textarea>" in page
    assert server.call("GET", "/new-stream?template=none").status_code == 200


# items by upload


def upload(server: InProcess, text: str | bytes, kind: str = "text/csv", **asked: Any) -> Any:
    content = text.encode() if isinstance(text, str) else text
    headers = {"content-type": kind}
    path = "/v1/streams/posts/upload"
    return server.call("POST", path, content=content, headers=headers, params=asked)


def test_rows_are_taken_once_and_those_that_are_wrong_are_listed(server: InProcess) -> None:
    text = "post_id;text;weight\n1;Buy!;20\n;nothing;\n3;too;many;fields\n4;heavy;x\n"
    text += "5;light;-1\n6;ok;\n"
    first = upload(server, text).json()
    assert (first["created"], first["exists"]) == (2, 0)
    assert [(row["line"], row["id"]) for row in first["refused"]] == [
        (3, None),
        (4, None),
        (5, None),
        (6, "5"),
    ]
    assert first["refused"][3]["why"] == "weight: Input should be greater than 0"
    again = upload(server, text).json()
    assert (again["created"], again["exists"], len(again["refused"])) == (0, 2, 4)
    other = upload(server, "post_id,text\n1,Other\n7,new\n").json()
    assert (other["created"], other["exists"]) == (1, 0)
    assert other["refused"] == [
        {"line": 2, "id": "1", "why": "item '1' exists with different content"}
    ]
    item = server.call("GET", "/v1/streams/posts/items/1").json()
    assert (item["payload"], item["weight"]) == ({"text": "Buy!"}, 20)


def test_a_piece_knows_its_place_in_the_file(server: InProcess) -> None:
    piece = upload(server, "id,text\np1,a\n,b\n", line=100).json()
    assert [row["line"] for row in piece["refused"]] == [101]
    broken = upload(server, 'id,text\np2,"a\n', line=100).json()["error"]["message"]
    assert broken.startswith("the file, line 100: not CSV")
    lines = upload(server, '{"id": "p3"}\nno\n', "application/x-ndjson", line=7).json()
    assert [row["line"] for row in lines["refused"]] == [8]
    wide = upload(server, "sep=;\nid;text\np4;é\n;x\n".encode("utf-16"), line=50).json()
    assert (wide["created"], [row["line"] for row in wide["refused"]]) == (1, [51])


def test_ids_are_found_named_or_made(server: InProcess) -> None:
    text = "word,text\na1,x\na2,y\n"
    told = upload(server, text).json()["error"]["message"]
    assert "no column of ids among word, text" in told
    assert upload(server, text, id="word").json()["created"] == 2
    assert upload(server, text, hash_ids=True).json()["created"] == 2
    assert upload(server, text, hash_ids=True).json()["exists"] == 2
    assert upload(server, text, id="word", hash_ids=True).status_code == 422
    assert upload(server, b"PK\x03\x04").json()["error"]["message"].startswith("the file: this is")
    assert upload(server, text, "text/plain").status_code == 415


def test_an_upload_is_as_long_as_the_server_takes(server: InProcess) -> None:
    with in_process(max_batch=3) as small:
        small.make_stream()
        told = upload(small, "id\n" + "\n".join("abcd") + "\n")
        assert (told.status_code, told.json()["error"]["code"]) == (413, "batch_too_large")
        small.call("POST", "/v1/streams/posts/close")
        closed = upload(small, "id\na\n")
        assert (closed.status_code, closed.json()["error"]["code"]) == (409, "invalid_state")


@given(
    rows=st.lists(
        st.tuples(st.text("ab", min_size=1, max_size=2), st.text('a,"\n;', max_size=6)), max_size=12
    )
)
@settings(max_examples=25, deadline=None)
def test_any_rows_end_up_as_items_or_refused(rows: list[tuple[str, str]]) -> None:
    """By a server that is a dictionary: the first of an id is taken, another content refused."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerows([("id", "text"), *rows])
    file = Piped("upload", "the file", "upload.csv", "", text.getvalue().encode())
    there: dict[str, Any] = {}

    def post(items: Any) -> dict[str, int]:
        clash = [
            x for n, x in enumerate(items) if any(x["id"] == y["id"] and x != y for y in items[:n])
        ]
        clash += [x for x in items if there.get(x["id"], x) != x]
        if clash:
            raise InputError(f"{clash[0]['id']} differs")
        new = {item["id"]: item for item in items if item["id"] not in there}
        there.update(new)
        return {"created": len(new), "exists": len(items) - len(new)}

    done = send_all(read_sent(file), post)
    expected: dict[str, str] = {}
    refused = 0
    for id, said in rows:
        refused += expected.setdefault(id, said.strip()) != said.strip()
    assert {id: item["payload"]["text"] for id, item in there.items()} == expected
    assert len(done["refused"]) == refused
    assert done["created"] == len(expected)


# labelers by invitation


def invite(server: InProcess, stream: str = "posts", **asked: Any) -> Any:
    made = server.call("POST", f"/v1/streams/{stream}/invitations", json=asked)
    assert made.status_code == 201, made.text
    return made.json()


def join(server: InProcess, token: str, stream: str = "posts", **more: str) -> Any:
    server.http.cookies.clear()
    form = {"token": token, **more}
    return server.http.post(f"/join/{stream}", data=form, follow_redirects=False)


def me(server: InProcess, joined: Any) -> Any:
    assert joined.status_code == 303, joined.text
    assert joined.headers["location"] == "/work?stream=posts"
    return server.http.get("/v1/me").json()


def test_who_is_invited_labels_under_that_name_until_it_is_revoked(server: InProcess) -> None:
    made = invite(server, labeler="Ida")
    token, id = made["token"], made["invitation"]["id"]
    assert made["path"] == f"/join/posts#{token}"
    looked = join(server, token)
    assert (looked.status_code, "Ida" in looked.text) == (200, True)
    assert "set-cookie" not in looked.headers  # to look does not use it up
    for _ in range(2):  # it signs in again, by the same key
        who = me(server, join(server, token, accept="yes", name="Eve"))
        assert (who["labeler"], who["name"], who["role"]) == ("Ida", "Ida", "labeler")
    assert "Ida" in server.http.get("/work?stream=posts").text
    assert len([k for k in server.call("GET", "/v1/keys").json() if k["labeler"] == "Ida"]) == 1
    [kept] = server.call("GET", "/v1/streams/posts/invitations").json()
    assert kept["used_at"] is not None
    assert token not in str(kept)
    gone = server.call("DELETE", f"/v1/streams/posts/invitations/{id}", headers={"cookie": ""})
    assert gone.status_code == 200
    assert server.http.get("/v1/me").status_code == 401
    assert join(server, token, accept="yes").status_code == 401
    assert server.call("DELETE", f"/v1/streams/posts/invitations/{id}").status_code == 404
    done = [row["action"] for row in server.call("GET", "/v1/audit").json()]
    assert [x for x in done if x.startswith("invitation")] == [
        "invitation.create",
        "invitation.use",
        "invitation.use",
        "invitation.revoke",
    ]


def test_a_link_for_once_works_once(server: InProcess) -> None:
    token = invite(server, once=True)["token"]
    assert me(server, join(server, token, accept="yes", name="Olga"))["labeler"] == "Olga"
    assert join(server, token, accept="yes", name="Olga").status_code == 401
    assert join(server, token).status_code == 401
    assert join(server, "x" * 43).status_code == 401
    assert join(server, token, "none").status_code == 401  # whether there is such a stream or not


@pytest.mark.parametrize("name", ["", "  ", "ann", " ANN ", "Trudy", "x" * 201, "a\x00b"])
def test_a_name_is_chosen_that_nobody_has(server: InProcess, name: str) -> None:
    """Trudy is trusted elsewhere: by her name one would make gold."""
    server.make_stream("other", panel=[{"id": "Trudy", "trusted": True}], learning="while-serving")
    token = invite(server)["token"]
    refused = join(server, token, accept="yes", name=name)
    assert refused.status_code in (409, 422)
    assert "choose another name" in refused.text or "write yours" in refused.text
    assert me(server, join(server, token, accept="yes", name=f"Free {hash(name)}"))


def test_an_invitation_opens_a_closed_panel_and_ends_with_its_days() -> None:
    clock = ManualClock()
    with in_process(clock) as server:
        server.make_stream(open_panel=False, learning="while-serving")
        token = invite(server, days=1, labeler="Nora")["token"]
        me(server, join(server, token, accept="yes"))
        panel = server.call("GET", "/v1/streams/posts").json()["settings"]["panel"]
        assert panel[-1]["id"] == "Nora"
        assert server.http.get("/v1/streams/posts/next").status_code in (200, 204)
        clock.advance(86_401)
        assert server.http.get("/v1/me").status_code == 401
        assert join(server, token, accept="yes").status_code == 401
        assert server.call("GET", "/v1/streams/posts/invitations").json() == []


def test_items_wait_for_who_was_invited_by_name_until_the_invitation_ends() -> None:
    clock = ManualClock()
    with in_process(clock) as server:
        server.make_stream(panel=[], learning="while-serving", min_labels=2, min_confidence=0.9)
        server.call("POST", "/v1/streams/posts/items", json=[{"id": "a", "payload": "a"}])
        first, _ = (invite(server, days=1, labeler=name) for name in ("Nora", "Olaf"))
        assert invite(server)["token"]  # without a name nobody is waited for
        me(server, join(server, first["token"], accept="yes"))
        body = [{"item": "a", "labeler": "Nora", "said": "ok"}]
        assert server.call("POST", "/v1/streams/posts/labels", json=body).status_code == 200

        def left() -> int:
            clock.advance(5)
            return int(server.call("GET", "/v1/streams/posts/insights").json()["exits"])

        assert [left() for _ in range(3)] == [0, 0, 0]
        clock.advance(86_401)
        assert server.http.portal is not None
        server.http.portal.call(server.service.invitations.check)
        until(lambda: left() == 1)
        panel = server.call("GET", "/v1/streams/posts").json()["settings"]["panel"]
        assert {one["id"]: one["retired"] for one in panel} == {"Nora": False, "Olaf": True}
        [open_one] = server.call("GET", "/v1/streams/posts/invitations").json()
        assert open_one["labeler"] is None


def test_the_invitations_go_with_their_stream() -> None:
    with in_process() as server:
        server.make_stream()
        token = invite(server)["token"]
        storage = server.service.runtime.storage
        assert [token in value for value in storage.metas("invitation posts ").values()] == [False]
        server.call("POST", "/v1/streams/posts/close")
        server.call("DELETE", "/v1/streams/posts")
        assert storage.metas("invitation posts ") == {}
        server.make_stream()
        assert join(server, token, accept="yes", name="Late").status_code == 401


# exports


def test_what_is_exported_is_what_the_command_writes(tmp_path: Path) -> None:
    with in_process() as server:
        server.make_stream(slot_seconds=0.05, max_overlap=2, min_labels=2)
        rows = [{"id": "=1+1", "payload": "@evil"}, {"id": "b", "payload": {"text": "b"}}]
        server.call("POST", "/v1/streams/posts/items", json=rows)
        said = [("=1+1", "ann", "spam"), ("=1+1", "bob", "spam"), ("b", "ann", "ok")]
        labels = [{"item": i, "labeler": w, "said": s} for i, w, s in said]
        server.call("POST", "/v1/streams/posts/labels", json=labels)
        until(lambda: server.call("GET", "/v1/streams/posts/insights").json()["exits"] == 1)

        def get(what: str, format: str = "csv", role: str = "viewer", **more: Any) -> Any:
            asked = {"what": what, "format": format, **more}
            return server.call("GET", "/v1/streams/posts/export", role, params=asked)

        labels_csv = get("labels")
        assert (
            labels_csv.headers["content-disposition"] == 'attachment; filename="posts-labels.csv"'
        )
        assert sorted(labels_csv.text.splitlines()[1:]) == [
            "'=1+1,ann,spam",
            "'=1+1,bob,spam",
            "b,ann,ok",
        ]
        for what, format in itertools.product(TABLES, ("csv", "jsonl", "parquet")):
            path = tmp_path / f"{what}.{format}"
            write_table(server.service.runtime.storage, "posts", what, path)
            assert get(what, format).content == path.read_bytes(), (what, format)
        verdicts = [json.loads(line) for line in get("verdicts", "jsonl").text.splitlines()]
        assert [row["task"] for row in verdicts] == ["=1+1"]
        shares = get("verdicts", "jsonl", probabilities=True).text
        assert "p(spam)" in json.loads(shares.splitlines()[0])
        assert get("labels", role="reviewer").status_code == 403
        assert get("log").status_code == 422
        assert server.call("GET", "/v1/streams/none/export").status_code == 404
        assert list(Path(tempfile.gettempdir()).glob("venire-export-*")) == []
