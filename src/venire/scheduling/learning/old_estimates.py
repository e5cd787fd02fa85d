"""Snapshots of earlier versions, converted to the current form."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.estimators.streaming.persistence import old_labels

__all__ = ["labels_of_stream"]

Arrays = dict[str, NDArray[Any]]


def labels_of_stream(state: Arrays) -> Arrays:
    """The labels in the window of a stream of incremental EM, and its estimates."""
    header = json.loads(state["header"].tobytes())
    rows = [(*row, 1) for row in old_labels(header, state)]
    confusions = np.exp(state["counts.log_said"]).transpose(0, 2, 1)
    prior = np.exp(state["counts.log_class"])
    kept = {
        "stated": np.full(len(confusions), np.nan),
        "labels": np.array(sorted(rows), np.int64).reshape(-1, 4),
        "found.competences": np.einsum("mkk,k->m", confusions, prior),
    }
    if header["parameters"]["model"] != "one-coin":
        kept |= {"found.confusions": confusions, "found.prior": prior}
    return kept
