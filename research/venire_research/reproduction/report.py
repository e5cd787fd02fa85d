"""report.md and report.html: what the paper claims, what was measured, whether it holds.

The HTML contains its pictures and its style, so it opens offline.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from venire import __version__
from venire_research.common.web_page import closing, data_url, opening
from venire_research.reproduction.figure import Figure, Findings, Plan

__all__ = ["Section", "claims_of", "command_of", "save", "stem_of"]

_TITLE = "Scheduling to Learn In An Unsupervised Online Streaming Model, reproduced"

_LEAD = (
    "Vaze and Rathod's experiments, run again by venire. Bands and intervals are 95 % over the "
    "seeds. A claim holds if the measured value is within the tolerance of what is expected; "
    "“within noise” says that the interval also contains values for which the answer differs. "
    "Claims marked “paper” are the paper's, expressed as numbers by us: the source that we have "
    "does not contain its figures, so measures and thresholds are ours. Claims marked “our "
    "reading” are not literally in the paper. Those marked “venire” are from an earlier full run "
    "of this package and guard against changes; they confirm nothing. A paper's claim that fails "
    "is a finding, not an error of the run."
)

_WHOSE = {
    "paper": "of the paper's claims",
    "our reading": "of the claims that are our reading of it",
    "venire": "of our own numbers",
}

_HEADINGS = ("", "claim", "whose", "expected", "tolerance", "measured", "95 % interval")

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { margin-top: 3rem; font-size: 1.25rem; }
figure { margin: 1rem 0; } figure img { width: 27rem; max-width: 100%; }
table { border-collapse: collapse; font-size: .875rem; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0;
  border-bottom: 1px solid #ddd; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.holds { color: #00664d; font-weight: 600; } .fails { color: #b34700; font-weight: 600; }
.scroll { overflow-x: auto; } code { background: #f3f3f3; padding: .1em .3em; }
.missing { border-left: 4px solid #E69F00; padding-left: 1rem; }
"""


@dataclass(frozen=True, eq=False)
class Section:
    """A figure with its findings, or with the label sets that are missing."""

    figure: Figure
    findings: Findings | None
    missing: tuple[str, ...]


def claims_of(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """Every claim of every figure, as flat rows."""
    return [
        claim.record(section.figure.name)
        for section in sections
        if section.findings is not None
        for claim in section.findings.claims
    ]


def command_of(names: Sequence[str], plan: Plan, out: Path) -> str:
    """The command that makes these figures, or all without any, as they are here."""
    words = ["venire", "reproduce", *(w for name in names for w in ("--figure", name))]
    words += ["--data", str(plan.sets.root)] if plan.sets.root else []
    words += ["--quick"] if plan.quick else []
    words += ["--seeds", str(plan.seeds)] if plan.seeds else []
    return shlex.join([*words, "--out", str(out)])


def stem_of(out: Path, sections: Sequence[Section]) -> str:
    """The suffix of "report" and "claims" in the names of the files.

    Nothing, unless the report in the folder covers a figure that this one does not: that one is
    left as it is, and this one is named after its figures. The same before and after saving.
    """
    made = [section.figure.name for section in sections if section.findings is not None]
    return "" if _covered(out / "claims.json") <= set(made) else "-" + "-".join(made)


def _covered(path: Path) -> set[str]:
    """The figures of an existing report; none if it cannot be read."""
    try:
        return {row["figure"] for row in json.loads(path.read_text(encoding="utf-8"))["claims"]}
    except (OSError, ValueError, LookupError, TypeError):
        return set()


def save(out: Path, sections: Sequence[Section], plan: Plan, command: str) -> None:
    """Write report.md, report.html and claims.json, or those with the names of the figures."""
    stem, claims = stem_of(out, sections), claims_of(sections)
    record = {"command": command, "version": __version__, "claims": claims}
    text = "\n".join(_markdown(out, sections, plan, command)) + "\n"
    page = "\n".join(_html(out, sections, plan, command)) + "\n"
    _write(out / f"claims{stem}.json", json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    _write(out / f"report{stem}.md", text)
    _write(out / f"report{stem}.html", page)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _facts(sections: Sequence[Section], plan: Plan, command: str) -> list[tuple[str, str]]:
    rows = claims_of(sections)
    tally = [
        f"{sum(r['holds'] for r in rows if r['source'] == who)} of "
        f"{sum(r['source'] == who for r in rows)} {whose} hold"
        for who, whose in _WHOSE.items()
        if any(r["source"] == who for r in rows)
    ]
    return [
        ("Command", command),
        ("Version", f"venire {__version__}"),
        ("Extent", "a quick look: fewer seeds, shorter horizons" if plan.quick else "full"),
        ("Label sets", _label_sets(sections, plan)),
        ("Result", "; ".join(tally)),
    ]


def _label_sets(sections: Sequence[Section], plan: Plan) -> str:
    """Which sets were used, from where, and the digest of what was in them."""
    used = dict.fromkeys(n for s in sections if s.findings is not None for n in s.figure.uses)
    there = [f"{n} (digest {plan.sets.load(n).digest})" for n in used if plan.sets.has(n)]
    return f"{', '.join(there)}; in {plan.sets.folder()}" if there else "none used"


def _seeds(findings: Findings) -> str:
    if findings.seeds_in_words:
        return findings.seeds_in_words
    return f"{findings.seeds[0]} to {findings.seeds[-1]} ({len(findings.seeds)} streams)"


def _cells(row: Mapping[str, Any]) -> list[str]:
    interval = "" if row["low"] is None else f"{row['low']:.4g} to {row['high']:.4g}"
    value = "none" if row["value"] is None else f"{row['value']:.4g}"
    tolerance = f"{row['tolerance']:.3g}"
    return [
        row["verdict"],
        row["claim"],
        row["source"],
        row["expected"].replace("-", "−"),
        tolerance,
        value,
        interval,
    ]


def _markdown(out: Path, sections: Sequence[Section], plan: Plan, command: str) -> Iterator[str]:
    yield from (f"# {_TITLE}", "", _LEAD, "")
    for name, value in _facts(sections, plan, command):
        yield f"- {name}: {f'`{value}`' if name == 'Command' else value}"
    for section in sections:
        figure, findings = section.figure, section.findings
        yield from ("", f"## {figure.name}: {figure.title}", "")
        yield from (f"**What the paper claims.** {figure.paper}", "")
        if findings is None:
            yield from (plan.sets.remedy(name) for name in section.missing)
            continue
        yield from (f"![{figure.title}]({figure.name}.png)", "")
        yield from ("**What we measured.** " + " ".join(findings.words), "")
        yield "| " + " | ".join(_HEADINGS) + " |"
        yield "|" + "-|" * len(_HEADINGS)
        for row in claims_of([section]):
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in _cells(row)) + " |"
        yield from ("", "**Assumptions.** " + " ".join(figure.assumptions), "")
        files = f"`{figure.name}.csv` (what is drawn), `{figure.name}-runs.csv` (every run)"
        again = f"`{command_of([figure.name], plan, out)}`"
        yield f"Seeds {_seeds(findings)}. Again: {again}. {files}."


def _html(out: Path, sections: Sequence[Section], plan: Plan, command: str) -> Iterator[str]:
    yield from opening(_TITLE, _STYLE)
    yield f"<h1>{escape(_TITLE)}</h1>\n<p>{escape(_LEAD)}</p>\n<ul>"
    for name, value in _facts(sections, plan, command):
        shown = f"<code>{escape(value)}</code>" if name == "Command" else escape(value)
        yield f"<li>{escape(name)}: {shown}</li>"
    yield "</ul>\n<p>" + " · ".join(_link(section.figure) for section in sections) + "</p>"
    for section in sections:
        yield from _html_section(out, section, plan)
    yield closing()


def _link(figure: Figure) -> str:
    return f'<a href="#{figure.name}">{escape(figure.name)}</a>'


def _html_section(out: Path, section: Section, plan: Plan) -> Iterator[str]:
    figure, findings = section.figure, section.findings
    yield f'<h2 id="{figure.name}">{escape(figure.title)}</h2>'
    yield f"<p><strong>What the paper claims.</strong> {escape(figure.paper)}</p>"
    if findings is None:
        for name in section.missing:
            yield f'<p class="missing">{escape(plan.sets.remedy(name))}</p>'
        return
    picture = data_url((out / f"{figure.name}.svg").read_bytes(), "svg+xml")
    yield f'<figure><img alt="{escape(figure.title)}" src="{picture}">'
    yield "</figure>\n<p><strong>What we measured.</strong></p>\n<ul>"
    yield from (f"<li>{escape(sentence)}</li>" for sentence in findings.words)
    yield "</ul>"
    yield from _html_table(claims_of([section]))
    yield "<p><strong>Assumptions.</strong></p>\n<ul>"
    yield from (f"<li>{escape(assumption)}</li>" for assumption in figure.assumptions)
    yield f"</ul>\n<p>Seeds {_seeds(findings)}. Again: <code>"
    yield f"{escape(command_of([figure.name], plan, out))}</code>. "
    yield f"Data: {figure.name}.csv, {figure.name}-runs.csv.</p>"


def _html_table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    heads = "".join(f"<th>{escape(heading)}</th>" for heading in _HEADINGS)
    yield f'<div class="scroll"><table>\n<tr>{heads}</tr>'
    for row in rows:
        first, *others = _cells(row)
        kind = "holds" if row["holds"] else "fails"
        cells = f'<td class="{kind}">{escape(first)}</td>'
        cells += "".join(f'<td class="number">{escape(c)}</td>' if k else f"<td>{escape(c)}</td>"
                         for k, c in enumerate(others))  # fmt: skip
        yield f"<tr>{cells}</tr>"
    yield "</table></div>"
