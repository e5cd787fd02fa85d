"""Files that cannot be used: what they hold, the line to blame and words of the message."""

from __future__ import annotations

from typing import NamedTuple

ITEMS = "item,arrival,weight\n"
TRUE_ITEMS = "item,arrival,weight,truth\n"
PANEL = "labeler,competence\n"


class Malformed(NamedTuple):
    name: str
    content: str | bytes
    line: int | None
    says: str


BAD_ITEMS = [
    Malformed("empty file", "", None, "the file is empty"),
    Malformed("only blank lines", "\n \n", None, "the file is empty"),
    Malformed("only a header", ITEMS, 1, "no items below the header"),
    Malformed("no header", "a,0,3\nb,1,4\n", 1, "write item,arrival,weight above it"),
    Malformed("missing column", "item,arrival\na,0\n", 1, "no column 'weight'"),
    Malformed("near miss", "item,arrival,wieght\na,0,3\n", 1, "did you mean it by 'wieght'?"),
    Malformed("optional near miss", "item,arrival,weight,thruth\na,0,3,x\n", 1, "'thruth'"),
    Malformed("column twice", "item,arrival,weight,item\na,0,3,b\n", 1, "two columns 'item'"),
    Malformed("binary", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", None, "this is not text"),
    Malformed("too few fields", ITEMS + "a,0,3\nb,1\n", 3, "2 fields, expected 3"),
    Malformed("too many fields", ITEMS + "a,b,0,3\n", 2, "4 fields, expected 3"),
    Malformed("open quote", ITEMS + 'a,0,3\n"b,1,3\nc,1,3\n', 3, "close every quote"),
    Malformed("text after quote", ITEMS + '"a"b,0,3\n', 2, "not CSV"),
    Malformed("weight 0", ITEMS + "a,0,3\nb,0,0\n", 3, "weight is '0', expected a number above 0"),
    Malformed("weight negative", ITEMS + "a,0,-1\n", 2, "weight is '-1'"),
    Malformed("weight nan", ITEMS + "a,0,nan\n", 2, "weight is 'nan'"),
    Malformed("weight infinite", ITEMS + "a,0,inf\n", 2, "weight is 'inf'"),
    Malformed("weight huge", ITEMS + "a,0,1e300\n", 2, "at most 1e+15"),
    Malformed("weight text", ITEMS + "a,0,heavy\n", 2, "weight is 'heavy'"),
    Malformed("weight underscored", ITEMS + "a,0,1_0\n", 2, "weight is '1_0'"),
    Malformed("weight empty", ITEMS + "a,0,\n", 2, "weight is ''"),
    Malformed("arrival half", ITEMS + "a,0.5,3\n", 2, "arrival is '0.5', expected a whole number"),
    Malformed("arrival negative", ITEMS + "a,-1,3\n", 2, "arrival is '-1'"),
    Malformed("arrival text", ITEMS + "a,today,3\n", 2, "arrival is 'today'"),
    Malformed("arrival nan", ITEMS + "a,nan,3\n", 2, "arrival is 'nan'"),
    Malformed("arrival late", ITEMS + "a,9,3\nb,10,3\nc,30,3\n", 3, "give --slots 31 or more"),
    Malformed("arrival absurd", ITEMS + "a,99999999999999999999,3\n", 2, "--slots"),
    Malformed("duplicate item", ITEMS + "a,0,3\nb,0,3\na,1,3\n", 4, "'a' is on line 2 already"),
    Malformed("empty id", ITEMS + ",0,3\n", 2, "item is empty"),
    Malformed("blank id", ITEMS + '"  ",0,3\n', 2, "item is empty"),
    Malformed("unknown eligible", ITEMS[:-1] + ",eligible\na,0,3,ann|bo\n", 2, "labeler 'bo'"),
    Malformed("unknown excluded", ITEMS[:-1] + ",excluded\na,0,3,zoe\n", 2, "labeler 'zoe'"),
    Malformed("truth missing", TRUE_ITEMS + "a,0,3,x\nb,0,3,\n", 3, "truth is empty"),
    Malformed("truth missing first", TRUE_ITEMS + "a,0,3,\nb,0,3,x\n", 2, "truth is empty"),
    Malformed("after line breaks", ITEMS + '"a\n1",0,3\n\nb,0,0\n', 5, "weight is '0'"),
    Malformed("crlf", "item,arrival,weight\r\na,0,3\r\nb,0,x\r\n", 3, "weight is 'x'"),
]

BAD_PANELS = [
    Malformed("empty file", "", None, "the file is empty"),
    Malformed("only a header", PANEL, 1, "no labelers below the header"),
    Malformed("no header", "ann,0.9\n", 1, "write labeler,competence above it"),
    Malformed("missing column", "labeler,skill\nann,0.9\n", 1, "no column 'competence'"),
    Malformed("near miss", "labeler,competance\nann,0.9\n", 1, "'competance'"),
    Malformed("optional near miss", PANEL[:-1] + ",capcity\nann,0.9,2\n", 1, "'capcity'"),
    Malformed("competence 0", PANEL + "ann,0\n", 2, "strictly between 0 and 1"),
    Malformed("competence 1", PANEL + "ann,1\n", 2, "0.999999"),
    Malformed("competence percent", PANEL + "ann,0.9\nbob,85\n", 3, "write 0.85 for 85 percent"),
    Malformed("competence negative", PANEL + "ann,-0.5\n", 2, "competence is '-0.5'"),
    Malformed("competence nan", PANEL + "ann,nan\n", 2, "competence is 'nan'"),
    Malformed("competence text", PANEL + "ann,good\n", 2, "competence is 'good'"),
    Malformed("competence empty", PANEL + "ann,\n", 2, "competence is ''"),
    Malformed("capacity 0", PANEL[:-1] + ",capacity\nann,0.9,0\n", 2, "capacity is '0'"),
    Malformed("capacity half", PANEL[:-1] + ",capacity\nann,0.9,1.5\n", 2, "capacity is '1.5'"),
    Malformed("capacity empty", PANEL[:-1] + ",capacity\nann,0.9,\n", 2, "capacity is ''"),
    Malformed("capacity huge", PANEL[:-1] + ",capacity\nann,0.9,1e20\n", 2, "2147483647"),
    Malformed("duplicate labeler", PANEL + "ann,0.9\nann,0.8\n", 3, "'ann' is on line 2 already"),
    Malformed("empty name", PANEL + ",0.9\n", 2, "labeler is empty"),
]
