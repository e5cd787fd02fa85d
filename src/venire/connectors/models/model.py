"""`Model`: a function of many inputs as a labeler, asked in batches.

A fault is never a label. An item that has not what the model needs, or for which it gives no
number, has no answer; where a batch as a whole fails, its items are asked one by one, and those
that fail alone have none. If all of them fail it is the model that is at fault: that is an error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from venire.batch import Answer, NoAnswer
from venire.connectors.models.inputs import Inputs
from venire.errors import InputError, VenireError

__all__ = ["Model"]

LOG = logging.getLogger("venire.models")

Said = list[Answer | NoAnswer]


class Model:
    """A function that answers a list of inputs, as a labeler for `vn.label` and `venire work`.

    `fields` says what of an item it is shown, `batch` how many items it likes at a time, `price`
    what a label costs.

    >>> def shout(texts):
    ...     return [Answer("loud" if text.isupper() else "quiet", confidence=0.9) for text in texts]
    >>> model = Model("shout", shout, fields="text", batch=64)
    >>> [one.label for one in model.answer([{"text": "BUY"}, {"text": "see you"}])]
    ['loud', 'quiet']
    """

    def __init__(
        self,
        id: str,
        predict: Callable[[list[Any]], Said],
        *,
        fields: str | Sequence[str] | None = None,
        batch: int = 64,
        price: float = 0.0,
    ) -> None:
        """`predict` is only called by one thread at a time."""
        if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
            raise InputError(f"labeler {id!r} has batch {batch!r}, expected 1 or more")
        self.id, self.price, self.many, self.parallel = id, price, batch, 1
        self.stopped: str | None = None
        self._inputs, self._predict = Inputs(fields), predict

    def answer(self, items: Sequence[Any]) -> Said:
        """What the model says of each item: an `Answer`, or a `NoAnswer`."""
        found: list[Answer | NoAnswer | None] = [None] * len(items)
        shown: dict[int, Any] = {}
        for n, item in enumerate(items):
            try:
                shown[n] = self._inputs.of(item)
            except NoAnswer as none:
                found[n] = none
        if shown:
            for n, one in zip(shown, self._ask(list(shown.values())), strict=True):
                found[n] = one
        return [one for one in found if one is not None]

    def _ask(self, inputs: list[Any]) -> Said:
        try:
            return self._checked(inputs)
        except VenireError as fault:
            raise InputError(f"labeler {self.id}: {fault}") from fault
        except Exception as fault:
            if len(inputs) == 1:
                raise
            alone = [self._alone(one) for one in inputs]
            if not any(isinstance(one, Answer) for one in alone):
                raise
            LOG.info("labeler %s: a batch failed (%s): asked one by one", self.id, fault)
            return alone

    def _alone(self, one: Any) -> Answer | NoAnswer:
        try:
            return self._checked([one])[0]
        except Exception as fault:
            return NoAnswer(f"labeler {self.id}: {type(fault).__name__}: {fault}")

    def _checked(self, inputs: list[Any]) -> Said:
        said = self._predict(inputs)
        if len(said) != len(inputs):
            raise InputError(f"gave {len(said)} answers to {len(inputs)} items")
        return said
