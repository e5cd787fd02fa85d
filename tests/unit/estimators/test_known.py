import subprocess
import sys
from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.estimators.worlds import Ints, label_matrices
from venire.errors import InputError
from venire.estimators import Known
from venire.estimators.base import TIE
from venire.labels import LabelTable
from venire.model import Labeler
from venire.paper.accuracy import posterior, verdict


@given(label_matrices(), st.data())
def test_equals_the_rule_for_one_item(drawn: tuple[Ints, int], data: st.DataObject) -> None:
    matrix, K = drawn
    n = matrix.shape[1]
    p = np.array(data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    known = Known(dict(enumerate(p))).fit(LabelTable.from_matrix(matrix, K))
    for s, row in enumerate(matrix):
        labels, of = row[row >= 0].tolist(), p[row >= 0]
        np.testing.assert_allclose(known.posteriors_[s], posterior(labels, of, K), atol=1e-12)
        on_top = np.flatnonzero(known.posteriors_[s] >= known.posteriors_[s].max() - TIE)
        if len(on_top) == 1:  # eq. 1 gives a tie to the later class, a table draws
            assert known.labels_[s] == verdict(labels, of, K)
        elif labels:
            assert known.labels_[s] in on_top
    assert np.isfinite(known.log_likelihood_)


def test_log_likelihood_by_hand() -> None:
    known = Known({0: 0.9, 1: 0.6}).fit(LabelTable.from_matrix([[0, 1]]))
    assert known.log_likelihood_ == pytest.approx(np.log((0.9 * 0.4 + 0.1 * 0.6) / 2))


def test_takes_labelers() -> None:
    table = LabelTable.from_rows([("a", "ann", "x"), ("a", "bob", "y")])
    known = Known([Labeler("bob", 0.6), Labeler("ann", 0.9), Labeler("eve", 0.7)]).fit(table)
    assert known.skills_ == {"ann": 0.9, "bob": 0.6}
    assert known.probas_["a"]["x"] == pytest.approx(0.9 * 0.4 / (0.9 * 0.4 + 0.1 * 0.6))
    assert (known.n_iter_, known.converged_, known.history_) == (0, True, ())


@pytest.mark.parametrize("bad", [{"ann": 0.9}, {"ann": 0.9, "bob": 1.2}, [Labeler("bob")]])
def test_refuses(bad: dict[Hashable, float] | list[Labeler]) -> None:
    table = LabelTable.from_rows([("a", "ann", "x"), ("a", "bob", "y")])
    with pytest.raises(InputError, match="expected"):
        Known(bad).fit(table)


def test_results_before_fit_say_so() -> None:
    with pytest.raises(AttributeError, match="call fit"):
        _ = Known({}).labels_
    assert not hasattr(Known({}), "skills_")
    with pytest.raises(AttributeError, match="no attribute 'skils'"):
        _ = Known({}).skils  # type: ignore[attr-defined]


def test_needs_neither_numba_nor_scipy() -> None:
    code = (
        "import sys; from venire.estimators import Known;"
        "import venire.paper.lemmas;"
        "print([m for m in ('numba', 'scipy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
