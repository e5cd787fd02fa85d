"""A moderation queue, slot by slot: three labelers, a label that comes late, one that never does.

python examples/schedule.py
"""

from __future__ import annotations

import venire as vn

panel = [
    vn.Labeler("ann", competence=0.9),
    vn.Labeler("bob", competence=0.75),
    vn.Labeler("llama", competence=0.8, capacity=2),
]
said = {"post-1": "spam", "post-2": "ok", "anns-own-post": "spam"}  # by all who label it
s = vn.Scheduler(panel, classes=["spam", "ok"])

s.arrive([vn.Item("post-1", weight=8), vn.Item("post-2", weight=3)])
s.arrive([vn.Item("anns-own-post", weight=5, excluded=frozenset({"ann"}))])

for a in s.assign():
    print(f"slot {a.slot}: {a.item} to {a.labeler}, gain {a.gain:.3f}")
    if a.labeler == "bob":
        continue  # bob takes longer than a slot
    s.observe(vn.Label(a.item, a.labeler, said[a.item]))
late = [a for event in s.log for a in getattr(event, "assignments", ()) if a.labeler == "bob"]

for e in s.close():
    print(f"{e.item} leaves: {e.verdict.label}, {e.verdict.confidence:.3f}, {e.reason}")
print("still here:", ", ".join(s.outstanding))

for a in s.assign():
    print(f"slot {a.slot}: {a.item} to {a.labeler}, gain {a.gain:.3f}")
    s.observe(vn.Label(a.item, a.labeler, said[a.item]))
for a in late:
    s.release(a.item, a.labeler)  # bob gives up
for e in s.close():
    print(f"{e.item} leaves: {e.verdict.label}, {e.verdict.confidence:.3f}, {e.reason}")

again = vn.Scheduler(panel, classes=["spam", "ok"]).replay(s.log)
print("replayed to the same state:", again.fingerprint() == s.fingerprint())
