"""The order of the tests loses none, and starts those that wait."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.ordering import WAITING, waiting_first

FILES = st.sampled_from([*WAITING, "tests/a.py", "tests/b.py", "src/venire/c.py"])


@given(st.lists(FILES), st.integers(1, 6))
def test_each_test_is_there_once(files: list[str], processes: int) -> None:
    tests = list(enumerate(files))
    ordered = waiting_first(tests, lambda test: test[1], processes)
    assert sorted(ordered) == tests
    others = [test for test in ordered if test[1] not in WAITING]
    assert others == sorted(others)


def test_the_first_half_of_the_processes_begin_with_what_waits() -> None:
    files = [f"tests/{n}.py" for n in range(38)] + [WAITING[1], WAITING[0]]
    for processes in (2, 3):
        ordered = waiting_first(files, str, processes)
        assert ordered[:3] == [WAITING[0], WAITING[1], files[0]]
    ordered = waiting_first(files, str, 4)  # stretches of ten
    assert [ordered[k] for k in (0, 1, 10, 11)] == [WAITING[0], files[0], WAITING[1], files[9]]


def test_the_files_exist() -> None:
    assert all((Path(__file__).parents[2] / file).is_file() for file in WAITING)
