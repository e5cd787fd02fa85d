"""The public label sets that venire knows: where they come from and what they must be.

The data is never shipped. `fetch` downloads the raw files from their source at a fixed commit,
checks them, and brings them into one form (labels.csv, truth.csv), whose sha256 is recorded
here, so the result is always what our published figures were made from. The sha256 of a raw file is
recorded where we could compute it, and None elsewhere.

**From the files that people published to labels.csv and truth.csv: one function for each set.**

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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from venire.errors import UnknownName

if TYPE_CHECKING:
    from venire.labels import Repeats


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


#: Where the repositories are.
SOURCE = "https://github.com"


@dataclass(frozen=True)
class RawFile:
    """A file of a repository at a commit."""

    repository: str
    commit: str
    path: str
    sha256: str | None = None

    @property
    def name(self) -> str:
        """Its name without folders.

        >>> RawFile("welinder/cubam", "fe5ba70", "demo/bluebirds/gt.yaml").name
        'gt.yaml'
        """
        return self.path.rpartition("/")[2]

    def url(self, source: str = SOURCE) -> str:
        """Where it is downloaded from.

        >>> RawFile("welinder/cubam", "fe5ba70", "demo/bluebirds/gt.yaml").url()
        'https://github.com/welinder/cubam/raw/fe5ba70/demo/bluebirds/gt.yaml'
        """
        return f"{source}/{self.repository}/raw/{self.commit}/{self.path}"


@dataclass(frozen=True)
class DataSet:
    """A public set of labels; `repeats` is how `load` treats repeated (task, worker) rows."""

    name: str
    about: str
    licence: str
    tasks: int
    workers: int
    labels: int
    classes: int
    raw: tuple[RawFile, ...]
    normalise: Callable[[Path], Tables] = field(repr=False)
    labels_sha256: str
    truth_sha256: str
    repeats: Repeats = "error"


def data_sets() -> dict[str, DataSet]:
    """The sets by name.

    >>> list(data_sets())[:3]
    ['bluebird', 'dog', 'rte']
    """
    return {each.name: each for each in _SETS}


def data_set(name: str) -> DataSet:
    """The set of this name.

    >>> data_set("rte").labels
    8000
    """
    known = data_sets()
    if name not in known:
        raise UnknownName("data set", name, known)
    return known[name]


_NO_LICENCE = "not stated"
_CUBAM = "welinder/cubam", "fe5ba700f1adbb489c69af311558d64370d73d36"
_SPECTRAL = "zhangyuc/SpectralMethodsMeetEM", "6204f5fcab1766cb1b2c40fc1bff53b1613ddc6c"


def _spectral(name: str) -> tuple[RawFile, ...]:
    return tuple(RawFile(*_SPECTRAL, f"src/{name}_{what}.txt") for what in ("crowd", "truth"))


_SNOW = RawFile(
    "edwinrobots/bayesian_combination_tutorial2",
    "f98448e2",
    "snow2008_mturk_data_with_orig_files_assembled_201904/all_collected_data.tgz",
)
_JUDGES = "llm4eval/LLMJudge-benchmark", "968a1f9c"
_MEDICAL = "CrowdTruth/Medical-Relation-Extraction", "585c1588"


def _relex_batches() -> tuple[RawFile, ...]:
    numbers = ["7" if n == 7 else "9" if n == 9 else f"{n:02d}" for n in range(1, 47)]
    return tuple(
        RawFile(*_MEDICAL, f"raw/RelEx/RelEx_batch_{number}.csv") for number in sorted(numbers)
    )


_SETS = (
    DataSet(
        "bluebird",
        "is it an indigo bunting? (Welinder and others 2010), a complete matrix",
        "BSD-style",
        *(108, 39, 4_212, 2),
        (
            RawFile(
                *_CUBAM,
                "demo/bluebirds/labels.yaml",
                "8b1b28e4b869b19bb03beac476c7073149cef784f9524ebe17380a1292a6126c",
            ),
            RawFile(
                *_CUBAM,
                "demo/bluebirds/gt.yaml",
                "c9eb769c845ca99495a07b5c28c4290c78436fd8eac65c0747736c4ef8126340",
            ),
        ),
        bluebird,
        "7078930991606f9b752e48225afaa8d61d9ca85a4db3e2eca78cbb8af14e686f",
        "77454269f6bdb045c15d4f7998fed5f2b50f996d265c0fb6679f660f8c3e6839",
    ),
    DataSet(
        "dog",
        "four breeds of dogs (Zhou and others 2012)",
        _NO_LICENCE,
        *(807, 109, 8_070, 4),
        _spectral("dog"),
        dog,
        "93dc926cac4f965b5bb5c399d7b47950da8d0a37b1a489f14acea11bf4fcd379",
        "a242909af7de7269b5ee053278d1bc5ff9584a5a522e72307a84d464636247c6",
    ),
    DataSet(
        "rte",
        "textual entailment (Snow and others 2008)",
        _NO_LICENCE,
        *(800, 164, 8_000, 2),
        (_SNOW,),
        rte,
        "cd42608dc19502388f649e724f42df57d9da3866686cbc01b5f53f10420bfb46",
        "39d6800e1aa8d28b61fd0179d1d4ecc03fa0c70289275a32a9c0e77440334251",
    ),
    DataSet(
        "temp",
        "which event came first (Snow and others 2008)",
        _NO_LICENCE,
        *(462, 76, 4_620, 2),
        (_SNOW,),
        temp,
        "95f73d389ab19796a2f40314b31b980cd92bfec3d7199ed6811145a9d6c049c4",
        "6f83f2f154e8bf99cb96f0fa0593ebfce93a7a617b0b1ffb88b3c03dff7f419a",
    ),
    DataSet(
        "web",
        "relevance of search results, five grades (Zhou and others 2012)",
        _NO_LICENCE,
        *(2_665, 177, 15_567, 5),
        _spectral("web"),
        web,
        "94c6d61a20fbe59399de104620012071c54225bd2b482fbd1062a0c1666a3487",
        "e5be7f75e1a35c1eec8dea85471bac1c14b0e09a7d6bc816803947ac1d5d15cd",
    ),
    DataSet(
        "product",
        "are these two products the same?",
        _NO_LICENCE,
        *(8_315, 176, 24_945, 2),
        (
            RawFile(
                "zhydhkcws/zhydhkcws.github.io", "a9d529c1", "crowd_truth_inference/datasets.zip"
            ),
        ),
        product,
        "79cf4b3548e5cb6858a5f753abf63ca693b3b9545ebb9e64bf7376da9b6c2c94",
        "7c0912b83b685f6c40b3a462829279808a8ce0c20f88a482f680e9e390a874ab",
    ),
    DataSet(
        "llmjudge2024_binary",
        "33 language models judge passages of TREC DL 2023, grade 2 or above",
        "MIT",
        *(4_423, 33, 145_956, 2),
        (
            *(RawFile(*_JUDGES, f"submissions/scores/{j}.txt") for j in JUDGES),
            RawFile(
                "llm4eval/LLMJudge",
                "81159c68260d383f8da1dad8a14f6d914a9054a9",
                f"data/{GRADES}",
            ),
        ),
        llmjudge2024_binary,
        "5a0658aa75732e928aeecca8b7830dd2676f98af9d1f2792108e3bd62c2f9c2e",
        "887b71e723caf0b8a4b4fcdb9ae528c97f31f5f7dc07a293e9e33e3f98a09c24",
    ),
    DataSet(
        "medrelex_cause",
        "does the sentence say that one thing causes the other? with start and submit times",
        _NO_LICENCE,
        *(3_231, 468, 50_962, 2),
        (*_relex_batches(), RawFile(*_MEDICAL, EXPERTS)),
        medrelex_cause,
        "1b90930f18555cc384195bc80674309227d0723a7d2de140d482af05d304ebd3",
        "e78f0813dac3d2346c35c317a330d146d7c9d52c728ea6bd91272d9e46eeaba9",
        # 736 workers met a sentence twice, hours apart, and 66 of them changed their mind. The
        # first answer is kept: it was given without having seen the sentence before.
        repeats="first",
    ),
)
