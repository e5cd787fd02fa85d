"""Confidence as a finer label: what "sure" means is learned, not believed.

An estimator knows K classes and as many answers. A judge that says how sure it is gets two voices
instead, as labelers of their own: `judge (sure)` for the half of its answers with the higher
confidence, `judge (unsure)` for the others. Each has a competence and a confusion matrix, learned
from the labels like anybody's. So a judge that is always "99 % sure" and often wrong deceives
nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from venire.batch.voices import edge
from venire.connectors.judges.answers import Answer

__all__ = ["voices"]

Row = tuple[str, str, str]


def voices(answers: Iterable[tuple[str, str, Answer]]) -> list[Row]:
    """Rows (item, labeler, label) for `LabelTable.from_rows`, of (item, judge, answer).

    Judges without confidence, or with always the same, keep one voice.

    >>> rows = [("a", "j", Answer("spam", 0.9)), ("b", "j", Answer("ok", 0.6))]
    >>> voices([*rows, ("a", "k", Answer("ok"))])
    [('a', 'j (sure)', 'spam'), ('b', 'j (unsure)', 'ok'), ('a', 'k', 'ok')]
    """
    said = list(answers)
    known: dict[str, list[float]] = defaultdict(list)
    for _, judge, answer in said:
        if answer.confidence is not None:
            known[judge].append(answer.confidence)
    edges = {judge: edge(values) for judge, values in known.items()}
    return [
        (item, _voice(judge, answer, edges.get(judge)), answer.label)
        for item, judge, answer in said
    ]


def _voice(judge: str, answer: Answer, border: float | None) -> str:
    if border is None or answer.confidence is None:
        return judge
    return f"{judge} (sure)" if answer.confidence >= border else f"{judge} (unsure)"
