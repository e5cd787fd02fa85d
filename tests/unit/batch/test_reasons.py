"""Why items of a batch ended."""

from venire import Budget, label
from venire.batch import Caller


def test_what_cannot_be_afforded_any_more_ends_with_the_budget() -> None:
    """The cheap one has labelled everything; nobody can pay the dear one for most of the items."""
    items = {f"i{k}": k for k in range(40)}
    panel = [
        Caller("cheap", lambda k: k % 2 if k % 3 else 1 - k % 2, 0.01),
        Caller("other", lambda k: k % 2 if k % 5 else 1 - k % 2, 0.01),
        Caller("dear", lambda k: k % 2, 1.0),
    ]
    done = label(items, panel, Budget(money=3.02))
    assert done.record()["reasons"].get("budget", 0) >= 20
