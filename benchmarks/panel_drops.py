"""Which judges can go, and is anything lost without them? Measured against the truth.

    python -m benchmarks.panel_drops DATA llmbar mtbench_judges llmjudge2024_binary

The report sees labels and prices, never the truth. Beside the panel that it keeps, for at most the
same money: the best skills (drop the lowest skill first), random panels, the cheapest judges; and
the majority of everybody, at the full price. Each seed is another sample of the items.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from venire import MajorityVote
from venire.labels import LabelTable
from venire.labels.sources import as_table, as_truth
from venire.panels import Yardstick, panel_report
from venire.panels.report import Replayed
from venire.panels.yardstick import verdicts_of

#: Dollars for a million input tokens, by the model that a judge's name mentions: public price lists
#: of 2023 and 2024 (OpenAI for GPT-4, GPT-4o and gpt-3.5-turbo; Google for PaLM 2; Together for
#: Llama), rounded; Falcon-180B by its size, twice Llama-70B. Only ratios matter. UMBRELA, h2oloo
#: and Olz are taken for GPT-4o; a name that says nothing of its model counts as OTHER.
PRICES = {
    "GPT-4/": 30.0,
    "ChatGPT-0301/": 2.0,
    "ChatGPT/": 1.5,
    "PaLM2/": 1.0,
    "LLaMA2/": 0.9,
    "Falcon/": 1.8,
    "RMITIR-llama38b": 0.2,
    "RMITIR-llama70B": 0.9,
    "RMITIR-GPT4o": 2.5,
    "Olz-": 2.5,
    "willia-umbrela": 2.5,
    "h2oloo-": 2.5,
}
OTHER = 0.5

#: The expected accuracy that the report may lose.
LOSE = (0.005,)

ITEMS, SEEDS, DRAWS = 600, 5, 10


def price(judge: str) -> float:
    """What a label of this judge costs."""
    return next((p for name, p in PRICES.items() if judge.startswith(name)), OTHER)


def sample(
    table: LabelTable, truth: NDArray[np.int64], seed: int
) -> tuple[LabelTable, NDArray[np.int64]]:
    """Four fifths of the items, at most ITEMS, drawn at random."""
    number = min(ITEMS, len(table.items) * 4 // 5)
    drawn = np.random.default_rng(seed).permutation(len(table.items))[:number]
    place = np.full(len(table.items), -1)
    place[drawn] = np.arange(number)
    item = place[table.item]
    kept = item >= 0
    codes = item[kept], table.labeler[kept], table.said[kept]
    return LabelTable.from_codes(*codes, range(number), table.labelers, table.classes), truth[drawn]


def rivals(
    skill: NDArray[np.float64], spent: NDArray[np.float64], most: float, seed: int
) -> dict[str, list[list[int]]]:
    """Panels that cost at most this much, by name."""

    def fill(order: NDArray[np.int64]) -> list[int]:
        chosen, left = [], most
        for m in order.tolist():
            if spent[m] <= left:
                chosen.append(m)
                left -= spent[m]
        return chosen

    rng = np.random.default_rng(seed)
    random = [fill(rng.permutation(len(spent))) for _ in range(DRAWS)]
    best, cheap = np.argsort(-skill, kind="stable"), np.argsort(spent, kind="stable")
    return {"best skills": [fill(best)], "cheapest": [fill(cheap)], "random": random}


def one(table: LabelTable, truth: NDArray[np.int64], seed: int, lose: float) -> dict[str, float]:
    """One seed: the share of right verdicts, by the truth, of every panel."""
    prices = {name: price(str(name)) for name in table.labelers}
    report = panel_report(table, prices, lose=lose, seed=seed)
    rule, replayed = Yardstick.of_truth(truth, len(table.classes)), Replayed(table, seed)
    whole = replayed.verdicts(range(len(table.labelers)))
    stay = [m for m, member in enumerate(report.members) if member.stays]
    skill = np.array([member.skill for member in report.members])
    spent = np.array([member.cost for member in report.members])
    found = {
        "all": rule.accuracy(whole).value,
        "majority of all": rule.accuracy(verdicts_of(MajorityVote().fit(table))).value,
        "kept": rule.accuracy(replayed.verdicts(stay)).value,
        "error of kept - all": rule.change(whole, replayed.verdicts(stay)).error,
        "expected change": report.expected.value,
        "judges kept": len(stay),
        "share of the cost": report.cheapest / report.cost,
    }
    for name, panels in rivals(skill, spent, report.cheapest, seed).items():
        right = [rule.accuracy(replayed.verdicts(some)).value for some in panels]
        found[name] = float(np.mean(right))
    return found


def main(data: Path, names: list[str]) -> None:
    """Print a table for each set."""
    for name in names:
        table = as_table(data / name / "labels.csv", repeats="first")
        truth = as_truth(data / name / "truth.csv", table)
        for lose in LOSE:
            found = [one(*sample(table, truth, seed), seed, lose) for seed in range(SEEDS)]
            print(f"{name}, lose {lose}")
            for key in found[0]:
                values = [each[key] for each in found]
                print(f"  {key:20} {np.mean(values):8.4f} ± {np.std(values, ddof=1):.4f}")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
