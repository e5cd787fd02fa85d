"""Twelve weak labelers of handwritten digits, with real, related mistakes, and what they cost.

The images are the 1,797 digits of 8 x 8 pixels that scikit-learn carries with it, so nothing is
downloaded. 600 of them train the panel, the other 1,197 are the stream. Every labeler is
handicapped in its own way (few examples, part of the picture, a shallow tree, noisy training
images). They stand for the kinds of labelers that people have, and have their terms: persons and
judges give a label a slot, persons for more money; models are quick, cheap and weak. All are
classifiers in truth. Nothing here is random: fixed seeds choose the images, the examples and the
noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.errors import MissingExtra
from venire.labels import LabelTable
from venire.simulation import Poisson, World

__all__ = ["DIGITS", "PRICES", "RATE", "SLOTS", "TRAINING_IMAGES", "DigitJob", "load_job"]

#: The classes.
DIGITS = tuple(range(10))

#: How many images train the panel; the others are the stream.
TRAINING_IMAGES = 600
#: Mean number of images that arrive in a slot.
RATE = 3.0
#: The horizon: by then nearly all of the 1,197 images have arrived, each of them once.
SLOTS = 400

#: What one label costs, by the kind of labeler, in the unit of the weights (3 to 10 an image).
PRICES = {"person": 0.10, "judge": 0.03, "model": 0.01}

_SPLIT_SEED = 219
_TRAINING_SEED = 4541

Images = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Trainee:
    """A labeler before its training: what it sees, from how many examples, and how fast it is."""

    kind: str
    name: str
    model: Any
    examples: int
    sees: Callable[[Images], Images]
    noise: float = 0.0
    capacity: int = 1

    def train(self, images: Images, truth: Numbers, seed: int) -> Trainee:
        """Learn from some of the images, chosen by the seed; returns itself."""
        rng = np.random.default_rng([_TRAINING_SEED, seed])
        chosen = rng.choice(len(images), self.examples, replace=False)
        examples = images[chosen] + self.noise * rng.normal(size=images[chosen].shape)
        self.model.fit(_flat(self.sees(examples)), truth[chosen])
        return self

    def label(self, images: Images) -> Numbers:
        """Say which digit each image shows."""
        said: Numbers = self.model.predict(_flat(self.sees(images)))
        return said


def _trainees() -> list[Trainee]:
    """The panel, in alphabetical order, so that the order says nothing about quality."""
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    linear = partial(LogisticRegression, max_iter=1000)
    return [
        Trainee("person", "bayes", GaussianNB(var_smoothing=0.01), 150, _whole),
        Trainee("judge", "bottom-half", linear(), 60, lambda x: x[:, 4:]),
        Trainee("judge", "centre", KNeighborsClassifier(3), 100, lambda x: x[:, 2:6, 2:6]),
        Trainee("model", "few-15", KNeighborsClassifier(1), 15, _whole, capacity=2),
        Trainee("judge", "few-40", KNeighborsClassifier(1), 40, _whole),
        Trainee("judge", "left-half", linear(), 60, lambda x: x[:, :, :4]),
        Trainee("model", "noisy", RidgeClassifier(), 100, _whole, noise=1.0, capacity=3),
        Trainee("person", "right-half", linear(), 100, lambda x: x[:, :, 4:]),
        Trainee("person", "shadows", linear(), 80, _shadows),
        Trainee("person", "shrunk", KNeighborsClassifier(1), 60, _shrunk),
        Trainee("judge", "top-half", linear(), 60, lambda x: x[:, :4]),
        Trainee(
            "model", "tree", DecisionTreeClassifier(max_depth=4, random_state=0), 80, _whole, 0.0, 3
        ),
    ]


def _flat(images: Images) -> Images:
    return images.reshape(len(images), -1)


def _whole(images: Images) -> Images:
    return images


def _shadows(images: Images) -> Images:
    """The ink of each row and of each column."""
    return np.hstack([images.sum(axis=1), images.sum(axis=2)])


def _shrunk(images: Images) -> Images:
    """The image at 4 x 4 pixels."""
    small: Images = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4))
    return small


@dataclass(frozen=True, eq=False)
class DigitJob:
    """The job of the demo: images to be labelled, and what every labeler says of each.

    `said[i, m]` is what labeler m says of image i. `competences` is the share of the stream's
    images that each labeler gets right. Schedulers see neither it nor `truth`: they are for
    evaluation, and for the genie.

    >>> job = load_job()
    >>> job.said.shape, job.labelers[int(job.competences.argmax())], sum(job.capacity)
    ((1197, 12), 'bayes', 17)
    """

    names: tuple[str, ...]
    images: Images
    truth: Numbers
    labelers: tuple[str, ...]
    kinds: tuple[str, ...]
    capacity: tuple[int, ...]
    said: Numbers

    @cached_property
    def competences(self) -> NDArray[np.float64]:
        """How often each labeler is right, measured on the whole stream."""
        return np.asarray((self.said == self.truth[:, None]).mean(axis=0), dtype=np.float64)

    @cached_property
    def table(self) -> LabelTable:
        """All labels of all labelers."""
        item, labeler = np.indices(self.said.shape)
        codes = item.ravel(), labeler.ravel(), self.said.ravel()
        return LabelTable.from_codes(*codes, self.names, self.labelers, DIGITS)

    @property
    def prices(self) -> tuple[float, ...]:
        """What one label of each labeler costs."""
        return tuple(PRICES[kind] for kind in self.kinds)

    @cached_property
    def row(self) -> dict[str, int]:
        """The number of each image, by name."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def best(self) -> int:
        """The labeler who is right most often."""
        return int(self.competences.argmax())

    @cached_property
    def contents(self) -> dict[str, list[float]]:
        """What a student sees: the pixels of each image, by name."""
        return dict(zip(self.names, _flat(self.images).tolist(), strict=True))

    def only(self, labeler: int) -> DigitJob:
        """The same job with a panel of one."""
        one = slice(labeler, labeler + 1)
        panel = self.labelers[one], self.kinds[one], self.capacity[one], self.said[:, one]
        return DigitJob(self.names, self.images, self.truth, *panel)

    def world(self, seed: int) -> World:
        """The stream: every image once, in an order, at times and with weights from the seed."""
        truth = dict(zip(self.names, self.truth.tolist(), strict=True))
        world = World.recorded(
            self.table,
            truth,
            self.competences,
            seed,
            Poisson(RATE),
            capacity=self.capacity,
            repeats=False,
        )
        panel = zip(world.panel, self.prices, strict=True)
        return replace(world, panel=tuple(replace(who, price=price) for who, price in panel))


@cache
def load_job() -> DigitJob:
    """Train the panel and ask it about every other image; the same every time."""
    images, truth = _digits()
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(images))
    train, held_out = order[:TRAINING_IMAGES], order[TRAINING_IMAGES:]
    panel = _trainees()
    for seed, trainee in enumerate(panel):
        trainee.train(images[train], truth[train], seed)
    return DigitJob(
        names=tuple(f"digit-{i:04d}" for i in held_out),
        images=images[held_out],
        truth=truth[held_out],
        labelers=tuple(trainee.name for trainee in panel),
        kinds=tuple(trainee.kind for trainee in panel),
        capacity=tuple(trainee.capacity for trainee in panel),
        said=np.column_stack([trainee.label(images[held_out]) for trainee in panel]),
    )


def _digits() -> tuple[Images, Numbers]:
    """Images with ink from 0 to 1, and the digit of each."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingExtra("scikit-learn", "demo") from None
    bundled = load_digits()
    return bundled.images / 16.0, bundled.target.astype(np.int64)
