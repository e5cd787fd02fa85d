"""Who is how good? Competences from labels alone, by Algorithm 3, with most labels missing.

python examples/learn.py
"""

from __future__ import annotations

import numpy as np

import venire as vn

rng = np.random.default_rng(1)
true = {"ann": 0.92, "bob": 0.8, "eve": 0.75, "dan": 0.65, "coin": 0.5}
rows = []
for item in range(2000):
    truth = rng.choice(["cat", "dog"])
    other = "dog" if truth == "cat" else "cat"
    for name in rng.choice(list(true), size=3, replace=False):
        rows.append((item, str(name), str(truth if rng.random() < true[name] else other)))

learned = vn.OneCoin().fit(vn.LabelTable.from_rows(rows))
for name, p in sorted(learned.skills_.items(), key=lambda pair: -pair[1]):
    print(f"{name:5} learned {p:.3f}  true {true[str(name)]:.3f}")
print(f"converged after {learned.n_iter_} iterations: {learned.converged_}")
