"""docs/rules.md, command by command, as a newcomer would paste it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.acceptance.newcomer import Newcomer, blocks_of

PAGE = (Path(__file__).parent.parent.parent / "docs" / "rules.md").read_text()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_page(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    try:
        for language, block in blocks_of(PAGE):
            newcomer.paste(language, block)
    finally:
        newcomer.close()
    (told,) = [text for text in newcomer.said if '"enough"' in text]
    exit, explained = told.splitlines()
    assert json.loads(exit)["reason"] == "leave_on"
    assert json.loads(exit)["verdict"] == "illegal"
    assert json.loads(explained)["enough"]["labeler"] == "ann"
    (told,) = [text for text in newcomer.said if '"routed"' in text]
    (again,) = [text for text in newcomer.said if '"itself"' in text]
    itself = json.loads(again[again.index('{"stream":"posts","labels"') :])["itself"]
    assert [(one["labeler"], one["items"], one["same"]) for one in itself] == [("ann", 1, 0)]
    leased, end = json.JSONDecoder().raw_decode(told)
    item = json.loads(told[end:])
    assert (leased["item"], leased["payload"]) == ("post-2", {"text": "two"})
    assert [route["target"] for route in item["routed"]] == ["experts"]
