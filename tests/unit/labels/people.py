"""Forty files as people have them, each with what is read from it, or what it is refused with."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

#: What everybody says: three items, three people, (item, person, class).
PEOPLE = ("ann", "bob", "cem")
SAID = {1: ("spam", "spam", "ok"), 2: ("ok", "ok", "ok"), 3: ("spam", "ok", "spam")}
ROWS = [(i, p, c) for i, row in SAID.items() for p, c in zip(PEOPLE, row, strict=True)]


@dataclass(frozen=True)
class File:
    """A file: its name and bytes, and either labels with the sentence, or the refusal."""

    title: str
    name: str
    data: bytes
    labels: int = 9
    said: str = ""
    refused: str = ""


def table(header: str, rows: Iterable[Iterable[Any]] = ROWS, by: str = ",", end: str = "\n") -> str:
    lines = [by.join(map(str, row)) for row in rows]
    return end.join([by.join(header.split(",")), *lines]) + end


def wide(header: str, by: str = ",", more: tuple[str, ...] = ()) -> str:
    return table(header, ([i, *row, *more] for i, row in SAID.items()), by)


def lines(records: Iterable[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def parquet(columns: dict[str, Any]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def named(item: str, who: str, label: str) -> list[dict[str, Any]]:
    return [{item: i, who: p, label: c} for i, p, c in ROWS]


LABEL_STUDIO = [
    {
        "id": 1,
        "data": {"text": "Buy!"},
        "annotations": [
            {
                "id": 7,
                "completed_by": 2,
                "result": [
                    {"from_name": "kind", "type": "choices", "value": {"choices": ["spam"]}}
                ],
            }
        ],
    }
]
PRODIGY = [
    {
        "text": "Buy!",
        "_input_hash": i,
        "_task_hash": -i,
        "_session_id": f"spam-{p}",
        "options": [{"id": "spam"}, {"id": "ok"}],
        "accept": [c],
        "answer": "accept",
    }
    for i, p, c in ROWS
]
ARGILLA = [
    {
        "id": str(i),
        "fields": {"text": "Buy!"},
        "responses": {
            "kind": [{"value": c, "user_id": p} for p, c in zip(PEOPLE, row, strict=True)]
        },
    }
    for i, row in SAID.items()
]
HUB = [
    {"id": str(i), "text": "Buy!", "kind.responses": list(row), "kind.responses.users": PEOPLE}
    for i, row in SAID.items()
]
PROMPTFOO = {
    "evalId": "eval-1",
    "results": {
        "version": 3,
        "results": [
            {
                "testIdx": i,
                "promptIdx": 0,
                "provider": {"id": "openai:x"},
                "gradingResult": {
                    "componentResults": [
                        {"pass": c == "ok", "assertion": {"type": "llm-rubric", "provider": p}}
                        for p, c in zip(PEOPLE, row, strict=True)
                    ]
                },
            }
            for i, row in SAID.items()
        ],
    },
}
INSPECT = {
    "version": 2,
    "status": "success",
    "eval": {"task": "spam"},
    "samples": [
        {
            "id": i,
            "epoch": 1,
            "scores": {p: {"value": c} for p, c in zip(PEOPLE, row, strict=True)},
        }
        for i, row in SAID.items()
    ],
}
LONG = "read 9 rows: items in column {}, labelers in {}, labels in {}"
WIDE = "3 judges in columns ann to cem"


def long(title: str, header: str) -> File:
    return File(title, "labels.csv", table(header).encode(), said=LONG.format(*header.split(",")))


FILES = [
    File("venire's own", "labels.csv", table("task,worker,label").encode()),
    long("venire's other words", "item,labeler,label"),
    long("ratings", "example_id,annotator,rating"),
    long("judges", "question,judge,verdict"),
    long("models", "id,model,answer"),
    long("capitals and blanks", "Question ID,Rater,Score"),
    long("MTurk", "HITId,WorkerId,Answer"),
    long("one name unknown", "utterance,annotator,label"),
    File(
        "order and other columns",
        "labels.csv",
        table(
            "timestamp,label,annotator,text,item", ([9, c, p, "Buy!", i] for i, p, c in ROWS)
        ).encode(),
        said=LONG.format("item", "annotator", "label"),
    ),
    File("tabs", "labels.tsv", table("task,worker,label", by="\t").encode(), said="by tabs"),
    File(
        "German Excel",
        "Bewertungen.csv",
        table("Aufgabe,Prüfer,Bewertung", by=";", end="\r\n").encode("cp1252"),
        said="separated by semicolons, in Windows-1252",
    ),
    File(
        "German Excel, UTF-8 with a mark",
        "Bewertungen.csv",
        table("Aufgabe,Bewerter,Urteil", by=";", end="\r\n").encode("utf-8-sig"),
        said=LONG.format("Aufgabe", "Bewerter", "Urteil"),
    ),
    File(
        "French spreadsheet",
        "étiquettes.csv",
        table("tâche,annotateur,étiquette", by=";").encode("latin-1"),
        said=LONG.format("tâche", "annotateur", "étiquette"),
    ),
    File(
        "Excel's Unicode text",
        "labels.txt",
        table("item,annotator,label", by="\t", end="\r\n").encode("utf-16"),
        said="by tabs, in UTF-16",
    ),
    File(
        "Excel's sep= line",
        "labels.csv",
        b"sep=;\r\n" + table("item,rater,label", by=";", end="\r\n").encode(),
        said="separated by semicolons",
    ),
    File(
        "empty rows and columns of a spreadsheet",
        "labels.csv",
        (table("item,rater,label,,", ((*r, "", "") for r in ROWS), by=";") + ";;;;\n" * 3).encode(),
        said=LONG.format("item", "rater", "label"),
    ),
    File("bars", "labels.csv", table("item,rater,label", by="|").encode(), said="by bars"),
    File(
        "wide", "judged.csv", wide("id,ann,bob,cem").encode(), said=f"3 items (id) in rows, {WIDE}"
    ),
    File(
        "wide, numbered",
        "judged.csv",
        wide("item,q1,q2,q3").encode(),
        said="read 3 items (item) in rows, 3 judges in columns q1 to q3",
    ),
    File(
        "wide, with text and gold",
        "judged.csv",
        wide("id,ann,bob,cem,text,gold", more=("Buy!", "spam")).encode(),
        said="not read: text, gold",
    ),
    File(
        "wide, with an index",
        "judged.csv",
        wide(",ann,bob,cem").encode(),
        said="3 judges in columns ann to cem",
    ),
    File(
        "wide, without items",
        "judged.csv",
        table("ann,bob,cem", SAID.values()).encode(),
        said=f"3 items, numbered from 1, in rows, {WIDE}",
    ),
    File(
        "wide, with a hole",
        "judged.csv",
        wide("id,ann,bob,cem").replace("ok,ok,ok", "ok,,ok").encode(),
        labels=8,
        said=WIDE,
    ),
    File("wide, German", "judged.csv", wide("Nr,ann,bob,cem", by=";").encode(), said=WIDE),
    File(
        "wide JSON Lines",
        "judged.jsonl",
        lines({"id": i, **dict(zip(PEOPLE, row, strict=True))} for i, row in SAID.items()),
        said=WIDE,
    ),
    File(
        "wide Parquet",
        "judged.parquet",
        parquet(
            {"id": list(SAID), **{p: [r[n] for r in SAID.values()] for n, p in enumerate(PEOPLE)}}
        ),
        said=WIDE,
    ),
    File(
        "Parquet",
        "labels.parquet",
        parquet(
            dict(zip(("item", "rater", "label"), map(list, zip(*ROWS, strict=True)), strict=True))
        ),
        said=LONG.format("item", "rater", "label"),
    ),
    File(
        "JSON Lines",
        "labels.jsonl",
        lines(named("example_id", "annotator", "rating")),
        said=LONG.format("example_id", "annotator", "rating"),
    ),
    File(
        "JSON",
        "labels.json",
        json.dumps(named("item", "judge", "verdict")).encode(),
        said=LONG.format("item", "judge", "verdict"),
    ),
    File("Prodigy", "spam.jsonl", lines(PRODIGY), said="9 labels from an export of Prodigy"),
    File("Argilla", "records.json", json.dumps(ARGILLA).encode(), said="an export of Argilla"),
    File(
        "Argilla, from the Hub", "train.jsonl", lines(HUB), said="Argilla on the Hugging Face Hub"
    ),
    File("promptfoo", "output.json", json.dumps(PROMPTFOO).encode(), said="an export of promptfoo"),
    File(
        "Inspect", "log.json", json.dumps(INSPECT, indent=1).encode(), said="an export of Inspect"
    ),
    File(
        "Label Studio, JSON",
        "project-1.json",
        json.dumps(LABEL_STUDIO).encode(),
        refused="run `venire import label-studio ",
    ),
    File(
        "Label Studio, CSV",
        "project-1.csv",
        table(
            "text,id,kind,annotator,annotation_id,lead_time",
            (["Buy!", i, c, p, n, 1.5] for n, (i, p, c) in enumerate(ROWS)),
        ).encode(),
        refused="as a guess --columns id,annotator,kind",
    ),
    File(
        "doccano",
        "admin.jsonl",
        lines({"id": i, "text": "Buy!", "label": [row[0]]} for i, row in SAID.items()),
        refused="jq -c",
    ),
    File("CVAT", "annotations.xml", b"<annotations></annotations>", refused="task,worker,label"),
    File("Inspect, packed", "log.eval", b"PK\x03\x04", refused="run `inspect log dump "),
    File("old Excel", "labels.xls", b"\xd0\xcf\x11\xe0", refused="save it as CSV"),
    File(
        "Excel under another name", "labels.csv", b"PK\x03\x04", refused="name a spreadsheet .xlsx"
    ),
    File("compressed", "labels.csv.gz", b"\x1f\x8b", refused="`zcat "),
    File(
        "no header",
        "labels.csv",
        "".join(f"{i},{p},{c}\n" for i, p, c in ROWS).encode(),
        refused="write a line with the names of the columns above it, such as task,worker,label",
    ),
    File(
        "names that say nothing",
        "labels.csv",
        table("a,b,c,d", ((*row, "x") for row in ROWS)).encode(),
        refused="as a guess --columns a,b,c",
    ),
    File(
        "nobody is named",
        "labels.csv",
        table("item,label", ((i, c) for i, _, c in ROWS)).encode(),
        refused="no column says who gave the label; add 'worker'",
    ),
]
