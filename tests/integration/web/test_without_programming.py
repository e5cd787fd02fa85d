"""A stream without programming: settings as YAML or TOML, uploads, invitations, exports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.web.harness import InProcess, in_process

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
