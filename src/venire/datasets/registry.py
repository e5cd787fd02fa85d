"""The public label sets that venire knows: where they come from and what they must be.

The data is never shipped. `fetch` downloads the raw files from their source at a fixed commit,
checks them, and brings them into one form (labels.csv, truth.csv), whose sha256 is recorded
here, so the result is always what our published figures were made from. The sha256 of a raw file is
recorded where we could compute it, and None elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from venire.datasets import normalise
from venire.errors import UnknownName

if TYPE_CHECKING:
    from venire.labels import Repeats

__all__ = ["SOURCE", "DataSet", "RawFile", "data_set", "data_sets"]

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
    normalise: Callable[[Path], normalise.Tables] = field(repr=False)
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
        normalise.bluebird,
        "7078930991606f9b752e48225afaa8d61d9ca85a4db3e2eca78cbb8af14e686f",
        "77454269f6bdb045c15d4f7998fed5f2b50f996d265c0fb6679f660f8c3e6839",
    ),
    DataSet(
        "dog",
        "four breeds of dogs (Zhou and others 2012)",
        _NO_LICENCE,
        *(807, 109, 8_070, 4),
        (RawFile(*_SPECTRAL, "src/dog_crowd.txt"), RawFile(*_SPECTRAL, "src/dog_truth.txt")),
        normalise.dog,
        "93dc926cac4f965b5bb5c399d7b47950da8d0a37b1a489f14acea11bf4fcd379",
        "a242909af7de7269b5ee053278d1bc5ff9584a5a522e72307a84d464636247c6",
    ),
    DataSet(
        "rte",
        "textual entailment (Snow and others 2008)",
        _NO_LICENCE,
        *(800, 164, 8_000, 2),
        (_SNOW,),
        normalise.rte,
        "cd42608dc19502388f649e724f42df57d9da3866686cbc01b5f53f10420bfb46",
        "39d6800e1aa8d28b61fd0179d1d4ecc03fa0c70289275a32a9c0e77440334251",
    ),
    DataSet(
        "temp",
        "which event came first (Snow and others 2008)",
        _NO_LICENCE,
        *(462, 76, 4_620, 2),
        (_SNOW,),
        normalise.temp,
        "95f73d389ab19796a2f40314b31b980cd92bfec3d7199ed6811145a9d6c049c4",
        "6f83f2f154e8bf99cb96f0fa0593ebfce93a7a617b0b1ffb88b3c03dff7f419a",
    ),
    DataSet(
        "web",
        "relevance of search results, five grades (Zhou and others 2012)",
        _NO_LICENCE,
        *(2_665, 177, 15_567, 5),
        (RawFile(*_SPECTRAL, "src/web_crowd.txt"), RawFile(*_SPECTRAL, "src/web_truth.txt")),
        normalise.web,
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
        normalise.product,
        "79cf4b3548e5cb6858a5f753abf63ca693b3b9545ebb9e64bf7376da9b6c2c94",
        "7c0912b83b685f6c40b3a462829279808a8ce0c20f88a482f680e9e390a874ab",
    ),
    DataSet(
        "llmjudge2024_binary",
        "33 language models judge passages of TREC DL 2023, grade 2 or above",
        "MIT",
        *(4_423, 33, 145_956, 2),
        (
            *(RawFile(*_JUDGES, f"submissions/scores/{j}.txt") for j in normalise.JUDGES),
            RawFile(
                "llm4eval/LLMJudge",
                "81159c68260d383f8da1dad8a14f6d914a9054a9",
                f"data/{normalise.GRADES}",
            ),
        ),
        normalise.llmjudge2024_binary,
        "5a0658aa75732e928aeecca8b7830dd2676f98af9d1f2792108e3bd62c2f9c2e",
        "887b71e723caf0b8a4b4fcdb9ae528c97f31f5f7dc07a293e9e33e3f98a09c24",
    ),
    DataSet(
        "medrelex_cause",
        "does the sentence say that one thing causes the other? with start and submit times",
        _NO_LICENCE,
        *(3_231, 468, 50_962, 2),
        (*_relex_batches(), RawFile(*_MEDICAL, normalise.EXPERTS)),
        normalise.medrelex_cause,
        "1b90930f18555cc384195bc80674309227d0723a7d2de140d482af05d304ebd3",
        "e78f0813dac3d2346c35c317a330d146d7c9d52c728ea6bd91272d9e46eeaba9",
        # 736 workers met a sentence twice, hours apart, and 66 of them changed their mind. The
        # first answer is kept: it was given without having seen the sentence before.
        repeats="first",
    ),
)
