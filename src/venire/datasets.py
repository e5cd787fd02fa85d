"""Public label sets: which there are, fetching them (transfers are resumed) and loading them.

The data is never shipped. `fetch` downloads the raw files from their source at a fixed commit,
checks them, and brings them into one form (labels.csv, truth.csv), whose sha256 is recorded
here, so the result is always what our published figures were made from. The sha256 of a raw file is
recorded where we could compute it, and None elsewhere. NumPy is loaded when a set is, so that
`venire datasets list` needs none.

**From the files that people published to labels.csv and truth.csv: one function for each set.**

Each takes the folder that holds the raw files of a set, by their names, and returns the two
tables. Names of tasks, workers and labels are kept as they are, except that true and false
become 1 and 0.
"""

from __future__ import annotations

import csv
import hashlib
import http.client
import io
import os
import re
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from venire.errors import FetchError, UnknownName

if TYPE_CHECKING:
    from venire.labels import LabelTable, Repeats


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

#: The files of a set that was fetched.
TABLES: Final = ("labels.csv", "truth.csv")


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


def _columns(name: str, raw: Path) -> Tables:
    """Lines of task, worker and label, and of task and label."""
    labels = _fields(_text(raw / f"{name}_crowd.txt"))
    truth = _fields(_text(raw / f"{name}_truth.txt"))
    return Tables(_LABELS, [row[:3] for row in labels], [(row[0], row[1]) for row in truth])


def _fields(text: str) -> list[tuple[str, ...]]:
    return [tuple(line.split()) for line in text.splitlines() if line.strip()]


def _standardized(name: str, raw: Path) -> Tables:
    """A .standardized.tsv of the archive."""
    with tarfile.open(raw / "all_collected_data.tgz") as archive:
        member = next(m for m in archive if m.name.endswith(f"{name}.standardized.tsv"))
        file = archive.extractfile(member)
        text = file.read().decode() if file else ""
    rows = list(csv.DictReader(io.StringIO(text), delimiter="\t"))
    labels = [(row["orig_id"], row["!amt_worker_ids"], row["response"]) for row in rows]
    return Tables(_LABELS, [*labels], list({row["orig_id"]: row["gold"] for row in rows}.items()))


def _graded(text: str) -> Iterator[tuple[str, str]]:
    for row in _fields(text):
        if len(row) == 4 and row[3] in ("0", "1", "2", "3"):  # a judge may have said something else
            yield f"{row[0]}_{row[2]}", str(int(int(row[3]) >= 2))


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
    tasks: int
    workers: int
    labels: int
    classes: int
    raw: tuple[RawFile, ...]
    normalise: Callable[[Path], Tables] = field(repr=False)
    labels_sha256: str
    truth_sha256: str
    licence: str = "not stated"
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
        licence="BSD-style",
    ),
    DataSet(
        "dog",
        "four breeds of dogs (Zhou and others 2012)",
        *(807, 109, 8_070, 4),
        _spectral("dog"),
        partial(_columns, "dog"),
        "93dc926cac4f965b5bb5c399d7b47950da8d0a37b1a489f14acea11bf4fcd379",
        "a242909af7de7269b5ee053278d1bc5ff9584a5a522e72307a84d464636247c6",
    ),
    DataSet(
        "rte",
        "textual entailment (Snow and others 2008)",
        *(800, 164, 8_000, 2),
        (_SNOW,),
        partial(_standardized, "rte"),
        "cd42608dc19502388f649e724f42df57d9da3866686cbc01b5f53f10420bfb46",
        "39d6800e1aa8d28b61fd0179d1d4ecc03fa0c70289275a32a9c0e77440334251",
    ),
    DataSet(
        "temp",
        "which event came first (Snow and others 2008)",
        *(462, 76, 4_620, 2),
        (_SNOW,),
        partial(_standardized, "temp"),
        "95f73d389ab19796a2f40314b31b980cd92bfec3d7199ed6811145a9d6c049c4",
        "6f83f2f154e8bf99cb96f0fa0593ebfce93a7a617b0b1ffb88b3c03dff7f419a",
    ),
    DataSet(
        "web",
        "relevance of search results, five grades (Zhou and others 2012)",
        *(2_665, 177, 15_567, 5),
        _spectral("web"),
        partial(_columns, "web"),
        "94c6d61a20fbe59399de104620012071c54225bd2b482fbd1062a0c1666a3487",
        "e5be7f75e1a35c1eec8dea85471bac1c14b0e09a7d6bc816803947ac1d5d15cd",
    ),
    DataSet(
        "product",
        "are these two products the same?",
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
        licence="MIT",
    ),
    DataSet(
        "medrelex_cause",
        "does the sentence say that one thing causes the other? with start and submit times",
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


#: Called with the file's name and the bytes that are there.
Told: TypeAlias = Callable[[str, int], None]

_BLOCK = 1 << 16
_SECONDS = 30.0


def download(url: str, target: Path, sha256: str | None = None, told: Told | None = None) -> None:
    """Download to `target`, by way of `target.part`, which is kept if the transfer breaks.

    A part that is there already is continued (HTTP Range) where the server can do that. What
    arrives must have the sha256, if that is known; otherwise the part is deleted.

    >>> download("http://127.0.0.1:9/x", Path("x"))
    Traceback (most recent call last):
    venire.errors.FetchError: cannot download http://127.0.0.1:9/x (...refused): ...
    """
    part = target.with_name(target.name + ".part")
    try:
        _transfer(url, part, told)
    except urllib.error.HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE or not part.exists():
            raise FetchError(f"cannot download {url} (HTTP {error.code} {error.reason})") from None
        part.unlink()  # the part is larger than the file, so it belongs to another one: start again
        download(url, target, sha256, told)
        return
    except (OSError, http.client.HTTPException) as error:
        raise FetchError(_offline(url, error, part)) from None
    check_sha256(part, sha256, url)
    part.replace(target)


def check_sha256(path: Path, sha256: str | None, what: str) -> None:
    """Delete a file whose checksum is wrong."""
    if sha256 is None:
        return
    got = sha256_of(path)
    if got != sha256:
        path.unlink()
        raise FetchError(
            f"{what} has the sha256 {got}, expected {sha256}: it was damaged on the way, or its "
            "source has changed; it was removed, so run this again"
        )


def sha256_of(path: Path) -> str:
    """The sha256 of a file, as hexadecimal digits.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     sha256_of(Path(file.name))[:16]
    'e3b0c44298fc1c14'
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _transfer(url: str, part: Path, told: Told | None) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "venire"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
        goes_on = answer.status == http.client.PARTIAL_CONTENT
        have = have if goes_on else 0
        length = answer.headers.get("Content-Length")
        with open(part, "ab" if goes_on else "wb") as file:
            got = 0
            while block := answer.read(_BLOCK):
                file.write(block)
                got += len(block)
                if told is not None:
                    told(part.name.removesuffix(".part"), have + got)
    if length is not None and got < int(length):
        raise ConnectionError(f"it broke off after {got:,} of {int(length):,} bytes")


def _offline(url: str, error: Exception, part: Path) -> str:
    reason = getattr(error, "reason", None) or error
    words = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    remedy = "check the connection and run this again"
    if part.exists() and part.stat().st_size:
        remedy += f", it resumes after the {part.stat().st_size:,} bytes that are here"
    return f"cannot download {url} ({words.lower()}): {remedy}"


#: What a normaliser raises on a file that is not what it expects.
_UNREADABLE = (
    *(ValueError, LookupError, StopIteration, EOFError),
    *(csv.Error, tarfile.TarError, zipfile.BadZipFile, zlib.error),
)


def cache_folder() -> Path:
    """Where fetched sets are kept: VENIRE_DATA, or else venire/datasets in the user's cache."""
    given = os.environ.get("VENIRE_DATA")
    if given:
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "venire" / "datasets"


def path_of(name: str, root: Path | None = None) -> Path:
    """The folder with labels.csv and truth.csv of a set; a FetchError if it is not there."""
    chosen = data_set(name)
    folder = (root or cache_folder()) / name
    if not is_fetched(chosen, root):
        where = f" --data {root}" if root else ""
        raise FetchError(
            f"{name} is not in {folder.parent}: fetch it with: venire datasets fetch {name}{where}"
        )
    return folder


def is_fetched(chosen: DataSet, root: Path | None = None) -> bool:
    """Whether both tables of a set are there."""
    folder = (root or cache_folder()) / chosen.name
    return all((folder / table).is_file() for table in TABLES)


def load(name: str, root: str | Path | None = None) -> tuple[LabelTable, dict[Hashable, Hashable]]:
    """The labels of a set and what is known of their truth, from the cache or from `root`.

    Where a set repeats (task, worker) rows, `DataSet.repeats` says which one is kept and why.

    >>> load("rte", root="no-such-folder")
    Traceback (most recent call last):
    venire.errors.FetchError: rte is not in no-such-folder: fetch it with: venire datasets ...
    """
    from venire.labels.sources import as_table, as_truth

    chosen = data_set(name)
    folder = path_of(name, Path(root) if root is not None else None)
    table = as_table(folder / "labels.csv", repeats=chosen.repeats)
    right = as_truth(folder / "truth.csv", table)
    classes = (*table.classes, None)
    known = ((i, code) for i, code in enumerate(right.tolist()) if code >= 0)
    return table, {table.items[i]: classes[code] for i, code in known}


def fetch(
    name: str,
    root: Path | None = None,
    given: Path | None = None,
    source: str = SOURCE,
    told: Told | None = None,
) -> Path:
    """Bring a set into the cache, unless it is there; the folder that holds it.

    `root` is where to keep it instead of the cache, `given` a folder with the raw files (or with
    labels.csv and truth.csv) that were downloaded by hand.
    """
    chosen = data_set(name)
    home = root or cache_folder()
    folder = home / name
    if _is_normalised(chosen, folder):
        return folder
    try:
        home.mkdir(parents=True, exist_ok=True)
        raw = home / f".{name}.raw"
        draft = home / f".{name}.{os.getpid()}.part"
        try:
            draft.mkdir(exist_ok=True)
            _fill(chosen, raw, draft, given, source, told)
            shutil.rmtree(folder, ignore_errors=True)
            draft.replace(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(raw, ignore_errors=True)
    except FetchError:
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        message = f"cannot keep {name} in {home} ({reason}): give another folder with --data"
        raise FetchError(message) from None
    return folder


def _fill(
    chosen: DataSet, raw: Path, draft: Path, given: Path | None, source: str, told: Told | None
) -> None:
    if given is not None and _is_normalised(chosen, given):
        for table in TABLES:
            shutil.copyfile(given / table, draft / table)
        return
    raw.mkdir(exist_ok=True)
    for file in chosen.raw:
        _get(chosen, file, raw / file.name, given, source, told)
    try:
        made = chosen.normalise(raw)
    except _UNREADABLE as error:
        raise FetchError(f"{_not_as_recorded(chosen)} ({type(error).__name__}: {error})") from None
    from venire.files import Output, write_outputs  # NumPy, which a list of sets does not need

    labels = Output(draft / "labels.csv", made.columns, made.labels)
    write_outputs([labels, Output(draft / "truth.csv", ("task", "label"), made.truth)])
    if not _is_normalised(chosen, draft):
        raise FetchError(_not_as_recorded(chosen))


def _get(
    chosen: DataSet, file: RawFile, target: Path, given: Path | None, source: str, told: Told | None
) -> None:
    if target.exists() and (file.sha256 is None or sha256_of(target) == file.sha256):
        return
    if given is None:
        try:
            download(file.url(source), target, file.sha256, told)
        except FetchError as error:
            raise FetchError(f"{error}; offline, {_by_hand(chosen)}") from None
        return
    found = next((p for p in (given / file.path, given / file.name) if p.is_file()), None)
    if found is None:
        raise FetchError(f"{given} has no file {file.name}: {_by_hand(chosen)}")
    shutil.copyfile(found, target)
    check_sha256(target, file.sha256, str(found))


def _is_normalised(chosen: DataSet, folder: Path) -> bool:
    wanted = zip(TABLES, (chosen.labels_sha256, chosen.truth_sha256), strict=True)
    return all(
        (folder / table).is_file() and sha256_of(folder / table) == sha256
        for table, sha256 in wanted
    )


def _not_as_recorded(chosen: DataSet) -> str:
    return (
        f"the files of {chosen.name} are not those that were published: their labels differ from "
        "the recorded ones, so nothing was kept: get them at the recorded commit, see "
        f"venire datasets list {chosen.name}"
    )


def _by_hand(chosen: DataSet) -> str:
    count = len(chosen.raw)
    files = "the file" if count == 1 else f"the {count} files"
    return (
        f"download {files} that `venire datasets list {chosen.name}` names on another machine, "
        f"into one folder DIR, and run: venire datasets fetch {chosen.name} --from DIR"
    )
