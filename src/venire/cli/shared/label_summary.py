"""What `venire label` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from venire.cli.shared.tables import related_lines

if TYPE_CHECKING:
    from venire.batch import Labelled

__all__ = ["print_labelled"]

#: How many labelers are listed, those who cost most.
LISTED = 20


def print_labelled(done: Labelled) -> None:
    """Print what was spent and reached, and the labelers."""
    record = done.record()
    budget = record["budget"] or {}
    money = f" of {budget['money']:,.6g}" if budget.get("money") is not None else ""
    most = f" of {budget['labels']:,}" if budget.get("labels") is not None else ""
    print(f"items     {record['items']:,}")
    print(f"labels    {record['labels']:,}{most}, {record['labels_per_item']:.2f} an item")
    print(f"spent     {record['spent']:,.6g}{money}")
    ends = ", ".join(f"{why} {count:,}" for why, count in record["reasons"].items())
    print(f"ended     {ends}")
    print(f"sure      {record['sure']:,}")
    print(f"expected  {100 * record['expected_accuracy']:.1f} % right, {record['confidence']}")
    if done.stale:
        print("stale     remove the journal to ask again; what is in the cache costs nothing")
    if done.checked is not None:
        print(f"gold      {done.checked.words}")
    if done.alone is not None:
        print(f"alone     {done.alone.words}")
    if done.expert is not None:
        print(f"expert    {done.expert.words}")
    if record["accuracy"] is not None:
        print(f"right     {100 * record['accuracy']:.1f} % of those of known truth")
    if "student" in record:
        print(f"student   {_student(record['student'])}")
    for line in related_lines(done.relations):
        print(f"related   {line}")
    print()
    _print_labelers(record["labelers"])


def _student(record: dict[str, Any]) -> str:
    """What became of a student, in one line."""
    if record["agreement"] is None:
        return "too few labels to learn from"
    agrees = f"agrees with {100 * record['agreement']:.0f} % of the verdicts it was not taught"
    if not record["ready"]:
        return f"learned nothing ({agrees}), and said nothing"
    needed = record["saves"]["labels_per_item_without"]
    without = "more than 12" if needed is None else f"about {needed:.1f}"
    return f"version {record['version']}, {agrees}; without it {without} labels an item"


def _print_labelers(labelers: list[dict[str, object]]) -> None:
    told = any(one["right_without"] is not None for one in labelers)
    ranked = sorted(labelers, key=lambda one: (-one["spent"], -one["labels"]))  # type: ignore[operator] # they are numbers
    wide = max(7, *(len(str(one["id"])) for one in ranked[:LISTED]))
    tail = "  right without" if told else ""
    print(f"{'labeler':{wide}}  labels      spent  skill  90 % interval  changed without{tail}")
    for one in ranked[:LISTED]:
        changed = "-" if one["changed"] is None else f"{one['changed']:,}"
        line = (
            f"{one['id']!s:{wide}}  {one['labels']:6,}  {one['spent']:9,.4g}  {one['skill']:5.2f}"
            f"   {one['low']:.2f} to {one['high']:.2f}  {changed:>15}"
        )
        if told:
            right = one["right_without"]
            line += f"  {'-' if right is None else f'{100 * float(right):.1f} %':>13}"  # type: ignore[arg-type] # it is a number
        print(line)
    if len(ranked) > LISTED:
        print(f"and {len(ranked) - LISTED} more")
