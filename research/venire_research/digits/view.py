"""Progress of the job: a live view on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from time import monotonic, sleep

import numpy as np
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.style import Style
from rich.table import Table
from rich.text import Text

from venire.model import Exit
from venire_research.digits.panel import SLOTS, DigitJob, Images
from venire_research.digits.shift import Progress

__all__ = ["View", "introduce", "watch"]

_WIDTH, _HEIGHT = 80, 21
_FRAMES_A_SECOND = 20
_BAR = 18
_SPARK = " ▁▂▃▄▅▆▇█"
_INK = " ░▒▓█"
_LINES = 8
_SHOWN = 5


def introduce(job: DigitJob, console: Console) -> None:
    """Show some images and what everybody says of them; nothing where there is no terminal."""
    if not _fits(console):
        return
    view = View(job, SLOTS, colour=console.color_system is not None)
    table = Table.grid(padding=(0, 1))
    images = range(_SHOWN)
    table.add_row("", "", *(view.draw(job.images[i]) for i in images))
    for m, name in enumerate(job.labelers):
        said = [Text(f"   {job.said[i, m]}", style=_style(job, i, m)) for i in images]
        table.add_row(name, Text(f"{job.kinds[m]}, {job.prices[m]:.2f}", "dim"), *said)
    title = "some of the images, and what each labeler says of them, at which price"
    console.print(Panel(table, title=title, title_align="left", width=_WIDTH))


def _style(job: DigitJob, image: int, labeler: int) -> str:
    return "green" if job.said[image, labeler] == job.truth[image] else "bold red"


def watch(
    job: DigitJob,
    progress: Iterable[Progress],
    console: Console,
    slots: int = SLOTS,
    seconds: float = 8.0,
) -> Progress:
    """Show the job as it goes, slowed down to take about `seconds` on a terminal.

    If the console is not a terminal or too small, or `seconds` is 0, it prints a line now and then
    instead, at full speed. Returns how the job ended.
    """
    if not seconds or not _fits(console):
        return _in_lines(progress, console, slots)
    view = View(job, slots, colour=console.color_system is not None)
    last = Progress()
    with Live(view.render(last), console=console, auto_refresh=False) as live:
        shown = 0.0
        for last in _paced(progress, seconds / slots):
            view.see(last)
            now = monotonic()
            if now - shown >= 1 / _FRAMES_A_SECOND or last.slot == slots - 1:
                live.update(view.render(last), refresh=True)
                shown = now
    return last


def _fits(console: Console) -> bool:
    width, height = console.size
    able = console.is_terminal and not console.is_dumb_terminal and not console.options.ascii_only
    return able and width >= _WIDTH and height >= _HEIGHT


def _paced(progress: Iterable[Progress], pause: float) -> Iterator[Progress]:
    """Hand them on no faster than one every `pause` seconds."""
    due = monotonic()
    for now in progress:
        yield now
        due += pause
        sleep(max(0.0, due - monotonic()))


def _in_lines(progress: Iterable[Progress], console: Console, slots: int) -> Progress:
    last = Progress()
    every = max(1, slots // _LINES)
    for last in progress:
        if (last.slot + 1) % every == 0 or last.slot == slots - 1:
            console.print(_line(last), highlight=False)
    return last


def _line(now: Progress) -> str:
    return (
        f"slot {now.slot + 1:3d}: {now.arrived:,} arrived, {now.queue} waiting, "
        f"{now.labels:,} labels, {now.money:,.2f} spent, {now.accuracy:.1%} right"
    )


class View:
    """What is on the screen: the labelers, the counts and the latest verdicts.

    >>> from venire_research.digits import load_job
    >>> view = View(load_job(), slots=400)
    >>> view.bar(0.5, true=0.75).plain
    '━━━━━━━━━    ┃    '
    """

    def __init__(self, job: DigitJob, slots: int, colour: bool = True) -> None:
        self.job, self.slots, self.colour = job, slots, colour
        self._in_hand: deque[int] = deque(maxlen=_BAR)
        self._order = np.argsort(-job.competences, kind="stable").tolist()

    def see(self, now: Progress) -> None:
        """Remember how much there was to do, for its curve."""
        self._in_hand.append(now.in_hand)

    def render(self, now: Progress) -> RenderableType:
        """One frame."""
        top = Table.grid(padding=(0, 2))
        top.add_row(self._labelers(now), self._counts(now))
        return Group(
            Panel(top, title=self._title(now), title_align="left", width=_WIDTH),
            Panel(self._latest(now), title="latest verdicts", title_align="left", width=_WIDTH),
        )

    def _title(self, now: Progress) -> str:
        return f"slot {now.slot + 1} of {self.slots}: learning who is how good, while serving"

    def _labelers(self, now: Progress) -> Table:
        table = Table.grid(padding=(0, 1))
        for m in self._order:
            name, true = self.job.labelers[m], float(self.job.competences[m])
            learned = now.competences[name] if now.competences else None
            said = f"{learned:.2f}" if learned is not None else "  ? "
            terms = f"{self.job.kinds[m]} x{self.job.capacity[m]}"
            cells = name, terms, self.bar(learned, true), said
            table.add_row(*cells)
        return table

    def bar(self, learned: float | None, true: float) -> Text:
        """The learned competence as a bar, with a mark where the true one is."""
        full = round(_BAR * (learned or 0.0))
        mark = min(_BAR - 1, int(_BAR * true))
        text = Text()
        for i in range(_BAR):
            if i == mark:
                text.append("┃", style="bold yellow")
            else:
                text.append("━" if i < full else " ", style="cyan")
        return text

    def _counts(self, now: Progress) -> Table:
        table = Table.grid(padding=(0, 1))
        table.add_column()
        table.add_column(justify="right")
        table.add_row("images arrived", f"{now.arrived:,}")
        table.add_row("in hand in this slot", f"{now.in_hand}")
        table.add_row(Text(self._spark(), style="magenta"), "")
        table.add_row("left waiting", f"{now.queue}")
        table.add_row("labels spent", f"{now.labels:,}")
        table.add_row("money spent", f"{now.money:,.2f}")
        table.add_row("verdicts", f"{now.verdicts:,}")
        table.add_row("student agrees with", self._student(now))
        table.add_row("of them right", f"{now.accuracy:.1%}" if now.verdicts else "")
        table.add_row(Text("━ learned, without truth", style="cyan"), "")
        table.add_row(Text("┃ true, for you to see", style="bold yellow"), "")
        return table

    def _student(self, now: Progress) -> str:
        return "learns" if now.agreement is None else f"{now.agreement:.0%} of them"

    def _spark(self) -> str:
        top = max([8, *self._in_hand])
        steps = len(_SPARK) - 1
        return "".join(_SPARK[-(-n * steps // top)] for n in self._in_hand).rjust(_BAR)

    def _latest(self, now: Progress) -> RenderableType:
        if not now.latest:
            return Text("\n" * 4)
        return Columns([self._card(e) for e in now.latest], padding=(0, 4))

    def _card(self, left: Exit) -> Text:
        row = self.job.row[left.item]
        truth = int(self.job.truth[row])
        right = left.verdict.label == truth
        card = self.draw(self.job.images[row])
        verdict = f"{left.verdict.label} ✓" if right else f"{left.verdict.label} ✗ is {truth}"
        card.append(f"\n{verdict:<8}", style="green" if right else "bold red")
        return card

    def draw(self, image: Images) -> Text:
        """An image in 8 x 4 characters: half blocks in grey, or shades where there is no colour."""
        lines = []
        for k in range(0, 8, 2):
            pairs = zip(image[k], image[k + 1], strict=True)
            lines.append(Text.assemble(*(self._pixels(float(a), float(b)) for a, b in pairs)))
        return Text("\n").join(lines)

    def _pixels(self, upper: float, lower: float) -> tuple[str, Style]:
        if not self.colour:
            return _INK[round((upper + lower) / 2 * (len(_INK) - 1))], Style()
        return "▀", Style(color=_grey(upper), bgcolor=_grey(lower))


def _grey(ink: float) -> str:
    level = round(24 + 231 * ink)
    return f"rgb({level},{level},{level})"
