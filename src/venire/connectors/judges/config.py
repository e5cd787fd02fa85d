"""`judges.yaml`, or `judges.toml`: judges as they are configured, checked, without their keys.

    classes: {spam: it sells something, ok: anything else}   # for every judge
    prompt: "{{ text }}"
    judges:
      - {id: strict, model: gpt-x, rpm: 500, price: {input: 0.15, output: 0.6}}
      - {id: local, model: llama, base_url: "http://127.0.0.1:8000/v1", temperature: 0}

What stands beside `judges` holds for every judge that does not say otherwise; a list of judges
alone is enough too. Keys that are not known here (`temperature`, `max_tokens`, `seed`, ...) are
sent to the API as they are. An error names the key, what it is and what was expected.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from venire.connectors.judges.answers import Price, digest
from venire.connectors.judges.prompt import NOT_SURE
from venire.errors import FileError
from venire.files.trees import (
    BadKey,
    Keys,
    Tree,
    check_classes,
    check_name,
    check_number,
    check_text,
    check_truth,
    check_url,
    check_whole,
    read_tree,
    shown_path,
)
from venire.tools.csv_rows import shown

OPENAI, OPENAI_KEY = "https://api.openai.com/v1", "OPENAI_API_KEY"

#: What may not be sent along, and what to do instead.
_NOT_SENT = {
    "api_key": "keys come from the environment only: name the variable with api_key_env",
    "messages": "write them as prompt and system",
    "n": "ask several times with votes",
    "stream": "answers are read as a whole: leave it out",
}


def _price(path: Keys, value: Any) -> Price:
    known = [f.name for f in fields(Price)]
    if not isinstance(value, Mapping) or not set(value) <= set(known):
        raise BadKey(path, f"is {value!r}, expected {{input: ..., output: ...}} per million tokens")
    for name, price in value.items():
        if isinstance(price, bool) or not isinstance(price, int | float) or not price >= 0:
            raise BadKey((*path, name), f"is {price!r}, expected a number, 0 or more")
    return Price(**{name: float(price) for name, price in value.items()})


def _share(path: Keys, value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise BadKey(path, f"is {value!r}, expected a share from 0 to 1, such as 0.5 for half")
    return float(value)


def _pair(path: Keys, value: Any) -> tuple[str, str]:
    named = isinstance(value, list) and len(value) == 2 and all(isinstance(n, str) for n in value)
    if not named or value[0] == value[1]:
        raise BadKey(path, f"is {value!r}, expected the two fields that are compared, as [a, b]")
    return value[0], value[1]


def _key(check: Callable[[Keys, Any], Any], default: Any = MISSING, decides: bool = False) -> Any:
    """A key of a judge: its check, its default (which may be made), whether it decides answers."""
    given = {"default_factory" if callable(default) else "default": default}
    return field(**given, metadata={"check": check, "decides": decides})


@dataclass(frozen=True)
class JudgeConfig:
    """What `judges.yaml` says of one judge.

    >>> config = JudgeConfig.read({"id": "a", "model": "m", "prompt": "{{ text }}", "seed": 1,
    ...                            "classes": ["spam", "ok"], "price": {"input": 0.5}})
    >>> config.classes, config.price.input, config.extra
    ({'spam': '', 'ok': ''}, 0.5, {'seed': 1})
    """

    id: str = _key(check_name)
    model: str = _key(check_text, decides=True)
    prompt: str = _key(check_text, decides=True)
    base_url: str = _key(check_url, OPENAI)
    api_key_env: str | None = _key(check_text, None)
    system: str = _key(check_text, "", decides=True)
    classes: Mapping[str, str] = _key(check_classes, dict, decides=True)
    rpm: float | None = _key(check_number, None)
    tpm: float | None = _key(check_number, None)
    max_parallel: int = _key(check_whole(1), 16)
    num_retries: int = _key(check_whole(0), 4)
    timeout: float = _key(check_number, 60.0)
    votes: int = _key(check_whole(1), 1, decides=True)
    logprobs: bool = _key(check_truth, False, decides=True)
    price: Price = _key(_price, Price)  # noqa: RUF009
    batch_discount: float = _key(_share, 0.5)
    pair: tuple[str, str] | None = _key(_pair, None, decides=True)
    family: str | None = _key(check_name, None)
    trusted: bool = _key(check_truth, False)
    rationale: bool = _key(check_truth, False, decides=True)
    not_sure: bool = _key(check_truth, False, decides=True)
    reference: str | None = _key(check_text, None, decides=True)
    answer_first: str = _key(check_text, "", decides=True)
    files: str | None = _key(check_text, None)
    fetch_private: bool = _key(check_truth, False)
    extra: Mapping[str, Any] = field(default_factory=dict, metadata={"decides": True})

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> JudgeConfig:
        """From the keys of one judge; raises `BadKey`."""
        known = {name: check for name, check in _CHECKS.items() if said.get(name) is not None}
        values = {name: check((name,), said[name]) for name, check in known.items()}
        extra = {name: value for name, value in said.items() if name not in _CHECKS}
        for name in extra:
            _check_sent(name, said)
        for name in ("id", "model", "prompt"):
            if name not in values:
                raise BadKey((name,), "is missing: every judge needs an id, a model and a prompt")
        values.setdefault("api_key_env", OPENAI_KEY if "base_url" not in values else None)
        config = cls(**values, extra=extra)
        config._check_pair()
        if config.not_sure and NOT_SURE in config.classes:
            raise BadKey(("not_sure",), f'and a class called "{NOT_SURE}": drop one of them')
        return config

    @property
    def digest(self) -> str:
        """A fingerprint of what decides its answers: model, prompt, classes and the like.

        >>> said = {"id": "a", "model": "m", "prompt": "{{ text }}"}
        >>> one, other = (JudgeConfig.read(said | {"rpm": rpm}) for rpm in (10, 20))
        >>> one.digest == other.digest != JudgeConfig.read(said | {"model": "n"}).digest
        True
        """
        deciding = (key.name for key in fields(self) if key.metadata["decides"])
        return digest({name: getattr(self, name) for name in deciding})[:16]

    def _check_pair(self) -> None:
        if self.pair is not None and len(self.classes) not in (2, 3):
            message = (
                f"has {len(self.classes)} classes, expected the first, the second and optionally "
                "the tie: such as [A, B, tie]"
            )
            raise BadKey(("classes",), message)


_CHECKS = {key.name: key.metadata["check"] for key in fields(JudgeConfig) if key.name != "extra"}


def _check_sent(name: str, said: Mapping[str, Any]) -> None:
    if name in _NOT_SENT:
        raise BadKey((name,), f"cannot be sent to the API: {_NOT_SENT[name]}")
    near = difflib.get_close_matches(name, _CHECKS, n=1, cutoff=0.85)
    if near and near[0] not in said:
        raise BadKey((name,), f"is not a key of a judge: did you mean {near[0]}?")


def read_judges(path: str | Path) -> tuple[JudgeConfig, ...]:
    r"""Read the judges of a file; an error names its line or key.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "judges.toml")
    ...     _ = file.write_text('prompt = "{{ text }}"\n[[judges]]\nid = "a"\nmodel = "m"\n')
    ...     read_judges(file)[0].id
    'a'
    """
    path = Path(path)
    tree = read_tree(path)
    shared, judges, root = _parts(path, tree.content)
    configs: list[JudgeConfig] = []
    for n, judge in enumerate(judges):
        where = (*root, n)
        if not isinstance(judge, Mapping):
            raise _error(
                path, tree, where, f"is {shown(str(judge))}, expected id, model, prompt and so on"
            )
        try:
            read = JudgeConfig.read({**shared, **judge})
            folder = read.files and str(path.parent / read.files)
            configs.append(replace(read, files=folder))
        except BadKey as bad:
            own = isinstance(bad.path[0], int) or bad.path[0] in judge or bad.path[0] not in shared
            full = (*where, *bad.path) if own else bad.path
            raise _error(path, tree, full, bad.message) from None
        first = next(i for i, config in enumerate(configs) if config.id == configs[n].id)
        if first != n:
            message = f"is {configs[n].id!r}, as {shown_path((*root, first))} is: rename one"
            raise _error(path, tree, (*where, "id"), message)
    return tuple(configs)


def _parts(path: Path, content: Any) -> tuple[dict[str, Any], list[Any], tuple[str | int, ...]]:
    """What all judges share, the judges, and the path of keys to them."""
    if isinstance(content, list) and content:
        return {}, content, ()
    if not isinstance(content, Mapping) or not isinstance(content.get("judges"), list):
        raise FileError(path, None, "has no list of judges: write `judges:` and one entry for each")
    if not content["judges"]:
        raise FileError(path, None, "the list of judges is empty: write one entry for each")
    return {k: v for k, v in content.items() if k != "judges"}, content["judges"], ("judges",)


def _error(path: Path, tree: Tree, where: tuple[str | int, ...], message: str) -> FileError:
    return FileError(path, tree.line(where), f"{shown_path(where)} {message}")
