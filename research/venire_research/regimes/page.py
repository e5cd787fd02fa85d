"""index.html: which policy to choose, the picture, and every table; it opens anywhere, offline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from venire import __version__
from venire_research.common.web_page import closing, data_url, opening
from venire_research.regimes.comparison import ACCOUNTS, Row
from venire_research.regimes.picture import shown
from venire_research.regimes.suite import SUITE, Regime
from venire_research.regimes.summary import MEASURES, Measure, Table, short_names

__all__ = ["Setting", "page"]

_TITLE = "Schedulers compared"

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 72rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { margin-top: 2.5rem; font-size: 1.25rem; }
.lead { color: #555; margin-top: 0; } code { background: #f3f3f3; padding: .1em .3em; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 1rem; }
.card { border: 1px solid #ddd; border-top: 4px solid #0072B2; border-radius: 6px;
  padding: .75rem 1rem; }
.card h3 { margin: 0; font-size: .9rem; color: #555; font-weight: 600; }
.card .name { font-size: 1.4rem; font-weight: 700; } .card p { margin: .25rem 0 0; }
figure { margin: 1rem 0; } figure img { width: 100%; }
table { border-collapse: separate; border-spacing: 2px; font-size: .85rem; margin: .5rem 0 1rem; }
th { font-weight: 600; text-align: right; padding: .2rem .5rem; vertical-align: bottom; }
th:first-child { text-align: left; } td { padding: .2rem .5rem; border-radius: 3px; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.best { font-weight: 700; } td small { color: #555; font-weight: 400; }
tr.sum td, tr.sum th { border-top: 2px solid #999; }
.scroll { overflow-x: auto; } details { margin: .5rem 0; } summary { cursor: pointer; }
.missing { border-left: 4px solid #E69F00; padding-left: 1rem; }
"""

_NOTES = (
    "All policies see the same items at the same times, and a labeler's label for an item is the "
    "same under every policy. The certificate is an upper bound on what any schedule could have "
    "earned on the same stream, knowing the future and the true competences: a share of 100 % may "
    "be out of reach. Utility is the paper's (delay to the last label), realised "
    "utility charges the delay to the exit, true utility counts the weight of right verdicts "
    "less the delay to the exit. A mean over regimes weighs each the same; the mean of ratios is "
    "geometric, and is left out where a ratio is not positive. In the picture whiskers are "
    "standard deviations over the seeds, and an arrow at the edge is a value beyond it. In the "
    "tables blue is good, orange falls short, bold is the best of its line."
)


@dataclass(frozen=True, eq=False)
class Setting:
    """What was asked for: the command, the regimes that were run, and why others were not."""

    command: str
    regimes: Sequence[Regime]
    missing: Mapping[str, str] = field(default_factory=dict)
    quick: bool = False


def page(rows: Sequence[Row], setting: Setting, picture: bytes) -> str:
    """The whole page as text."""
    return "\n".join(_page(rows, setting, picture)) + "\n"


def _page(rows: Sequence[Row], setting: Setting, picture: bytes) -> Iterator[str]:
    yield from opening(_TITLE, _STYLE)
    yield f'<h1>{_TITLE}</h1>\n<p class="lead">{escape(_extent(rows, setting))}</p>'
    tables = shown(rows)
    yield '<div class="cards">'
    for table in tables:
        yield from _card(table)
    yield "</div>"
    yield '<figure><img alt="A dot for each policy on each regime; the numbers are in the '
    yield f'tables below" src="{data_url(picture, "png")}"></figure>'
    yield f"<p>{escape(_NOTES)}</p>"
    first = {table.measure.name for table in tables}
    for table in tables:
        yield f"<h2>{escape(table.measure.title)}</h2>\n<p>{escape(_sentence(table.measure))}</p>"
        yield from _heat(table)
    yield "<h2>Everything else</h2>"
    for name, measure in MEASURES.items():
        table = Table.of(rows, measure)
        if name not in first and not table.empty():
            yield f"<details><summary>{escape(measure.title)}</summary>"
            yield f"<p>{escape(_sentence(measure))}</p>"
            yield from _heat(table)
            yield "</details>"
    yield from _regimes(rows, setting)
    yield f"<p>Again: <code>{escape(setting.command)}</code> (venire {__version__}). Every run is "
    yield "in regimes.csv, a line for each policy in summary.csv.</p>\n" + closing()


def _extent(rows: Sequence[Row], setting: Setting) -> str:
    learning = rows[0]["learning"]
    known = "competences known" if learning == "known" else f"competences learned: {learning}"
    policies = _count(len({row["policy"] for row in rows}), "policy", "policies")
    regimes = _count(len(setting.regimes), "regime", "regimes")
    seeds = _count(len({row["seed"] for row in rows}), "seed", "seeds")
    quick = ", a quick look: shorter streams" if setting.quick else ""
    return f"Suite {SUITE}{quick}; {policies}, {regimes}, {seeds} each; {known}."


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _card(table: Table) -> Iterator[str]:
    """The policy to choose by one accounting, and what Algorithm 1 does."""
    best, names = table.ranked()[0], short_names(table.policies)
    yield f'<div class="card"><h3>{escape(table.measure.title)}</h3>'
    yield f'<div class="name">{escape(names[best])}</div><p>{_mean_and_worst(table, best)}</p>'
    if "greedy" in table.policies and best != "greedy":
        yield f"<p>greedy (the paper's): {_mean_and_worst(table, 'greedy')}</p>"
    yield "</div>"


def _mean_and_worst(table: Table, policy: str) -> str:
    mean, worst = table.mean(policy), table.worst(policy)
    if worst is None:
        return "nothing was measured"
    unit = " %" if table.measure.percent else ""
    write = table.measure.write
    average = "no mean of ratios" if mean is None else f"{write(mean)}{unit} on average"
    return f"{average}, {write(worst[0])}{unit} at worst ({worst[1]})"


def _sentence(measure: Measure) -> str:
    return measure.meaning[0].upper() + measure.meaning[1:] + "."


def _heat(table: Table) -> Iterator[str]:
    """Regimes by policies, the best policy on average on the left."""
    ranked, names, write = table.ranked(), short_names(table.policies), table.measure.write
    heads = "".join(f"<th>{escape(names[p])}</th>" for p in ranked)
    yield f'<div class="scroll"><table>\n<tr><th>regime</th>{heads}</tr>'
    for regime in table.regimes:
        cells, best = "", table.best(regime)
        for policy in ranked:
            mean, spread = table.cells[regime, policy]
            words = write(mean) + (f" <small>± {write(spread)}</small>" if spread else "")
            kind = "n best" if policy in best else "n"
            cells += f'<td class="{kind}"{_shade(table, regime, policy)}>{words}</td>'
        yield f"<tr><td>{escape(regime)}</td>{cells}</tr>"
    yield from _heat_foot(table, ranked)
    yield "</table></div>"


def _heat_foot(table: Table, ranked: Sequence[str]) -> Iterator[str]:
    """Mean and worst; sums of utility have none, since they depend on the size of a regime."""
    write = table.measure.write
    if table.measure.name in ACCOUNTS:
        return
    means = "".join(f'<td class="n">{write(table.mean(p))}</td>' for p in ranked)
    yield f'<tr class="sum"><td><b>mean</b></td>{means}</tr>'
    if table.measure.better:
        worst = [table.worst(p) for p in ranked]
        cells = "".join(
            f'<td class="n">{write(w[0])}<br><small>{escape(w[1])}</small></td>' if w
            else '<td class="n">-</td>' for w in worst
        )  # fmt: skip
        yield f"<tr><td><b>worst</b></td>{cells}</tr>"


def _shade(table: Table, regime: str, policy: str) -> str:
    """Blue from 0.85 of the certificate (else: of the best policy) on, orange below it."""
    score = _score(table, regime, policy)
    if score is None:
        return ""
    if score >= 0.85:
        colour, depth = "0,114,178", 0.08 + 0.32 * (min(score, 1.0) - 0.85) / 0.15
    else:
        colour, depth = "230,159,0", 0.08 + 0.42 * min(1.0, (0.85 - score) / 0.6)
    return f' style="background:rgba({colour},{depth:.2f})"'


def _score(table: Table, regime: str, policy: str) -> float | None:
    mean, better = table.cells[regime, policy].mean, table.measure.better
    if mean is None or not better:
        return None
    if table.measure.name in ("share", "realised_share"):
        return mean
    means = [m for p in table.policies if (m := table.cells[regime, p].mean) is not None]
    if better < 0:
        return (min(means) + 1.0) / (mean + 1.0)
    return mean / max(means) if max(means) > 0 else None


def _regimes(rows: Sequence[Row], setting: Setting) -> Iterator[str]:
    yield "<h2>The regimes</h2>\n<ul>"
    for regime in setting.regimes:
        gap = escape(_gap([row for row in rows if row["regime"] == regime.name]))
        yield f"<li><b>{escape(regime.name)}</b>: {escape(regime.sentence)}{gap}</li>"
    yield "</ul>"
    for name, remedy in setting.missing.items():
        yield f'<p class="missing"><b>{escape(name)}</b> was left out: {escape(remedy)}</p>'


def _gap(rows: Sequence[Row]) -> str:
    """How far the certificates of a regime may be from what can be earned, as they say."""
    gaps = [row["certificate_gap"] for row in rows if row["certificate_gap"] is not None]
    if not gaps:
        return ""
    methods = ", ".join(dict.fromkeys(row["certificate_method"] for row in rows))
    return f" (certificates: {methods}; at most {100 * max(gaps):.1f} % too high)"
