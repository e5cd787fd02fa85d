"""`venire export`, `venire import`: a stream for other programs, and their labels as a table."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, screen
from venire.cli.shared.stores import STORE, StorageUrl, StreamName, open_stream
from venire.connectors.traces import PROGRAMS as TRACES
from venire.errors import InputError, UnknownName

if TYPE_CHECKING:
    from venire.connectors.traces.source import Source
    from venire.files.label_config import Control
    from venire.server.store import Storage


#: Programs that keep traces; a connector of theirs is one file more.
TRACED = tuple(TRACES)
PROGRAMS = ("label-studio", "inspect", *TRACED)

PROGRAM = f"Where the labels are: {', '.join(PROGRAMS[:-1])} or {PROGRAMS[-1]}."
FILE = (
    "What Label Studio exported, JSON or JSON-MIN; a log of inspect in JSON, or a folder of logs; "
    "or the address of the others."
)
GOLD = "With mlflow: also write what was expected, task,label, as gold. [default: not written]"
TO_FILE = "The table to write: .csv, .parquet or .jsonl."
IMPORT_CONTROL = (
    "The control that says the class, as from_name in the file. [default: the only one]"
)

#: Where a program keeps traces, and which annotations of them are meant.
Project = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Phoenix: the project; MLflow: the experiment; Langfuse: the annotation queue.",
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=(
            "Which annotations (Phoenix), assessments (MLflow), scores (Langfuse) or scorer "
            "(inspect)."
        ),
    ),
]


def importing(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help=PROGRAM)],
    file: Annotated[str, typer.Argument(metavar="FILE", help=FILE)],
    to: Annotated[Path, typer.Option(metavar="FILE", help=TO_FILE)] = Path("labels.csv"),
    control: Annotated[str | None, typer.Option(metavar="NAME", help=IMPORT_CONTROL)] = None,
    project: Project = None,
    name: Name = None,
    gold: Annotated[Path | None, typer.Option(metavar="FILE", help=GOLD)] = None,
    as_json: AsJson = False,
) -> None:
    """Turn labels of other programs into a table: task, worker, label.

    Phoenix: a task is a span, a worker the identifier of an annotation or the user who made it.
    MLflow: a task is a trace, a worker the source of its feedback. Langfuse: a task is a trace of
    an annotation queue, a worker the author of a score. inspect: a task is a sample, a worker is a
    scorer, or a judge of venire's panel. Label Studio: a task is called by its number, a worker by
    the e-mail address or the number of the user. Skipped tasks and annotations without exactly one
    class are left out, and counted.
    """
    from venire.files import Output, check_targets, write_outputs

    if program not in PROGRAMS:
        raise UnknownName("program", program, PROGRAMS)
    traced = program in TRACED
    wrong = (project, gold) if program == "inspect" else (project, gold, name)
    if not traced and any(value is not None for value in wrong):
        raise InputError(f"--project, --name and --gold are for {', '.join(TRACED)}: drop them")
    check_targets((to, gold), () if traced else (Path(file),))
    found = _traced(program, file, project, name) if traced else _read(program, file, control, name)
    outputs = [Output(to, ("task", "worker", "label"), found.labels)]
    if gold is not None:
        outputs.append(Output(gold, ("task", "label"), list(found.gold.items())))
    write_outputs(outputs)
    if as_json:
        counts = {"labels": len(found.labels), **found.counts, "left_out": found.left_out}
        print(json.dumps({**counts, "path": str(to), **found.more}))
        return
    print(f"{len(found.labels):,} labels of {found.source} in {to}")
    if gold is not None:
        print(f"{len(found.gold):,} expectations in {gold}")
    if found.left_out:
        why = ", ".join(f"{count:,} {reason}" for reason, count in found.left_out.items())
        print(f"left out: {why}")


@dataclass(frozen=True)
class Imported:
    """The labels of another program, what they are of, and what JSON says beside them."""

    labels: Sequence[tuple[Any, ...]]
    left_out: Mapping[str, int]
    source: str
    counts: dict[str, int] = field(default_factory=dict)
    more: dict[str, str] = field(default_factory=dict)
    gold: Mapping[str, str] = field(default_factory=dict)


def _read(program: str, file: str, control: str | None, scorer: str | None) -> Imported:
    """The labels in a file of Label Studio, or in logs of inspect."""
    from venire.connectors.inspect import read_logs
    from venire.connectors.label_studio import read_export

    if program == "inspect":
        logs = read_logs(file, scorer)
        if not logs.labels:
            named = "" if scorer is None else f" of the scorer {scorer!r}"
            raise InputError(f"{file} has no score{named} that is a class: nothing was written")
        counts = {"samples": logs.samples}
        return Imported(logs.labels, logs.left_out, f"{logs.samples:,} samples", counts)
    found = read_export(Path(file), control)
    if not found.labels:
        raise InputError(f"{file} has no label of one class: nothing was written")
    name = found.control.name
    return Imported(found.labels, found.left_out, name, more={"control": name})


def _traced(program: str, url: str, project: str | None, name: str | None) -> Imported:
    """The labels in a program that keeps traces."""
    from venire.connectors.traces import source_of
    from venire.connectors.traces.source import Found

    async def read() -> Found:
        async with source_of(program, url, project, name) as source:
            return await Found.read(source)

    found = asyncio.run(read())
    if not found.labels:
        raise InputError(f"{url} has no label in {found.traces:,} traces: nothing was written")
    counts = {"gold": len(found.gold), "traces": found.traces}
    said = f"{found.traces:,} traces"
    return Imported(found.labels, found.left_out, said, counts, gold=found.gold)


WHAT = f"labels, verdicts, revisions, gold, notes, repeats, log, label-studio, {', '.join(TRACED)}."
TO = (
    "The file to write; all but log and label-studio: .csv, .parquet, .jsonl or .dataset. With "
    f"{', '.join(TRACED)}: the address of the program."
)
PROBABILITIES = "With verdicts: also the probability of each class, by all labels so far."
LABEL_CONFIG = "With label-studio: the project's labelling config (XML), for the names of its tags."
CONTROL = "With --label-config: the control that says the class. [default: the only one]"
VERDICTS = (
    "With label-studio and programs that keep traces: verdicts as venire aggregate writes them."
)
SKILLS = "With programs that keep traces: skills of venire aggregate, which the reasons then name."
TASKS = "With --verdicts: the tasks, as Label Studio exported them (JSON)."


def export(
    target: Annotated[str, typer.Option("--to", metavar="FILE", help=TO)],
    storage: StorageUrl = STORE,
    stream: StreamName = None,
    what: Annotated[str, typer.Option(metavar="WHAT", help=WHAT)] = "labels",
    probabilities: Annotated[bool, typer.Option("--probabilities", help=PROBABILITIES)] = False,
    label_config: Annotated[Path | None, typer.Option(metavar="FILE", help=LABEL_CONFIG)] = None,
    control: Annotated[str | None, typer.Option(metavar="NAME", help=CONTROL)] = None,
    verdicts: Annotated[Path | None, typer.Option(metavar="FILE", help=VERDICTS)] = None,
    tasks: Annotated[Path | None, typer.Option(metavar="FILE", help=TASKS)] = None,
    skills: Annotated[Path | None, typer.Option(metavar="FILE", help=SKILLS)] = None,
    project: Project = None,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Write a stream's labels, verdicts, revisions, gold, log, or all of it for Label Studio.

    labels: task,worker,label, as CSV or Parquet, which venire aggregate and crowd-kit read.
    verdicts: the items that have left, with their content, their verdicts and how they left; as a
    .dataset for Hugging Face datasets. revisions: verdicts that changed after their item had left.
    gold: what trusted labelers and admins said of items, which of them were drawn to be audited,
    and what was corrected. notes: comments and flags of labelers, and what they were not sure of.
    repeats: what labelers said who were asked again, beside their labels.
    log: every event, one JSON object per line. label-studio: tasks with annotations and the
    verdicts as predictions, a JSON list that Label Studio imports; its tags are called label and
    item, or as in the --label-config. The server may be running. With --verdicts and --tasks, no
    server is needed: what Label Studio exported gets the verdicts of venire aggregate. phoenix,
    mlflow, langfuse: --verdicts become annotations, assessments or scores of venire at --to.
    """
    from venire.server.store.maintenance.export import TABLES

    if what in TRACED:
        from venire.connectors.traces import source_of

        _traces_with(source_of(what, target, project, name), verdicts, skills, as_json)
        return
    if skills is not None or project is not None or name is not None:
        raise InputError(f"--skills, --project and --name are for --what {', '.join(TRACED)}")
    to = Path(target)
    chosen = _control(what, label_config, control)
    if verdicts is not None or tasks is not None:
        _say(_tasks_with(what, verdicts, tasks, chosen, to), "verdicts", what, to, as_json)
        return
    kinds = (*TABLES, "log", "label-studio")
    if what not in kinds:
        raise UnknownName("export", what, kinds)
    if probabilities and what != "verdicts":
        raise InputError(f"--probabilities is for --what verdicts, not for {what}: drop it")
    with open_stream(storage, stream) as (opened, found):
        with screen.working(f"writing {to.name}"):
            count = _written(opened, found, what, to, probabilities, chosen)
        for gone in opened.segments(found)[-1:]:
            screen.say(f"{found}: what left up to exit {gone.exits:,} is archived, and not in {to}")
    _say(count, found, what, to, as_json)


def _written(
    storage: Storage,
    stream: str,
    what: str,
    to: Path,
    probabilities: bool,
    control: Control | None,
) -> int:
    from venire.files import check_targets
    from venire.files.label_config import PLAIN_CONTROL
    from venire.server.store.maintenance.export import write_label_studio, write_log, write_table

    if what == "log":
        return write_log(storage, stream, to)
    if what == "label-studio":
        return write_label_studio(storage, stream, to, control or PLAIN_CONTROL)
    check_targets([to])
    with storage.frozen():
        return write_table(storage, stream, what, to, probabilities)


def _traces_with(source: Source, verdicts: Path | None, skills: Path | None, as_json: bool) -> None:
    """Give the verdicts of a file to a program that keeps traces."""
    from venire.connectors.traces.source import give_verdicts
    from venire.files import read_verdicts

    if verdicts is None:
        raise InputError("expected --verdicts, a file that venire aggregate wrote")
    found = _sure(verdicts)
    known = {} if skills is None else read_verdicts(skills, ("worker", "skill"))

    async def give() -> dict[str, int]:
        async with source:
            good = {name: float(skill) for name, skill in known.items() if skill}
            return await give_verdicts(source, found, good)

    done = asyncio.run(give())
    print(json.dumps(done) if as_json else ", ".join(f"{n:,} {word}" for word, n in done.items()))


def _say(count: int, name: str, what: str, to: Path, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"stream": name, "what": what, "rows": count, "path": str(to)}))
    else:
        unit = {"log": "events", "label-studio": "tasks"}.get(what, what)
        print(f"{count:,} {unit} of {name} in {to}")


def _control(what: str, config: Path | None, name: str | None) -> Control | None:
    from venire.files.label_config import find_control

    if config is None and name is not None:
        raise InputError("--control names a control of the --label-config: give both")
    if config is None:
        return None
    if what != "label-studio":
        raise InputError(f"--label-config is for --what label-studio, not for {what}")
    try:
        return find_control(config.read_text(encoding="utf-8"), name)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{config} cannot be read: {error}") from None


def _tasks_with(
    what: str, verdicts: Path | None, tasks: Path | None, control: Control | None, to: Path
) -> int:
    from venire.connectors.label_studio import with_verdicts
    from venire.server.store.maintenance.export import write_tasks

    if verdicts is None or tasks is None or what != "label-studio":
        raise InputError("--verdicts and --tasks go together, with --what label-studio")
    if to.resolve() in (verdicts.resolve(), tasks.resolve()):
        raise InputError(f"{to} is read for this: name another file to write with --to")
    return write_tasks(with_verdicts(tasks, _sure(verdicts), control), to)


def _sure(verdicts: Path) -> dict[str, tuple[str, float]]:
    """The verdict on each task, and how sure it is."""
    from venire.files import read_verdicts

    sure = read_verdicts(verdicts, ("task", "confidence"))
    return {task: (label, float(sure[task])) for task, label in read_verdicts(verdicts).items()}
