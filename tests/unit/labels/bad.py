"""Tables that cannot be used: the rows, the row at fault and words of the message."""

from __future__ import annotations

from typing import Any, NamedTuple

NAN = float("nan")
HEADER = "task,worker,label\n"


class BadRows(NamedTuple):
    name: str
    rows: list[tuple[Any, ...]]
    row: int | None
    says: str


class BadFile(NamedTuple):
    name: str
    content: str | bytes
    line: int | None
    says: str
    options: tuple[str, ...] = ()


BAD_ROWS = [
    BadRows("no rows", [], None, "no rows, expected at least one"),
    BadRows("one class", [("a", 1, "x"), ("b", 1, "x")], None, "one class only"),
    BadRows("mixed labels", [("a", 1, 1), ("b", 1, 0), ("c", 1, "1")], 2, "mixed types"),
    BadRows("mixed tasks", [("a", 1, 1), (2, 1, 0)], 1, "task is 2, a number, and 'a'"),
    BadRows("truth and number", [("a", 1, True), ("b", 1, 0)], 1, "mixed types"),
    BadRows("None", [("a", 1, "x"), ("b", 1, None)], 1, "label is missing"),
    BadRows("None among numbers", [("a", 1, 1), ("b", 1, None)], 1, "label is missing"),
    BadRows("NaN", [("a", 1, 0.5), ("b", 1, NAN)], 1, "label is "),
    BadRows("NaN among text", [("a", 1, "x"), (NAN, 1, "y")], 1, "task is missing"),
    BadRows("empty", [("a", 1, "x"), ("b", 1, "")], 1, "label is empty"),
    BadRows("blank", [("a", "ann", "x"), ("b", "  ", "y")], 1, "worker is empty"),
    BadRows(
        "repeated", [("a", 1, "x"), ("b", 1, "y"), ("a", 1, "x")], 2, "1 labels task 'a' again"
    ),
]

BAD_LABELS = [
    BadFile("empty file", "", None, "the file is empty"),
    BadFile("only a header", HEADER, 1, "no labels below the header"),
    BadFile("no header", "a,ann,yes\nb,ann,no\n", 1, "such as task,worker,label"),
    BadFile("missing column", "task,label\na,yes\n", 1, "no column says who gave the label"),
    BadFile("one class", HEADER + "a,ann,yes\nb,ann,yes\n", None, "one class only"),
    BadFile("empty label", HEADER + "a,ann,yes\n\nb,ann,\n", 4, "label is empty"),
    BadFile("empty task", HEADER + ",ann,yes\nb,ann,no\n", 2, "task is empty"),
    BadFile("NaN label", HEADER + "a,ann,yes\n\nb,ann,NaN\n", 4, "label is NaN, expected a value"),
    BadFile("nan worker", HEADER + "a,ann,yes\nb,nan,no\n", 3, "worker is nan, expected a value"),
    BadFile("NaN task", HEADER + "1,1,1\nNaN,1,0\n", 3, "task is NaN, expected a value"),
    BadFile("quoted nan", HEADER + 'a,ann,yes\nb,ann,"nan"\n', 3, "label is nan"),
    BadFile("too few fields", HEADER + "a,ann,yes\nb,ann\n", 3, "2 fields, expected 3"),
    BadFile("open quote", HEADER + 'a,ann,yes\n"b,ann,no\n', 3, "close every quote"),
    BadFile("binary", b"\x00\x01\xff\xfe,\x00", None, "this is not text"),
    BadFile("repeated", HEADER + "a,1,x\nb,1,y\na,1,y\n", 4, "--repeats first or last"),
    BadFile(
        "outside the classes",
        HEADER + "a,ann,yes\nb,ann,maybe\n",
        3,
        "label is 'maybe', expected one of the classes ['yes', 'no']",
        ("--classes", "yes,no"),
    ),
    BadFile(
        "outside the numbers",
        HEADER + "a,ann,1\nb,ann,3\n",
        3,
        "label is 3, expected one of the classes [1, 2]",
        ("--classes", "1,2"),
    ),
]

BAD_TRUTH = [
    BadFile("empty file", "", None, "the file is empty"),
    BadFile("only a header", "task,label\n", 1, "no truths below the header"),
    BadFile("missing column", "task,worker\na,yes\n", 1, "no column says what the label is"),
    BadFile("empty", "task,label\na,yes\nb,\n", 3, "label is empty"),
    BadFile("other tasks", "task,label\nx,yes\ny,no\n", None, "none of its tasks is among"),
    BadFile("two truths", "task,label\na,yes\nb,no\na,no\n", 4, "has another label above"),
]
