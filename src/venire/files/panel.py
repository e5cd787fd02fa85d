"""The panel file: labeler,competence[,capacity][,price]; prices alone: labeler,price."""

from __future__ import annotations

from pathlib import Path

from venire.errors import FileError
from venire.model import MOST_PRICE, Labeler
from venire.tools.csv_rows import number, read_rows, shown, whole

REQUIRED = ("labeler", "competence")
OPTIONAL = ("capacity", "price")

#: Capacities are kept in 32 bits.
LARGEST = 2**31 - 1


def read_panel(path: str | Path) -> tuple[Labeler, ...]:
    r"""Read who is on the panel, in the order of the file.

    `competence` is the probability that a label of theirs is right, strictly between 0 and 1;
    `capacity` how many labels they give in a slot, 1 without the column; `price` what one label
    of theirs costs, 0 without the column.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "panel.csv")
    ...     _ = path.write_text("labeler,competence,capacity,price\nann,.9,1,.05\nllama,.7,20,\n")
    ...     read_panel(path)[1]
    Labeler(id='llama', competence=0.7, capacity=20, price=0.0)
    """
    path = Path(path)
    panel: list[Labeler] = []
    seen: dict[str, int] = {}
    for line, (name, competence, capacity, price) in read_rows(path, REQUIRED, OPTIONAL):
        if not name:
            raise FileError(path, line, "labeler is empty: give every labeler a name")
        if seen.setdefault(name, line) != line:
            message = f"labeler {shown(name)} is on line {seen[name]} already: drop or rename one"
            raise FileError(path, line, message)
        panel.append(
            Labeler(
                name,
                _competence(path, line, competence),
                _capacity(path, line, capacity),
                _price(path, line, price),
            )
        )
    if not panel:
        raise FileError(path, 1, "no labelers below the header: add one line for each")
    return tuple(panel)


def read_prices(path: str | Path) -> dict[str, float]:
    r"""Read what one label of each labeler costs: a file with labeler,price, or a panel file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "prices.csv")
    ...     _ = path.write_text("labeler,price\nann,.05\nllama,\n")
    ...     read_prices(path)
    {'ann': 0.05, 'llama': 0.0}
    """
    path = Path(path)
    prices: dict[str, float] = {}
    for line, (name, price) in read_rows(path, ("labeler", "price")):
        if not name:
            raise FileError(path, line, "labeler is empty: give every labeler a name")
        if name in prices:
            raise FileError(path, line, f"labeler {shown(name)} is there twice: drop one of them")
        prices[name] = _price(path, line, price)
    if not prices:
        raise FileError(path, 1, "no labelers below the header: add one line for each")
    return prices


def _competence(path: Path, line: int, text: str | None) -> float:
    value = number(text)
    if value is not None and 0 < value < 1:
        return value
    remedy = "give the probability that a label of theirs is right"
    if value is not None and 1 < value <= 100:
        remedy = f"write {value / 100:g} for {value:g} percent"
    elif value == 1:
        remedy = "write 0.999999 for someone who is never wrong"
    message = f"competence is {shown(text)}, expected a number strictly between 0 and 1: {remedy}"
    raise FileError(path, line, message)


def _capacity(path: Path, line: int, text: str | None) -> int:
    if text is None:
        return 1
    value = whole(text)
    if value is not None and 1 <= value <= LARGEST:
        return value
    message = f"capacity is {shown(text)}, expected a whole number from 1 to {LARGEST}"
    raise FileError(path, line, f"{message}: give how many labels they can give in a slot")


def _price(path: Path, line: int, text: str | None) -> float:
    if not text:
        return 0.0
    value = number(text)
    if value is not None and 0 <= value <= MOST_PRICE:
        return value
    message = f"price is {shown(text)}, expected a number from 0 to {MOST_PRICE:g}"
    raise FileError(path, line, f"{message}: give what one label of theirs costs")
