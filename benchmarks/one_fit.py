"""One fit in a process of its own, so that its peak memory can be told: prints a line of JSON.

    python -m benchmarks.one_fit PROGRAM METHOD ITEMS LABELERS CLASSES ITERATIONS [POSTERIORS.npy]

PROGRAM is venire or crowd-kit. An iteration is an E step and an M step; the posteriors are those
of the last E step.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import numpy as np

from benchmarks.crowds import LABELS, crowd


def venire(method: str, shape: tuple[int, int, int], iterations: int) -> dict[str, Any]:
    from venire.estimators import DawidSkene, OneCoin
    from venire.labels import LabelTable

    items, labelers, classes = shape
    how: dict[str, Any] = {"max_iter": iterations - 1, "tol": 0.0, "prior": None}

    def model() -> Any:
        if method == "one-coin":
            return OneCoin(start="votes", class_prior="learned", **how)
        return DawidSkene(**how)

    names = range(labelers), range(classes)
    tiny = crowd(200, labelers, classes)
    codes = np.repeat(np.arange(200, dtype=np.uint32), LABELS)
    model().fit(LabelTable.from_codes(codes, *tiny, range(200), *names))  # compiles, or loads
    labeler, said = crowd(*shape)
    item = np.repeat(np.arange(items, dtype=np.uint32), LABELS)
    start = time.perf_counter()
    table = LabelTable.from_codes(item, labeler, said, range(items), *names)
    built = time.perf_counter()
    posteriors = model().fit(table).posteriors_
    return {
        "em": time.perf_counter() - built,
        "all": time.perf_counter() - start,
        "posteriors": posteriors,
    }


def crowd_kit(method: str, shape: tuple[int, int, int], iterations: int) -> dict[str, Any]:
    import pandas as pd
    from crowdkit.aggregation import (  # type: ignore[import-not-found,unused-ignore]
        DawidSkene,
        OneCoinDawidSkene,
    )

    labeler, said = crowd(*shape)
    item = np.repeat(np.arange(shape[0]), LABELS)
    frame = pd.DataFrame({"task": item, "worker": labeler, "label": said})
    kind = OneCoinDawidSkene if method == "one-coin" else DawidSkene
    start = time.perf_counter()
    fitted = kind(n_iter=iterations, tol=-np.inf).fit(frame)
    seconds = time.perf_counter() - start
    probas = fitted.probas_.sort_index()[sorted(fitted.probas_.columns)]
    return {"em": seconds, "all": seconds, "posteriors": probas.to_numpy()}


def main(program: str, method: str, *rest: str) -> None:
    items, labelers, classes, iterations = (int(x) for x in rest[:4])
    run = {"venire": venire, "crowd-kit": crowd_kit}[program]
    found = run(method, (items, labelers, classes), iterations)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    posteriors = found.pop("posteriors")
    if len(rest) > 4:
        np.save(rest[4], posteriors)
    print(json.dumps({**found, "peak": peak}))


if __name__ == "__main__":
    main(*sys.argv[1:])
