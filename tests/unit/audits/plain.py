"""The bettor in plain words: one capital for each belief, moved by one audit after the other."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def capital(errors: Sequence[bool], M: int, size: int) -> Fraction | None:
    """What is made, against M wrong of `size`, of 1 spread over the beliefs below M.

    None if M wrong ones cannot give these errors.
    """
    parts = {Q: Fraction(1, max(M, 1)) for Q in range(M)}
    wrong = 0
    for seen, error in enumerate(errors):
        left = size - seen
        fair = Fraction(M - wrong, left) if error else Fraction(left - M + wrong, left)
        if fair <= 0:
            return None
        for Q in parts:
            told = Fraction(Q - wrong, left) if error else Fraction(left - Q + wrong, left)
            parts[Q] *= max(told, Fraction(0)) / fair
        wrong += error
    return sum(parts.values(), Fraction(0))


def upper_count(errors: Sequence[bool], size: int, alpha: Fraction) -> int:
    """The largest number of wrong ones that is possible and not lost 1/alpha against."""
    found = [(M, capital(errors, M, size)) for M in range(size + 1)]
    return max(M for M, K in found if K is not None and 1 / alpha > K)


def capital_of_process(errors: Sequence[bool], m: float, parts: int = 20_000) -> float:
    """The same against a rate, with as many beliefs evenly between 0 and m."""
    total = 0.0
    for i in range(parts):
        q = m * (i + 0.5) / parts
        made = 1.0
        for error in errors:
            made *= q / m if error else (1 - q) / (1 - m)
        total += made / parts
    return total
