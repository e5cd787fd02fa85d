"""What a student learned as bytes, and back: arrays and a few numbers, nothing that runs.

Weights are kept in single precision, those of unused places not at all. Only the default model can
be kept; a model of your own is for the library.
"""

from __future__ import annotations

import io
import json
from typing import Any, Final

import numpy as np

from venire.errors import InputError
from venire.student.models import Linear
from venire.student.student import Taught

__all__ = ["pack", "unpack"]

FORMAT: Final = 1


def pack(taught: Taught) -> bytes:
    """What was learned, without what it says of the items it was taught.

    >>> model = Linear(np.array([[0.0, 0.0], [2.0, 0.0]]), np.zeros(2), np.empty(0), np.empty(0))
    >>> bins = np.array([0.7]), np.array([0.8, 0.9])
    >>> again = unpack(pack(Taught(3, model, 200, 0.9, 0.5, *bins, np.empty((0, 2)))))
    >>> again.version, again.ready, again.model.weights.tolist()
    (3, True, [[0.0, 0.0], [2.0, 0.0]])
    """
    model = taught.model
    if not isinstance(model, Linear):
        raise InputError(f"got the model {model!r}, expected the default one: others are not kept")
    used = np.flatnonzero(model.weights.any(axis=0))
    head = {
        "format": FORMAT,
        "version": taught.version,
        "items": taught.items,
        "agreement": taught.agreement,
        "commonest": taught.commonest,
        "kind": taught.kind,
        "features": model.weights.shape[1],
    }
    file = io.BytesIO()
    np.savez_compressed(
        file,
        head=np.frombuffer(json.dumps(head).encode(), np.uint8),
        used=used,
        weights=model.weights[:, used].astype(np.float32),
        bias=model.bias,
        mean=model.mean,
        scale=model.scale,
        edges=taught.edges,
        skills=taught.skills,
    )
    return file.getvalue()


def unpack(body: bytes) -> Taught:
    """What `pack` kept."""
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as kept:
            arrays: dict[str, Any] = {name: kept[name] for name in kept.files}
        head = json.loads(arrays["head"].tobytes())
        weights = np.zeros((len(arrays["bias"]), head["features"]))
        weights[:, arrays["used"]] = arrays["weights"]
    except Exception as error:
        raise InputError(f"this is no student that this version can read: {error}") from None
    model = Linear(weights, *(np.asarray(arrays[n], np.float64) for n in ("bias", "mean", "scale")))
    nothing = np.empty((0, len(weights)))
    how = head["agreement"], head["commonest"], arrays["edges"], arrays["skills"], nothing
    return Taught(head["version"], model, head["items"], *how, head["kind"])
