"""What does knowing the labelers buy? The paper's synthetic stream under eight schedules.

python examples/compare.py
"""

from __future__ import annotations

import venire as vn

world = vn.World.synthetic(seed=0)
print(f"{'policy':16} {'learning':14} {'ratio':>6} {'labels':>7} {'wait':>7} {'right':>6}")
for policy, learning in [
    (vn.Greedy(), None),
    (vn.Greedy(), vn.Algorithm2(25)),
    (vn.Greedy(), vn.Algorithm2(85)),
    (vn.Greedy(), vn.LearnWhileServing()),
    (vn.Realised(), vn.LearnWhileServing()),
    (vn.FixedOverlap(5), None),
    (vn.RoundRobin(5), None),
    (vn.Random(5), None),
]:
    run = vn.simulate(world, policy, learning, slots=2000)
    print(
        f"{policy.describe():16} {learning.describe() if learning else 'known':14} "
        f"{run.ratio:6.3f} {run.labels_per_item:7.2f} {run.mean_response:7.2f} {run.accuracy:6.3f}"
    )
