"""From the files that people published to labels.csv and truth.csv: one function for each set.

Each takes the folder that holds the raw files of a set, by their names, and returns the two
tables. Names of tasks, workers and labels are kept as they are, except that true and false
become 1 and 0.
"""

from __future__ import annotations

import csv
import io
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

__all__ = [
    "EXPERTS",
    "GRADES",
    "JUDGES",
    "Tables",
    "bluebird",
    "dog",
    "llmjudge2024_binary",
    "medrelex_cause",
    "product",
    "rte",
    "temp",
    "web",
]

#: The judges of llmjudge2024_binary that graded the passages.
JUDGES: Final = (
    *("NISTRetrieval-instruct0", "NISTRetrieval-instruct1", "NISTRetrieval-instruct2"),
    *("NISTRetrieval-reason0", "NISTRetrieval-reason1", "NISTRetrieval-reason2"),
    *("Olz-exp", "Olz-gpt4o", "Olz-halfbin", "Olz-multiprompt", "Olz-somebin"),
    *("RMITIR-GPT4o", "RMITIR-llama38b", "RMITIR-llama70B"),
    *("TREMA-4prompts", "TREMA-CoT", "TREMA-all", "TREMA-direct", "TREMA-naiveBdecompose"),
    *("TREMA-nuggets", "TREMA-other", "TREMA-questions", "TREMA-rubric0", "TREMA-sumdecompose"),
    *("h2oloo-fewself", "h2oloo-zeroshot1", "h2oloo-zeroshot2"),
    *("prophet-setting1", "prophet-setting2", "prophet-setting4"),
    *("willia-umbrela1", "willia-umbrela2", "willia-umbrela3"),
)
#: People's grades of the same passages.
GRADES: Final = "llmjudge_test_qrel_idx.txt"
#: The file of medrelex_cause with the experts' judgement.
EXPERTS: Final = "ground_truth_cause.csv"

_LABELS = ("task", "worker", "label")


class Tables(NamedTuple):
    """The rows of labels.csv and of truth.csv."""

    columns: tuple[str, ...]
    labels: list[tuple[str, ...]]
    truth: list[tuple[str, str]]


def bluebird(raw: Path) -> Tables:
    """YAML, a mapping of workers to {task: true or false}, and one of tasks to true or false."""
    workers = re.findall(r"(\d+): \{([^}]*)\}", _text(raw / "labels.yaml"))
    labels = [(task, worker, said) for worker, body in workers for task, said in _flags(body)]
    return Tables(_LABELS, [*labels], _flags(_text(raw / "gt.yaml")))


def dog(raw: Path) -> Tables:
    """Lines of task, worker and label, and of task and label."""
    return _columns(raw, "dog")


def web(raw: Path) -> Tables:
    """Lines of task, worker and label, and of task and label."""
    return _columns(raw, "web")


def rte(raw: Path) -> Tables:
    """rte.standardized.tsv of the archive."""
    return _standardized(raw, "rte")


def temp(raw: Path) -> Tables:
    """temp.standardized.tsv of the archive."""
    return _standardized(raw, "temp")


def product(raw: Path) -> Tables:
    """d_jn-product/answer.csv (question,worker,answer) and truth.csv (question,truth)."""
    with zipfile.ZipFile(raw / "datasets.zip") as archive:

        def member(name: str) -> list[tuple[str, ...]]:
            path = next(n for n in archive.namelist() if n.endswith(f"d_jn-product/{name}"))
            text = archive.read(path).decode("utf-8-sig")
            return [tuple(row) for row in csv.reader(io.StringIO(text)) if row][1:]

        truth = [(row[0], row[1]) for row in member("truth.csv")]
        return Tables(_LABELS, [row[:3] for row in member("answer.csv")], truth)


def llmjudge2024_binary(raw: Path) -> Tables:
    """Lines of query, 0, passage and grade, a file for each judge; grades of 2 or 3 become 1."""
    labels = [
        (task, judge, said)
        for judge in JUDGES
        for task, said in _graded(_text(raw / f"{judge}.txt"))
    ]
    return Tables(_LABELS, [*labels], list(_graded(_text(raw / GRADES))))


def medrelex_cause(raw: Path) -> Tables:
    """One row per answer: 1 if [CAUSES] is among the relations that the worker ticked.

    Rows of all batches by the time of submission. The truth is the experts', where they gave
    one, 1 for a positive and 0 for a negative.
    """
    rows = [row for path in sorted(raw.glob("RelEx_batch_*.csv")) for row in _records(path)]
    labels = [
        (
            row["sent_id"].partition("-")[0],
            row["_worker_id"],
            str(int("[CAUSES]" in row["relations"])),
            _time(row["_created_at"]),
            _time(row["_started_at"]),
        )
        for row in rows
    ]
    labels.sort(key=lambda row: row[3])
    experts = [(row["SID"], row["expert"]) for row in _records(raw / EXPERTS) if row["expert"]]
    truth = sorted((task, str(int(float(sign) > 0))) for task, sign in experts)
    return Tables((*_LABELS, "timestamp", "started"), [*labels], truth)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig")


def _flags(text: str) -> list[tuple[str, str]]:
    pairs = re.findall(r"(\d+): (true|false)", text)
    return [(task, "1" if flag == "true" else "0") for task, flag in pairs]


def _columns(raw: Path, name: str) -> Tables:
    labels = _fields(_text(raw / f"{name}_crowd.txt"))
    truth = _fields(_text(raw / f"{name}_truth.txt"))
    return Tables(_LABELS, [row[:3] for row in labels], [(row[0], row[1]) for row in truth])


def _fields(text: str) -> list[tuple[str, ...]]:
    return [tuple(line.split()) for line in text.splitlines() if line.strip()]


def _standardized(raw: Path, name: str) -> Tables:
    with tarfile.open(raw / "all_collected_data.tgz") as archive:
        member = next(m for m in archive if m.name.endswith(f"{name}.standardized.tsv"))
        file = archive.extractfile(member)
        text = file.read().decode() if file else ""
    rows = list(csv.DictReader(io.StringIO(text), delimiter="\t"))
    labels = [(row["orig_id"], row["!amt_worker_ids"], row["response"]) for row in rows]
    return Tables(_LABELS, [*labels], list({row["orig_id"]: row["gold"] for row in rows}.items()))


def _graded(text: str) -> Iterator[tuple[str, str]]:
    for query, _, passage, grade in _four(_fields(text)):
        if grade in ("0", "1", "2", "3"):  # a judge may have answered something else
            yield f"{query}_{passage}", str(int(int(grade) >= 2))


def _four(rows: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    return (row for row in rows if len(row) == 4)


def _records(path: Path) -> Iterator[dict[str, str]]:
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
        yield from csv.DictReader(file)


def _time(text: str) -> str:
    """7/11/2014 23:53:21 as 2014-07-11T23:53:21."""
    day, _, clock = text.partition(" ")
    month, number, year = (int(part) for part in day.split("/"))
    hour, minute, *second = clock.split(":")
    return f"{year:04d}-{month:02d}-{number:02d}T{int(hour):02d}:{minute}:{(second or ['00'])[0]}"
