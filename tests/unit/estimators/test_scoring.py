import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire import InputError
from venire.estimators.base import right_shares
from venire.estimators.metrics import error_rate, expected_calibration_error


def plain_share(q: list[float], right: int) -> float:
    top = [k for k, value in enumerate(q) if value == max(q)]
    return 1 / len(top) if right in top else 0.0


ROWS = st.lists(
    st.tuples(st.lists(st.integers(0, 3), min_size=3, max_size=3), st.integers(0, 2)), min_size=1
)


@given(ROWS)
def test_a_tie_counts_as_its_share(rows: list[tuple[list[int], int]]) -> None:
    q = np.array([row for row, _ in rows], float)
    right = np.array([k for _, k in rows])
    expected = [plain_share(row, k) for row, k in zip(q.tolist(), right, strict=True)]
    assert right_shares(q, right).tolist() == pytest.approx(expected)
    assert error_rate(q, right) == pytest.approx(1 - np.mean(expected))


def test_items_of_unknown_truth_do_not_count() -> None:
    assert error_rate([[1, 0], [0, 1], [1, 0]], [0, -1, 1]) == 0.5


def test_a_class_that_nobody_named_is_never_right() -> None:
    assert error_rate([[0.5, 0.5]], [2]) == 1.0


def test_rounding_does_not_break_a_tie() -> None:
    assert right_shares([[1 / 3, 1 / 3 + 1e-16, 1 / 3 - 1e-16]], [0]).tolist() == [1 / 3]


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50))
def test_calibration_error_equals_the_plain_sum(rows: list[tuple[float, bool]]) -> None:
    sure, hit = (np.array(column, float) for column in zip(*rows, strict=True))
    total = 0.0
    for b in range(10):
        low, high = b / 10, (b + 1) / 10
        inside = ((sure > low) | ((b == 0) & (sure == 0))) & (np.ceil(sure * 10) <= b + 1)
        inside &= (np.ceil(sure * 10) > b) | ((b == 0) & (sure == 0))
        if inside.any():
            total += abs(hit[inside].mean() - sure[inside].mean()) * inside.sum()
        assert high > low
    assert expected_calibration_error(sure, hit) == pytest.approx(total / len(rows), abs=1e-12)


def test_perfect_calibration_and_none() -> None:
    assert expected_calibration_error([1.0, 1.0], [1, 1]) == 0
    assert expected_calibration_error([1.0, 1.0], [0, 0]) == 1


def test_bad_shapes() -> None:
    with pytest.raises(InputError, match="expected items x classes"):
        right_shares([0.5, 0.5], [0])
    with pytest.raises(InputError, match="no item has a known truth"):
        error_rate([[1, 0]], [-1])
    with pytest.raises(InputError, match="expected equal numbers"):
        expected_calibration_error([0.5], [1, 0])
