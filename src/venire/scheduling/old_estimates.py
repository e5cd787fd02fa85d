"""Snapshots of earlier versions: what they kept of a panel, in today's form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.competence.stream_files import unpack
from venire.competence.streaming import Streaming

__all__ = ["labels_of_stream"]

Arrays = dict[str, NDArray[Any]]


def labels_of_stream(state: Arrays) -> Arrays:
    """The labels in the window of a stream that was saved, and what it thought of the labelers."""
    stream = unpack(Streaming, {name: array.copy() for name, array in state.items()})
    window = stream._core.window
    rows = [
        (item, int(window.labeler[e]), int(window.said[e]), 1)
        for item, place in stream._places.of.items()
        for e in range(window.first[place], window.first[place] + window.length[place])
    ]
    kept = {
        "stated": np.full(len(stream.labelers_), np.nan),
        "labels": np.array(sorted(rows), np.int64).reshape(-1, 4),
        "found.competences": stream.competences_,
    }
    if stream.model != "one-coin":
        kept |= {"found.confusions": stream.confusions_, "found.prior": stream.priors_}
    return kept
