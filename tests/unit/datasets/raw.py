"""Raw files in the formats of the sources, made from the normalised sets.

The files of bluebird come out byte for byte as they were published.
"""

from __future__ import annotations

import csv
import io
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from venire.datasets import EXPERTS, GRADES

Rows = list[dict[str, str]]
Raw = dict[str, bytes]


def rows(path: Path) -> Rows:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _flags(pairs: list[tuple[str, str]]) -> list[str]:
    return [f"{task}: {'true' if label == '1' else 'false'}" for task, label in pairs]


def _wrapped(head: str, entries: list[str]) -> str:
    """As PyYAML writes a mapping in braces: a new line where 80 characters are passed."""
    lines, line = [], head + "{"
    for i, entry in enumerate(entries):
        if i:
            line += ","
            if len(line) > 80:
                lines.append(line)
                line = " "
            line += " "
        line += entry
    return "\n".join([*lines, line + "}"]) + "\n"


def bluebird(labels: Rows, truth: Rows) -> Raw:
    by_worker: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in labels:
        by_worker[row["worker"]].append((row["task"], row["label"]))
    text = "".join(_wrapped(f"{who}: ", _flags(said)) for who, said in by_worker.items())
    entries = _flags([(row["task"], row["label"]) for row in truth])
    sixes = [", ".join(entries[i : i + 6]) for i in range(0, len(entries), 6)]
    gold = "{" + ",\n    ".join(sixes) + "}\n"
    return {"labels.yaml": text.encode(), "gt.yaml": gold.encode()}


def spectral(name: str) -> Callable[[Rows, Rows], Raw]:
    def make(labels: Rows, truth: Rows) -> Raw:
        crowd = "".join(f"{r['task']}\t{r['worker']}\t{r['label']}\n" for r in labels)
        gold = "".join(f"{r['task']}\t{r['label']}\n" for r in truth)
        return {f"{name}_crowd.txt": crowd.encode(), f"{name}_truth.txt": gold.encode()}

    return make


def snow(name: str) -> Callable[[Rows, Rows], Raw]:
    def make(labels: Rows, truth: Rows) -> Raw:
        gold = {row["task"]: row["label"] for row in truth}
        text = "!amt_annotation_ids\t!amt_worker_ids\torig_id\tresponse\tgold\n" + "".join(
            f"{i}\t{r['worker']}\t{r['task']}\t{r['label']}\t{gold[r['task']]}\n"
            for i, r in enumerate(labels)
        )
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            member = tarfile.TarInfo(f"all_collected_data/{name}.standardized.tsv")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
        return {"all_collected_data.tgz": packed.getvalue()}

    return make


def product(labels: Rows, truth: Rows) -> Raw:
    answers = "".join(f"{r['task']},{r['worker']},{r['label']}\r\n" for r in labels)
    gold = "".join(f"{r['task']},{r['label']}\r\n" for r in truth)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        folder = "datasets/d_jn-product"
        archive.writestr(f"{folder}/answer.csv", "question,worker,answer\r\n" + answers)
        archive.writestr(f"{folder}/truth.csv", "question,truth\r\n" + gold)
    return {"datasets.zip": packed.getvalue()}


def judges(labels: Rows, truth: Rows) -> Raw:
    def line(row: dict[str, str]) -> str:
        query, _, passage = row["task"].partition("_")
        return f"{query} 0 {passage} {'2' if row['label'] == '1' else '1'}\n"

    texts: dict[str, list[str]] = defaultdict(list)
    for row in labels:
        texts[f"{row['worker']}.txt"].append(line(row))
    texts[GRADES] = [line(row) for row in truth]
    return {name: "".join(lines).encode() for name, lines in texts.items()}


def _clock(text: str) -> str:
    day, _, clock = text.partition("T")
    year, month, number = day.split("-")
    return f"{int(month)}/{int(number)}/{year} {clock}"


def medical(labels: Rows, truth: Rows) -> Raw:
    """All answers in the first batch; the other batches have a header only."""
    header = "_unit_id,_created_at,_started_at,_worker_id,relations,sent_id,sentence\n"
    body = "".join(
        f"1,{_clock(r['timestamp'])},{_clock(r['started'])},{r['worker']},"
        f'"{"[TREATS] [CAUSES]" if r["label"] == "1" else "[IS_A]"}",{r["task"]}-FS1,"a, b"\n'
        for r in labels
    )
    experts = "SID,relation,expert,sentence\n1,cause,,x\n" + "".join(
        f"{r['task']},cause,{'1' if r['label'] == '1' else '-1'},x\n" for r in truth
    )
    batches = [f"{n:02d}" if n not in (7, 9) else str(n) for n in range(1, 47)]
    made = {f"RelEx_batch_{n}.csv": header.encode() for n in batches}
    made["RelEx_batch_01.csv"] += body.encode()
    return made | {EXPERTS: experts.encode()}


RAW: dict[str, Callable[[Rows, Rows], Raw]] = {
    "bluebird": bluebird,
    "dog": spectral("dog"),
    "web": spectral("web"),
    "rte": snow("rte"),
    "temp": snow("temp"),
    "product": product,
    "llmjudge2024_binary": judges,
    "medrelex_cause": medical,
}


def raw_files(name: str, data: Path) -> Raw:
    return RAW[name](rows(data / name / "labels.csv"), rows(data / name / "truth.csv"))
