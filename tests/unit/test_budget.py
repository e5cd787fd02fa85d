from typing import Any

import pytest

from venire import Budget, InputError, Labeler


@pytest.mark.parametrize(
    "limits",
    [{}, {"money": -1}, {"money": float("nan")}, {"labels": 1.5}, {"labels": float("inf")}],
)
def test_a_budget_that_limits_nothing_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="expected"):
        Budget(**limits)


def test_what_is_left_is_never_less_than_nothing() -> None:
    assert Budget(money=5, labels=10).left(7.5, 4) == Budget(money=0, labels=6)


@pytest.mark.parametrize("price", [-0.1, float("nan"), float("inf"), 1e10])
def test_a_label_costs_something_finite(price: float) -> None:
    with pytest.raises(InputError, match="expected what one label costs"):
        Labeler("ann", price=price)
