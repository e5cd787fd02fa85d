"""Which columns of a table are item, labeler and label, by their names and by what is in them.

A long table has a row for each label. A wide one has a row for each item and a column for each
judge: columns that say the same few things. What is taken for what is said; where that cannot be
told, the error shows the header, a guess and the option to write.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from venire.errors import InputError
from venire.tools.csv_rows import number

#: The first values of each column.
Sample = Mapping[str, Sequence[Any]]

#: What columns are called, the surest names first; compared without case, accents and separators.
ITEM: Final = (
    "item itemid task taskid example exampleid question questionid qid document documentid doc "
    "docid sample sampleid instance instanceid unit unitid case caseid record recordid image "
    "imageid imagename filename file hit hitid post postid comment_id text_id textid tweetid "
    "pairid pair prompt promptid sentenceid object objectid uid uuid id key nr no nummer numero "
    "number index idx row rowid aufgabe frage beispiel dokument element objekt bild tache "
    "exemple question_id objet identifiant ligne zeile"
)
LABELER: Final = (
    "labeler labeller labelerid labellerid worker workerid annotator annotatorid annotatorname "
    "rater raterid judge judgeid judgename grader coder reviewer evaluator scorer labeledby "
    "labelledby annotatedby ratedby judgedby completedby createdby turker crowdworker participant "
    "participantid respondent expert user userid username useremail email model modelid "
    "modelname llm person who bewerter annotateur annotatrice juge evaluateur correcteur codeur "
    "kodierer rater_name prufer gutachter"
)
LABEL: Final = (
    "label labels labelname rating answer response class classlabel category judgment judgement "
    "verdict vote score grade choice decision annotation said preference value opinion code "
    "prediction predicted output result tag klasse bewertung antwort urteil kategorie etikett "
    "stimme note reponse etiquette classe categorie avis jugement valeur"
)
TRUTH: Final = (
    "gold goldlabel goldstandard truth groundtruth gt truelabel trueclass correct correctanswer "
    "correctlabel expected expectedlabel reference referencelabel target ytrue goldanswer "
    "wahrheit referenz verite corrige"
)

#: The two sides of a comparison, and who won it.
SIDES: Final = (
    *(("left", "right"), ("modela", "modelb"), ("model1", "model2"), ("a", "b")),
    *(("systema", "systemb"), ("system1", "system2"), ("first", "second")),
    *(("candidatea", "candidateb"), ("playera", "playerb"), ("player1", "player2")),
)
WINNER: Final = "winner preferred preference choice verdict label vote outcome result"

#: Columns that are neither.
OTHER: Final = (
    "text content sentence body title url comment comments notes remark created createdat "
    "updated updatedat timestamp time date datetime duration leadtime leadtimeseconds seconds "
    "annotationid assignmentid assignment status split language lang family confidence "
    "probability weight rationale reason reasoning explanation cost tokens latency agreement "
    "datum zeit kommentar commentaire temps entropy price"
)

#: A judge's column says at most this many different things, and shares half of them.
_FEW: Final = 30
_SHARED: Final = 0.5

#: Names of columns that an error lists.
_LISTED: Final = 12


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a table has what: three columns (two, without labelers), or a column for each judge."""

    columns: tuple[str, ...] = ()
    item: str | None = None
    judges: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def said(self, rows: int) -> str:
        """What was taken for what, as a sentence.

        >>> Layout(item="id", judges=("q1", "q2", "q3")).said(500)
        'read 500 items (id) in rows, 3 judges in columns q1 to q3'
        >>> Layout(("example_id", "annotator", "rating")).said(20)
        'read 20 rows: items in column example_id, labelers in annotator, labels in rating'
        """
        if not self.judges:
            item, *who, label = self.columns
            by = f", labelers in {who[0]}" if who else ""
            return f"read {rows:,} rows: items in column {item}{by}, labels in {label}"
        named = f" ({self.item})" if self.item is not None else ", numbered from 1,"
        some = self.judges if len(self.judges) < 3 else (self.judges[0], "to", self.judges[-1])
        shown = " ".join(some) if len(some) == 3 else " and ".join(some)
        apart = f"; not read: {_listed(self.ignored)}" if self.ignored else ""
        judges = f"{len(self.judges)} judges in columns {shown}"
        return f"read {rows:,} items{named} in rows, {judges}{apart}"


def layout_of(
    names: Sequence[str],
    sample: Sample,
    columns: Sequence[str],
    what: str,
    wide: bool = False,
) -> Layout:
    """The layout of a table, or an error with the header, the guess and the option to write.

    Looked for are the `columns`, (task, worker, label) or (task, label); `wide` says that there is
    a column for each judge, otherwise that is found out.

    >>> rows = {"example_id": [1, 1], "annotator": ["a", "b"], "rating": [5, 4]}
    >>> layout_of(list(rows), rows, ("task", "worker", "label"), "labels").columns
    ('example_id', 'annotator', 'rating')
    >>> rows = {"id": [1, 2], "gpt": ["no", "yes"], "llama": ["no", "no"], "gold": ["no", "no"]}
    >>> layout_of(list(rows), rows, ("task", "worker", "label"), "labels").judges
    ('gpt', 'llama')
    """
    named = [name for name in names if str(name).strip()]
    if wide:
        found = _wide(names, sample, sure=True)
        if found is None:
            raise InputError(
                f"{_header(names)}: found no columns of judges; write --wide --columns with the "
                "column of the items and those of the judges, such as "
                f"{','.join(map(str, named[:3]))}"
            )
        return found
    found = _long(named, sample, len(columns), what)
    if found is not None:
        return found
    across = _wide(names, sample) if len(columns) == 3 else None
    if across is not None:
        return across
    raise InputError(_confusion(names, sample, columns, what))


def layout_of_pairs(names: Sequence[str]) -> Layout:
    """The two sides, the labeler and the winner of a table of comparisons.

    >>> layout_of_pairs(["pair_id", "model_a", "model_b", "judge", "winner"]).columns
    ('model_a', 'model_b', 'judge', 'winner')
    """
    plain = {_plain(name): name for name in names}
    sides = next((pair for pair in SIDES if set(pair) <= plain.keys()), ())
    left, right = (plain[side] for side in sides) if sides else (None, None)
    apart = [name for name in names if name not in (left, right)]
    who, won = (next(iter(role_names(apart, role)), None) for role in (LABELER, WINNER))
    if left is not None and right is not None and who is not None and won is not None:
        return Layout((left, right, who, won))
    missing = "left" if left is None else "worker" if who is None else "winner"
    raise InputError(
        f"{_header(names)}: there is no column {missing!r}, or with another usual name; write "
        "--columns with those of the two sides, the labeler and the winner, such as --columns "
        "left,right,worker,winner (in Python columns=[...])"
    )


def role_names(names: Sequence[str], role: str) -> list[str]:
    """The columns whose names are those of a role, the surest first.

    >>> role_names(["ID", "Example-Id", "text"], ITEM)
    ['Example-Id', 'ID']
    """
    order = {_plain(name): place for place, name in enumerate(role.split())}
    found = [name for name in names if _plain(name) in order]
    return sorted(found, key=lambda name: order[_plain(name)])


def _plain(name: object) -> str:
    """A name without case, accents and separators."""
    text = unicodedata.normalize("NFKD", str(name)).casefold()
    return "".join(c for c in text if c.isalnum())


def _long(names: list[str], sample: Sample, width: int, what: str) -> Layout | None:
    """A row for each label: all roles are named, or all but one of as many columns."""
    says = (TRUTH, LABEL) if what == "truths" else (LABEL, TRUTH) if width == 2 else (LABEL,)
    item, label = role_names(names, ITEM), [n for r in says for n in role_names(names, r)]
    worker = role_names(names, LABELER) if width == 3 else []
    taken = [found[:1] for found in ((item, worker, label) if width == 3 else (item, label))]
    columns = [name for found in taken for name in found]
    if len(columns) == width - 1 and len(names) == width:
        missing = next(n for n, found in enumerate(taken) if not found)
        rest = next(name for name in names if name not in columns)
        others = (LABELER, LABEL, TRUTH) if missing == 0 else (ITEM, LABELER, LABEL, TRUTH, OTHER)
        if any(role_names([rest], role) for role in others):
            return None
        columns.insert(missing, rest)
    if len(columns) < width or _is_data(names, sample):
        return None
    if width == 3 and not _repeats(sample[columns[0]]):
        said = [sample[name] for name in columns[1:]]
        if len(said[0]) > 1 and _overlap(*said) >= _SHARED:
            return None  # one row for each item, and two columns that say the same: judges
    if width == 3 and _is_row_number(columns, item, sample):
        return None
    return Layout(tuple(columns))


def _is_row_number(columns: list[str], item: list[str], sample: Sample) -> bool:
    """Whether the items are all different though there are several labelers: a number of rows."""
    values, workers = sample[columns[0]], sample[columns[1]]
    alone = len(set(map(str, values))) == len(values) >= 8
    texts = [n for n in sample if n not in columns and _repeats(sample[n]) and n not in item[:1]]
    return alone and len(set(map(str, workers))) > 1 and bool(_content(texts, sample, values))


def _content(names: list[str], sample: Sample, values: Sequence[Any]) -> list[str]:
    """Columns that could say what was labelled: each value a few times, many values."""
    many = max(3, len(values) // 10)
    return [n for n in names if len(set(map(str, sample[n]))) >= many]


def _repeats(values: Sequence[Any]) -> bool:
    return len(set(map(str, values))) < len(values)


def _wide(names: Sequence[str], sample: Sample, sure: bool = False) -> Layout | None:
    """A column for each judge: at least two that share what they say."""
    item = next(iter(role_names(names, ITEM)), None)
    unnamed = [n for n in names if not str(n).strip() or re.fullmatch(r"unnamed: ?\d+", n, re.I)]
    if item is None and unnamed and names.index(unnamed[0]) == 0 and any(_filled(sample[names[0]])):
        item = unnamed[0]  # the index of a dataframe
    if item is not None and any(_is_numbered(item, name) for name in names if name != item):
        item = None  # question_1, question_2: judges, not the item
    apart = {item, *unnamed, *role_names(names, TRUTH), *role_names(names, OTHER)}
    free = [n for n in names if n not in apart and any(_filled(sample[n]))]
    if item is None and free and not _repeats(sample[free[0]]) and len(sample[free[0]]) > 2:
        item, free = free[0], free[1:]
    few = [n for n in free if len(_said(sample[n])) <= _FEW]
    few = [n for n in few if sure or _repeats_enough(sample[n])]
    group = _largest_group(few, sample)
    if sure and len(group) < 2:
        group = [n for n in free if _are_numbers(sample[n])]  # measurements share no values
    if len(group) < 2 or (_is_data([str(n) for n in names], sample) and not sure):
        return None
    left = [n for n in few if n not in group and len(_said(sample[n])) > 1]
    if not sure and (len(group) < len(left) or (len(group) == 2 and left)):
        return None
    ignored = tuple(n for n in names if n not in group and n != item and str(n).strip())
    return Layout(item=item, judges=tuple(group), ignored=ignored)


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(number(str(value)) is not None for value in _filled(values))


def _largest_group(names: list[str], sample: Sample) -> list[str]:
    """The most columns that say the same things, in their order."""
    best: list[str] = []
    for one in names:
        near = [n for n in names if n == one or _overlap(sample[one], sample[n]) >= _SHARED]
        if len(near) > len(best):
            best = near
    return best


def _repeats_enough(values: Sequence[Any]) -> bool:
    """Whether a column has classes: few values for its length, of which a short table has few."""
    said = list(_filled(values))
    return len(set(map(str, said))) <= max(2, len(said) * 2 // 3)


def _overlap(one: Sequence[Any], other: Sequence[Any]) -> float:
    """The share of the poorer column's values that the other has too."""
    a, b = _said(one), _said(other)
    return len(a & b) / min(len(a), len(b)) if a and b else 0.0


def _said(values: Sequence[Any]) -> set[str]:
    return {str(value).strip().casefold().removesuffix(".0") for value in _filled(values)}


def _filled(values: Sequence[Any]) -> Iterator[Any]:
    return (v for v in values if v is not None and v == v and str(v).strip())


def _is_numbered(one: str, other: str) -> bool:
    """Whether two names are alike but for a number or a letter at the end: q1 and q2."""
    pattern = r"[\s_.-]*(\d+|[A-Za-z])$"
    stem = re.sub(pattern, "", one)
    return bool(stem) and re.sub(pattern, "", other) == stem and bool(re.search(r"\d+$", one))


def _is_data(names: Sequence[str], sample: Sample) -> bool:
    """Whether the header is a row: two of its fields occur again below them."""
    again = sum(str(n) in {str(v) for v in sample.get(n, ())} for n in names)
    return again >= 2 or (again == 1 and len(names) <= 3 and not _any_role(names))


def _any_role(names: Sequence[str]) -> bool:
    return any(role_names(names, role) for role in (ITEM, LABELER, LABEL))


def _confusion(names: Sequence[str], sample: Sample, columns: Sequence[str], what: str) -> str:
    """The header, the guess and the option to write."""
    wanted = ",".join(columns)
    if _is_data(list(map(str, names)), sample):
        return (
            f"{_header(names)}, which looks like the first row: if it is, write a line with the "
            f"names of the columns above it, such as {wanted}"
            + ("" if len(names) == len(columns) else ", in the order of yours")
        )
    guess = _guess(names, sample, len(columns))
    roles = "item, labeler and label" if len(columns) == 3 else "item and label"
    if None in guess:
        asked = ["what was labelled", "who gave the label", "what the label is"]
        asked = asked if len(columns) == 3 else asked[::2]
        place = guess.index(None)
        across = ", or a column for each judge" if len(columns) == 3 else ""
        return f"{_header(names)}: no column says {asked[place]}; add {columns[place]!r}{across}"
    other = ", or, if each judge has a column, --wide" if len(columns) == 3 else ""
    python = "as_table(..., columns=[...], wide=True)" if other else "columns=[...]"
    return (
        f"{_header(names)}: cannot tell which columns are {roles}; write --columns with their "
        f"names, as a guess --columns {','.join(map(str, guess))}{other} (in Python {python})"
    )


def _guess(names: Sequence[str], sample: Sample, width: int) -> list[str | None]:
    """Columns for the roles: by name or a word in it, else the first that is left.

    A label is taken from few values.
    """
    said = f"{LABEL} {TRUTH}"
    roles = (ITEM, LABELER, said) if width == 3 else (ITEM, said)
    found = [next(iter(role_names(names, role)), None) for role in roles]
    for place, role in reversed(list(enumerate(roles))):
        if found[place] is None:
            others = {*found, *role_names(names, OTHER)}
            varied = [n for n in names if n not in others and len(_said(sample[n])) > 1]
            words = {n: {_plain(word) for word in re.split(r"[\W_]", str(n))} for n in varied}
            found[place] = next((n for n in varied if words[n] & set(role.split())), None)
    people = role_names(names, LABELER)  # who, and never what
    aside = [*role_names(names, OTHER), *_unused(names, roles, found), *people]
    left = [n for n in names if n not in found and str(n).strip() and n not in aside]
    left += [n for n in role_names(names, OTHER) if n not in found]
    if found[-1] is None and left:
        plain = [n for n in left if n not in aside and len(_said(sample[n])) > 1] or left
        label = min(reversed(plain), key=lambda n: len(_said(sample[n])))
        found[-1] = label
        left.remove(label)
    for place, name in enumerate(found):
        if name is None and left:
            found[place] = left.pop(0)
    return found


def _unused(names: Sequence[str], roles: Sequence[str], found: Sequence[str | None]) -> list[str]:
    """Columns of a role that another column has."""
    return [n for role in roles for n in role_names(names, role) if n not in found]


def _header(names: Sequence[str]) -> str:
    return f"the columns are {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(str(name) or "(no name)" for name in names[:_LISTED])
    return shown if len(names) <= _LISTED else f"{shown} and {len(names) - _LISTED} more"
