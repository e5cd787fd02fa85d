"""The audit log: on its page, newest first, and as CSV."""

from __future__ import annotations

import csv
import io
from urllib.parse import quote

from tests.integration.server.harness import InProcess


def test_the_page_filters_and_pages_and_the_export_has_everything(server: InProcess) -> None:
    server.make_stream()
    server.make_stream("other")
    for n in range(60):
        server.add(f"i{n}")
    page = server.call("GET", "/audit").text
    assert page.count("items.add") == 50
    assert "stream.create" not in page
    assert "/audit?before=" in page
    older = page.partition("/audit?before=")[2].partition('"')[0]
    rest = server.call("GET", f"/audit?before={older}").text
    assert rest.count("items.add") == 10
    assert "From the latest" in rest
    made = server.call("GET", "/audit?action=stream.create&stream=other").text
    assert made.count("<td>stream.create</td>") == 1
    sent = server.call("GET", "/v1/audit/export")
    assert sent.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(sent.text)))
    listed = server.call("GET", "/v1/audit").json()
    assert [int(row["n"]) for row in rows] == [entry["n"] for entry in listed]
    assert [row["action"] for row in rows] == [entry["action"] for entry in listed]
    only = server.call("GET", "/v1/audit/export?stream=other").text
    assert [row["stream"] for row in csv.DictReader(io.StringIO(only))] == ["other"]


def test_the_export_holds_no_formulas(server: InProcess) -> None:
    server.make_stream()
    ids = ("=1+1", "+a1", "-a1", "@sum", "-1", "plain")
    for item in ids:
        server.add(item)
        server.call("DELETE", f"/v1/streams/posts/payloads/{quote(item)}")
    rows = list(csv.DictReader(io.StringIO(server.call("GET", "/v1/audit/export").text)))
    erased = [row["subject"] for row in rows if row["action"] == "item.erase"]
    assert erased == ["'=1+1", "'+a1", "'-a1", "'@sum", "-1", "plain"]
