import pytest

from venire import Bursty, Fixed, InputError, Poisson
from venire.simulation.world import arrivals_named, weights_named


def test_arrivals_by_name() -> None:
    assert arrivals_named("poisson:2.5") == Poisson(2.5)
    assert arrivals_named("fixed:3") == Fixed(3)
    assert arrivals_named("bursty:50:10:0.5") == Bursty(50, 10, 0.5)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("poison:5", "did you mean 'poisson'"),
        ("poisson:inf", "has rate 'inf'"),
        ("poisson:0", "arrival rate of 0"),
        ("fixed:1.5", "has items '1.5', expected a whole number"),
        ("bursty:5:0", "every 0 slots"),
    ],
)
def test_bad_arrivals(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        arrivals_named(text)


def test_weights() -> None:
    assert weights_named("3-5") == (3, 4, 5)
    assert weights_named("0.5, 2") == (0.5, 2)
    assert weights_named("1e-3") == (0.001,)


@pytest.mark.parametrize(
    "text", ["", "0-3", "5-3", "3-", "-3", "a", "1,,2", "nan", "inf", "1-99999999"]
)
def test_bad_weights(text: str) -> None:
    with pytest.raises(InputError, match="expected numbers above 0"):
        weights_named(text)
