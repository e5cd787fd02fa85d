"""The pages of the site, by the four kinds of documentation (Diataxis).

Pages of docs/ are not moved into folders, so that links to them stay; their kind is here. A page
that is not named is an error of the build.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["HOW_TO", "KINDS", "index_of"]

HOW_TO: Final = (
    "demo",
    "install",
    "library",
    "commands",
    "tables",
    "cluster",
    "budget",
    "judges",
    "models",
    "student",
    "label-studio",
    "traces",
    "mcp",
    "costs",
    "prices",
    "audits",
    "gold",
    "rates",
    "panel",
    "serve",
    "labelling",
    "console",
    "deploy",
    "rules",
    "single-sign-on",
    "history",
    "own-policy",
    "own-estimator",
)

#: Title, and the pages; a page that is not there is left out.
KINDS: Final[dict[str, Sequence[str]]] = {
    "Tutorials": (
        "tutorials/judge-answers",
        "tutorials/judges-that-see",
        "tutorials/ask-an-expert",
        "tutorials/moderate-a-stream",
        "tutorials/aggregate-a-table",
        "tutorials/label-images",
        "tutorials/own-policy",
    ),
    "How-to guides": HOW_TO,
    "Reference": (
        "reference/library",
        "reference/commands",
        "reference/http",
        "operations",
        "formats",
        "glossary",
    ),
    "Explanation": (
        "policies",
        "learning",
        "certificates",
        "real-data",
        "equal-labels",
        "regimes",
        "reproduce",
        "speed",
        "paper-map",
        "errata",
        "architecture",
        "defense-of-design",
        "measures",
    ),
    "Project": ("project/contributing", "project/releasing", "project/changelog"),
}


def index_of(text: str, pages: set[str]) -> str:
    """The first page, which names all others by their kind.

    >>> print(index_of("# Documentation", {"install", "reference/http"}))
    # Documentation
    <BLANKLINE>
    ```{toctree}
    :hidden:
    :caption: How-to guides
    install
    ```
    <BLANKLINE>
    ```{toctree}
    :hidden:
    :caption: Reference
    reference/http
    ```
    """
    parts = [text]
    for title, names in KINDS.items():
        there = [name for name in names if name in pages]
        if there:
            head = ["```{toctree}", ":hidden:", f":caption: {title}"]
            parts.append("\n".join([*head, *there, "```"]))
    return "\n\n".join(parts)
