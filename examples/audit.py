"""How many audits until fewer than 8 % of verdicts are surely wrong? Three labelers, 2,000 posts.

python examples/audit.py
"""

from __future__ import annotations

import numpy as np

import venire as vn

rng = np.random.default_rng(0)
truth = {post: "spam" if rng.random() < 0.2 else "ok" for post in range(2000)}
other = {"spam": "ok", "ok": "spam"}
labels = [
    (post, who, right if rng.random() < 0.9 else other[right])
    for post, right in truth.items()
    for who in ("ann", "bob", "cat")
]
verdicts = vn.MajorityVote().fit_predict(labels)

bound = vn.ErrorBound(level=0.95, size=len(verdicts))
drawn = vn.draw_audit(verdicts, share=1, seed=1)
for task, _ in drawn:
    bound.update(wrong=verdicts[task] != truth[task])  # here the truth is the auditor
    if bound.audited % 50 == 0:
        print(f"{bound.audited:4} audited, {bound.wrong:2} wrong: at most {bound.upper:.1%}")
    if bound.upper < 0.08:  # to look after each and stop is allowed
        break

gold = {task: truth[task] for task, _ in drawn[: bound.audited]}
for label, row in vn.audit_bounds(verdicts, gold, drawn).classes.items():
    print(f"verdicts that say {label}: {row.wrong} of {row.audited} wrong, at most {row.upper:.1%}")
wrong = sum(verdicts[post] != truth[post] for post in truth) / len(truth)
print(f"after {bound.audited} audits at most {bound.upper:.1%}; in truth {wrong:.1%} are wrong")
