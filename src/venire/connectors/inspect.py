"""inspect_ai: a panel of judges as its scorer, and the scores in its logs as a table of labels.

    from venire.connectors.inspect import panel_scorer

    task = Task(dataset, solver=generate(), scorer=panel_scorer("judges.yaml", correct="right"))

A sample is scored by the majority of the judges, and its log has what each of them said.
`read_logs` turns logs into rows of task, worker and label, from which `aggregate` learns how good
each judge is.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from venire.connectors.judges.answers import Cache, JudgeFault, NotSure
from venire.connectors.judges.judge import Judge
from venire.connectors.judges.panel import judges_of
from venire.connectors.traces.source import as_text
from venire.errors import FileError, InputError
from venire.tools.lazy import library
from venire.tools.untrusted import parse_json

#: Under which name the metadata of a score has what each judge said.
LABELS = "venire_labels"


class PanelScore(NamedTuple):
    """What a panel says of one sample: None if no judge gave a label, or it is a tie."""

    label: str | None
    labels: dict[str, str]
    why: str
    cost: float


async def panel_score(judges: Sequence[Judge], item: Mapping[str, Any]) -> PanelScore:
    """Ask all judges, and count their votes; a judge without a label does not vote."""
    said = await asyncio.gather(*(one.answer(item) for one in judges), return_exceptions=True)
    labels: dict[str, str] = {}
    lines, cost = [], 0.0
    for judge, answer in zip(judges, said, strict=True):
        if isinstance(answer, JudgeFault):
            cost += answer.cost
            word = "not sure" if isinstance(answer, NotSure) else f"no label ({answer})"
            lines.append(f"{judge.id}: {word}")
        elif isinstance(answer, BaseException):
            raise answer
        else:
            cost += answer.cost
            labels[judge.id] = answer.label
            reason = f", {answer.rationale}" if answer.rationale else ""
            lines.append(f"{judge.id}: {answer.label}{reason}")
    votes = Counter(labels.values()).most_common(2)
    tie = len(votes) == 2 and votes[0][1] == votes[1][1]
    label = votes[0][0] if votes and not tie else None
    return PanelScore(label, labels, "\n".join(lines), cost)


def panel_scorer(path: str | Path, correct: str, cache: str | Path | None = None) -> Any:
    """A scorer of inspect_ai: the judges of a file see `question`, `answer` and `reference`.

    A sample is correct if most judges say the class `correct`, and incorrect if most say another;
    a tie, or no label at all, is not an answer (N).
    """
    scoring = library("inspect_ai.scorer", "inspect")
    judges = judges_of(path, Cache(cache))
    for judge in judges:
        if correct not in judge.classes():
            raise InputError(
                f"correct is {correct!r}, expected one of the classes of judge {judge.id}: "
                f"{', '.join(judge.classes())}"
            )

    async def score(state: Any, target: Any) -> Any:
        item = {
            "question": state.input_text,
            "answer": state.output.completion,
            "reference": target.text,
        }
        found = await panel_score(judges, item)
        value = scoring.NOANSWER
        if found.label is not None:
            value = scoring.CORRECT if found.label == correct else scoring.INCORRECT
        kept = {LABELS: found.labels, "cost": found.cost}
        return scoring.Score(value=value, answer=found.label, explanation=found.why, metadata=kept)

    made = scoring.scorer(metrics=[scoring.accuracy(), scoring.stderr()], name="venire_panel")(
        lambda: score
    )
    return made()


@dataclass
class ReadLogs:
    """The labels in logs: (task, worker, label); `left_out` counts the scores that are none."""

    labels: list[tuple[str, str, str]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    samples: int = 0


def read_logs(path: str | Path, scorer: str | None = None) -> ReadLogs:
    """The scores of a log of inspect_ai in JSON, or of all logs in a folder.

    A worker is a scorer; of `venire_panel` each judge is one. A task is a sample, called by its id:
    behind the model that answered it if there are several, and with its epoch if there are more.
    `scorer` reads one scorer only.

    >>> import json, tempfile
    >>> sample = {"id": "q1", "epoch": 1, "scores": {"match": {"value": "C"}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = Path(folder, "log.json")
    ...     _ = log.write_text(json.dumps({"eval": {"model": "m"}, "samples": [sample]}))
    ...     read_logs(log).labels
    [('q1', 'match', 'C')]
    """
    files = sorted(Path(path).glob("*.json")) if Path(path).is_dir() else [Path(path)]
    logs = [(file, _log(file)) for file in files]
    if not logs:
        raise FileError(path, None, "has no logs in JSON: run inspect with --log-format json")
    samples = [
        (str(log["eval"].get("model") or ""), sample, file)
        for file, log in logs
        for sample in log.get("samples") or ()
    ]
    models = {model for model, _, _ in samples}
    epochs = {sample.get("epoch", 1) for _, sample, _ in samples if isinstance(sample, dict)}
    found = ReadLogs(samples=len(samples))
    rows: dict[tuple[str, str], str] = {}
    for model, sample, file in samples:
        if not isinstance(sample, dict) or "id" not in sample:
            raise FileError(file, None, "has a sample without an id: is this a log of inspect_ai?")
        task = str(sample["id"]) if len(models) == 1 else f"{model}/{sample['id']}"
        task += f"#{sample.get('epoch', 1)}" if len(epochs) > 1 else ""
        for name, score in (sample.get("scores") or {}).items():
            if scorer is not None and name != scorer:
                continue
            for worker, value in _said(name, score):
                label = as_text(value)
                if label is None:
                    found.left_out["scores that are not a class"] += 1
                elif (task, worker) in rows:
                    found.left_out["scored again in another log"] += 1
                else:
                    rows[task, worker] = label
    found.labels = [(task, worker, label) for (task, worker), label in rows.items()]
    return found


def _said(name: str, score: Any) -> list[tuple[str, Any]]:
    """Who said what: the judges of our panel, or the scorer itself."""
    if not isinstance(score, dict):
        return [(name, None)]
    ours = (score.get("metadata") or {}).get(LABELS)
    return list(ours.items()) if isinstance(ours, dict) else [(name, score.get("value"))]


def _log(file: Path) -> dict[str, Any]:
    try:
        log = parse_json(file.read_bytes())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(file, None, f"cannot be read ({reason}): check the path") from None
    except ValueError:
        log = None
    if not isinstance(log, dict) or not isinstance(log.get("eval"), dict):
        raise FileError(
            file, None, "is not a log of inspect_ai in JSON: write one with `inspect log convert`"
        )
    return log
