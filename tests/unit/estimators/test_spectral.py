import numpy as np
import pytest
from hypothesis import given

from tests.unit.estimators import reference
from tests.unit.estimators.worlds import PAPER_PANEL, Ints, label_matrices, plain, simulate
from venire.errors import InputError
from venire.estimators import agreement_moments, spectral_start
from venire.labels import LabelTable


@given(label_matrices(max_items=14, max_labelers=7))
def test_equals_the_plain_reference(drawn: tuple[Ints, int]) -> None:
    matrix, K = drawn
    table = LabelTable.from_matrix(matrix, K)
    for overlap in (1, 3, 10):
        N = agreement_moments(table, overlap)
        expected = reference.moments(plain(matrix), K, overlap)
        assert {tuple(map(int, ab)): N[tuple(ab)] for ab in np.argwhere(~np.isnan(N))} == expected
        np.testing.assert_allclose(
            spectral_start(table, min_overlap=overlap),
            reference.spectral(plain(matrix), K, overlap),
            atol=1e-12,
        )


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_finds_the_competences(classes: int, share: float) -> None:
    panel = np.array([0.9, 0.8, 0.75, 0.6, 0.85, 0.1])
    table, _ = simulate(panel, 40_000, seed=1, classes=classes, share=share)
    assert spectral_start(table, reach=1) == pytest.approx(panel, abs=0.03)


def test_erratum_1_the_literal_sign_rule_inverts_a_good_panel() -> None:
    table, _ = simulate(PAPER_PANEL, 2_000, seed=0)
    fixed = spectral_start(table)
    literal = spectral_start(table, sign_rule="literal")
    assert fixed.mean() == pytest.approx(PAPER_PANEL.mean(), abs=0.01)
    assert literal == pytest.approx(1 - fixed)
    expected = reference.spectral(plain(_matrix(table)), 2, literal=True)
    assert literal == pytest.approx(expected, abs=1e-12)


def _matrix(table: LabelTable) -> Ints:
    said = np.full((len(table.items), len(table.labelers)), -1)
    said[table.item, table.labeler] = table.said
    return said


def test_a_labeler_without_a_triple_gets_the_mean_of_the_others() -> None:
    table, _ = simulate([0.9, 0.8, 0.7, 0.8], 200, seed=0)
    said = _matrix(table)
    said[5:, 3] = -1
    start = spectral_start(LabelTable.from_matrix(said), reach=1)
    assert start[3] == pytest.approx(start[:3].mean())


def test_nothing_to_go_by_starts_from_majority() -> None:
    two = LabelTable.from_matrix([[0, 1], [1, 1]])
    assert spectral_start(two).tolist() == [0.75, 0.75]
    apart = LabelTable.from_matrix([[0, -1, -1], [-1, 2, -1], [-1, -1, 1]], classes=3)
    assert spectral_start(apart) == pytest.approx([2 / 3] * 3)


def test_refuses() -> None:
    table = LabelTable.from_matrix([[0, 1], [1, 1]])
    with pytest.raises(InputError, match="sign rule"):
        spectral_start(table, sign_rule="litteral")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="min_overlap"):
        agreement_moments(table, 0)
