"""Five judges look at 300 drawings of digits; nobody tells them, or us, who is right.

python -m examples.judges                  # a minute at most, no network, no key
python -m examples.judges --faults 0.33    # a third of the requests fails
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import venire as vn
from examples.judges.digits import items
from examples.judges.server import serving
from venire.connectors.judges import (
    Answer,
    Cache,
    Judge,
    JudgeConfig,
    JudgeFault,
    read_judges,
    voices,
)

HERE = Path(__file__).parent
Answered = list[tuple[str, str, Answer]]


async def ask_all(judges: Sequence[Judge], asked: Sequence[Mapping[str, Any]]) -> Answered:
    """Every judge about every item, many at once; what is no label is left out."""

    async def one(judge: Judge, item: Mapping[str, Any]) -> tuple[str, str, Answer] | None:
        try:
            return item["id"], judge.id, await judge.answer(item)
        except JudgeFault:
            return None

    found = await asyncio.gather(*(one(judge, item) for judge in judges for item in asked))
    for judge in judges:
        await judge.close()
    return [row for row in found if row is not None]


def judges_of(configs: Sequence[JudgeConfig], url: str, cache: Cache) -> list[Judge]:
    return [Judge(replace(config, base_url=url), cache) for config in configs]


def report(answered: Answered, judges: Sequence[Judge], truth: Mapping[str, str]) -> None:
    rows = [(item, judge, answer.label) for item, judge, answer in answered]
    learned = vn.Auto().fit(rows)
    print(f"{'judge':12}{'labels':>8}{'cost':>10}{'learned skill':>15}{'in truth':>10}")
    for judge in judges:
        right = [answer.label == truth[item] for item, name, answer in answered if name == judge.id]
        share, cost = sum(right) / len(right), judge.usage.cost
        skill = learned.skills_[judge.id]
        print(f"{judge.id:12}{len(right):8}{cost:10.5f}{skill:15.2f}{share:10.1%}")
    print()
    for name, found in {
        "majority": vn.MajorityVote().fit(rows).labels_,
        "venire": learned.labels_,
        "venire, sure and unsure": vn.Auto().fit(voices(answered)).labels_,
    }.items():
        agree = sum(found.get(item) == digit for item, digit in truth.items())
        print(f"{name:28}{agree / len(truth):8.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=float, default=0.0, help="the share of faulty requests")
    parser.add_argument("--items", type=int, default=300)
    options = parser.parse_args()
    asked = items(options.items)
    truth = {item["id"]: item["truth"] for item in asked}
    configs = read_judges(HERE / "judges.yaml")
    with tempfile.TemporaryDirectory() as folder, serving(options.faults) as server:
        for run in ("the first run", "the second run, out of the cache"):
            cache = Cache(Path(folder, "judges.cache"))
            judges = judges_of(configs, server.url, cache)
            answered = asyncio.run(ask_all(judges, asked))
            cache.close()
            if run == "the first run":
                report(answered, judges, truth)
            requests = sum(judge.usage.requests for judge in judges)
            cost = sum(judge.usage.cost for judge in judges)
            print(f"\n{run}: {len(answered)} labels, {requests} requests, cost {cost:.5f}")


if __name__ == "__main__":
    main()
