"""One-coin on real label sets, against the errors measured with other programs."""

import pytest

from tests.unit.estimators.worlds import real
from venire.estimators import OneCoin


@pytest.mark.parametrize(
    ("name", "percent"),
    [("bluebird", 27.78), ("rte", 7.5), ("dog", 17.0), ("web", 16.0), ("product", 7.2)],
)
def test_error_of_the_uniform_prior_one_coin(name: str, percent: float) -> None:
    table, truth = real(name)
    labels = OneCoin(prior=None).fit_predict(table)
    wrong = [labels[task] != truth[task] for task in table.items if task in truth]
    assert 100 * sum(wrong) / len(wrong) == pytest.approx(percent, abs=0.1)
