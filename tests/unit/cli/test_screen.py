import json
from datetime import date
from typing import Any

import pytest

from venire.cli.shared import screen


def test_what_json_lacks_is_a_mistake_unless_a_command_says_how_to_write_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    record: dict[str, Any] = {"task": date(2026, 11, 19)}
    with pytest.raises(TypeError, match="date"):
        screen.show(record, [], True)
    screen.show(record, [], True, default=str)
    assert json.loads(capsys.readouterr().out) == {"task": "2026-11-19"}


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_lacks_is_a_mistake_unless_it_may_be_missing(
    number: float, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        screen.show({"rate": number}, [], True, default=str)
    screen.show({"rate": screen.finite(number)}, [], True)
    assert json.loads(capsys.readouterr().out) == {"rate": None}


def test_a_record_is_made_only_where_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    made: list[int] = []

    def record() -> list[int]:
        made.append(1)
        return made

    screen.show(record, ["a line"], False)
    assert (made, capsys.readouterr().out) == ([], "a line\n")
    screen.show(record, [], True)
    assert json.loads(capsys.readouterr().out) == [1]
