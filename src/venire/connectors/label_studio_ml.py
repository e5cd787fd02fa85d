"""A Label Studio ML backend as a labeler.

    backend = LabelStudioBackend("ner", "http://127.0.0.1:9090", classes=["spam", "ok"])
    vn.label(items, [backend, ...], budget)

Any backend for `Choices` works: it is called as Label Studio does, `POST /predict` with tasks,
the labelling config and a project; Label Studio itself is not needed. The config is a file, or is
made of the classes and the field of the items that is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from xml.sax.saxutils import quoteattr

from venire.batch import Answer, NoAnswer
from venire.connectors.http import Calling, Endpoint
from venire.connectors.models import Said
from venire.errors import FileError, InputError
from venire.files.label_config import rationale_in
from venire.files.trees import check_url


class LabelStudioBackend(Endpoint):
    """An ML backend of Label Studio that predicts one choice for each task.

    Parameters
    ----------
    id, url
        The labeler, and the address of the backend, without `/predict`.
    classes
        The choices.
    fields
        The field of an item that the made config shows.
    label_config
        The text of a labelling config, or a file that ends in .xml; by default one is made.
    from_name
        Which control tag of the config has the label; by default the first with a choice.
    batch, price, calling
        How many tasks a request has, what a label costs, and how the backend is called.

    Examples
    --------
    >>> backend = LabelStudioBackend("b", "http://127.0.0.1:9090", classes=["spam", "ok"])
    >>> said = {"type": "choices", "from_name": "label", "value": {"choices": ["spam"]}}
    >>> backend.read({"results": [{"result": [said], "score": 0.9}]})
    [Answer(label='spam', cost=None, confidence=0.9, rationale=None)]
    """

    def __init__(
        self,
        id: str,
        url: str,
        *,
        classes: Sequence[str] | None = None,
        fields: str = "text",
        label_config: str | Path | None = None,
        from_name: str | None = None,
        batch: int = 16,
        price: float = 0.0,
        calling: Calling | None = None,
    ) -> None:
        if label_config is None and not classes:
            raise InputError(f"labeler {id!r} needs classes, or label_config, a file .xml")
        given = choices_config(classes or (), fields) if label_config is None else label_config
        self._config = _config(given)
        self._from = from_name
        to = check_url(("label_studio_ml",), url).removesuffix("/predict") + "/predict"
        super().__init__(
            id, to, self._tasks, self.read, classes, batch=batch, price=price, calling=calling
        )

    @classmethod
    def of_entry(cls, folder: Path, id: str, url: str, **options: Any) -> Self:
        config = options.get("label_config")
        if isinstance(config, str) and not config.lstrip().startswith("<"):
            options["label_config"] = folder / config
        return super().of_entry(folder, id, url, **options)

    def _tasks(self, items: Sequence[Any]) -> Any:
        """The request that Label Studio would make."""
        tasks = [
            {"id": n, "data": dict(item) if isinstance(item, Mapping) else {"text": item}}
            for n, item in enumerate(items, 1)
        ]
        return {
            "tasks": tasks,
            "project": "venire.1",
            "label_config": self._config,
            "params": {},
        }

    def read(self, said: Any) -> Said:
        """The choices in the answer; raises `ValueError` or `LookupError` if it is none."""
        results = said.get("results") if isinstance(said, Mapping) else None
        if not isinstance(results, list):
            raise ValueError("the answer of the backend has no results")
        return [self._one(result) for result in results]

    def _one(self, prediction: Any) -> Answer | NoAnswer:
        if isinstance(prediction, list):  # newer backends may give several: the first is the best
            prediction = prediction[0] if prediction else {}
        if not isinstance(prediction, Mapping):
            raise ValueError("a result of the backend is not a prediction")
        for part in prediction.get("result") or ():
            if not isinstance(part, Mapping) or self._from not in (None, part.get("from_name")):
                continue
            value = part.get("value")
            chosen = value.get("choices") if isinstance(value, Mapping) else None
            if isinstance(chosen, list) and chosen:
                if len(chosen) > 1 or not isinstance(chosen[0], str):
                    return NoAnswer(f"labeler {self.id}: {chosen!r} is not one choice")
                if self._classes == []:  # where a config is given: none of its choices is a class
                    return NoAnswer(f"labeler {self.id}: {chosen[0][:80]!r} is not a class")
                score = part.get("score", prediction.get("score"))
                return self._answer(chosen[0], score, rationale_in(prediction["result"]))
        return NoAnswer(f"labeler {self.id}: no choice")


def choices_config(classes: Sequence[str], field: str = "text") -> str:
    """A labelling config that shows a text and asks for one of the classes.

    >>> choices_config(["spam", "ok"], "body").splitlines()[1]
    '  <Text name="item" value="$body"/>'
    """
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in classes)
    return (
        f'<View>\n  <Text name="item" value={quoteattr("$" + field)}/>\n'
        f'  <Choices name="label" toName="item" choice="single">\n{choices}\n'
        "  </Choices>\n</View>"
    )


def _config(given: str | Path) -> str:
    if isinstance(given, str) and given.lstrip().startswith("<"):
        return given
    path = Path(given)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise FileError(path, None, f"cannot be read ({fault}): check label_config") from None
