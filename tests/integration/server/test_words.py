"""The description of the API lists the words that `venire.model` has, and no others."""

from __future__ import annotations

from enum import StrEnum

import pytest

from tests.integration.server.harness import InProcess
from venire import model

#: Where a word stands in the description: schema and field.
FIELDS = [
    ("ExitView", "reason", model.ExitReason),
    ("ItemView", "status", model.ItemStatus),
    ("StreamView", "status", model.StreamStatus),
    ("DeliveryView", "status", model.DeliveryStatus),
    ("KeyView", "role", model.Role),
    ("KeyBody", "role", model.Role),
]


@pytest.mark.parametrize(("schema", "field", "words"), FIELDS)
def test_the_description_lists_every_word(
    server: InProcess, schema: str, field: str, words: type[StrEnum]
) -> None:
    schemas = server.call("GET", "/openapi.json").json()["components"]["schemas"]
    described = schemas[schema]["properties"][field]
    described = described.get("anyOf", [described])[0]  # it may be null
    name = described["$ref"].rpartition("/")[2]
    assert schemas[name]["enum"] == list(words)


def test_the_description_lists_why_there_is_no_work(server: InProcess) -> None:
    paths = server.call("GET", "/openapi.json").json()["paths"]
    nothing = paths["/v1/streams/{stream}/next"]["get"]["responses"]["204"]
    assert nothing["headers"]["Venire-Reason"]["schema"]["enum"] == list(model.NoWork)


def test_the_reference_page_shows_the_roles(server: InProcess) -> None:
    assert " | ".join(model.Role) in server.call("GET", "/docs").text
