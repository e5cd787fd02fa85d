from typing import Any

import pytest

from venire.errors import InputError
from venire.estimators import Monitor, Step


def test_stops_when_nothing_moves() -> None:
    monitor = Monitor(tol=0.1, max_iter=5)
    monitor.report(-3.0, 0.5)
    assert not monitor.done
    monitor.report(-2.0, 0.1)
    assert (monitor.done, monitor.converged, monitor.reason) == (True, True, "converged")
    assert monitor.history == [Step(-3.0, 0.5), Step(-2.0, 0.1)]


def test_stops_after_max_iter() -> None:
    monitor = Monitor(tol=0.0, max_iter=2)
    monitor.report(-3.0, 0.5)
    monitor.report(-2.0, 0.4)
    assert (monitor.done, monitor.converged, monitor.reason) == (True, False, "max_iter")


def test_settling_in_the_last_iteration_is_convergence() -> None:
    monitor = Monitor(tol=0.1, max_iter=1)
    monitor.report(-3.0, 0.0)
    assert monitor.reason == "converged"


def test_no_iterations_at_all() -> None:
    assert Monitor(max_iter=0).reason == "max_iter"


def test_resumes_but_keeps_counting() -> None:
    monitor = Monitor(tol=0.1, max_iter=2)
    monitor.report(-3.0, 0.0)
    monitor.resume()
    assert not monitor.done
    monitor.report(-3.0, 1.0)
    monitor.resume()
    assert monitor.reason == "max_iter"


@pytest.mark.parametrize("bad", [{"tol": -1.0}, {"tol": float("nan")}, {"max_iter": -1}])
def test_refuses(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="expected"):
        Monitor(**bad)
