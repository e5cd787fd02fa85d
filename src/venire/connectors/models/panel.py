r"""Models in a panel file: `venire label --panel` and `venire work --panel`.

    labelers:
      - {id: forest, sklearn: forest.skops, fields: text, batch: 64}
      - {id: net, onnx: net.onnx, fields: pixels, classes: [cat, dog], scores: logits}
      - id: service
        http: https://models.example.org/predict
        request: {instances: "{{ items | map(attribute='text') | list }}"}
        answers: predictions
        probabilities: scores
        classes: [cat, dog]
        batch: 32
      - {id: backend, label_studio_ml: "http://127.0.0.1:9090", classes: [cat, dog]}
      - {id: rules, call: "mine:rules"}          # a function, as ever

Paths of files are relative to the panel file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields as fields_of
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from venire.batch.labelers import Caller, as_callers
from venire.batch.labelling import read_batch_panel
from venire.errors import InputError, UnknownName

#: What every kind of model may say, and how a model behind HTTP is called.
SHARED: Final = ("id", "price", "batch", "family")
CALLING: Final = (
    *("api_key_env", "api_key_header", "rpm", "max_parallel"),
    *("num_retries", "timeout"),
)

#: The keys of each kind of model, beyond those.
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "sklearn": ("fields", "classes", "trust"),
    "onnx": ("fields", "classes", "scores", "output"),
    "http": (
        *("request", "label", "confidence", "rationale", "probabilities", "answers", "classes"),
        *CALLING,
    ),
    "label_studio_ml": ("fields", "classes", "label_config", "from_name", *CALLING),
}


def read_panel_of_models(
    path: str | Path, find: Callable[[str], Callable[[Any], Any]]
) -> tuple[Caller, ...]:
    """The labelers of a panel file: functions, columns and models.

    `find` turns `module:function` into a function.
    """
    folder = Path(path).resolve().parent
    return read_batch_panel(path, find, {kind: partial(model_of, folder, kind) for kind in KINDS})


def model_of(folder: Path, kind: str, entry: Mapping[str, Any]) -> Caller:
    """The model of one entry of a panel file.

    >>> entry = {"id": "b", "label_studio_ml": "http://127.0.0.1:9090", "classes": ["x", "y"]}
    >>> model_of(Path("."), "label_studio_ml", entry).many
    16
    """
    known = (*SHARED, kind, *KINDS[kind])
    unknown = next((str(key) for key in entry if key not in known), None)
    if unknown is not None:
        raise UnknownName(f"key of {kind} labeler {entry['id']}", unknown, known)
    options = {key: value for key, value in entry.items() if key not in ("id", kind, "family")}
    if "classes" in options:
        options["classes"] = _names(entry["id"], options["classes"])
    (caller,) = as_callers([_MADE[kind](folder, str(entry["id"]), str(entry[kind]), options)])
    return replace(caller, family=entry.get("family"))


def _names(labeler: Any, classes: Any) -> list[str]:
    """Names of classes; YAML reads an unquoted yes or no as a truth value."""
    odd = not isinstance(classes, list) or any(isinstance(one, bool | None) for one in classes)
    if odd or len(set(map(str, classes))) < max(2, len(classes)):
        raise InputError(
            f"{labeler} has the classes {classes!r}, expected a list of two or more names: put "
            'names such as "yes" and "no" in quotes'
        )
    return list(map(str, classes))


def _sklearn(folder: Path, id: str, file: str, options: dict[str, Any]) -> Any:
    from venire.connectors.sklearn import SklearnModel, load

    estimator = load(folder / file, options.pop("trust", False))
    return SklearnModel(id, estimator, **options)


def _onnx(folder: Path, id: str, file: str, options: dict[str, Any]) -> Any:
    from venire.connectors.onnx import OnnxModel

    return OnnxModel(id, folder / file, **options)


def _http(folder: Path, id: str, url: str, options: dict[str, Any]) -> Any:
    from venire.connectors.http import HttpModel

    if "request" not in options:
        example = '{text: "{{ item.text }}"}'
        raise InputError(f"{id} needs request: the JSON to send, such as {example}")
    return HttpModel(id, url, **_called(options))


def _label_studio(folder: Path, id: str, url: str, options: dict[str, Any]) -> Any:
    from venire.connectors.label_studio_ml import LabelStudioBackend

    config = options.get("label_config")
    if isinstance(config, str) and not config.lstrip().startswith("<"):
        options["label_config"] = folder / config
    return LabelStudioBackend(id, url, **_called(options))


def _called(options: dict[str, Any]) -> dict[str, Any]:
    from venire.connectors.http import Calling

    names = {field.name for field in fields_of(Calling)}
    calling = {key: value for key, value in options.items() if key in names}
    rest = {key: value for key, value in options.items() if key not in names}
    return {**rest, "calling": Calling(**calling)}


_MADE: Final[Mapping[str, Callable[[Path, str, str, dict[str, Any]], Any]]] = {
    "sklearn": _sklearn,
    "onnx": _onnx,
    "http": _http,
    "label_studio_ml": _label_studio,
}
