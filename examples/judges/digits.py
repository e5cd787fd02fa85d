"""Handwritten digits as text: scikit-learn's bundled set, each image drawn with characters.

python -m examples.judges.digits > items.jsonl                # which digit is it?
python -m examples.judges.digits --answers > answers.jsonl    # is this answer right?
python -m examples.judges.digits --pictures pictures > answers.jsonl    # the same, with images
"""

from __future__ import annotations

import argparse
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

INK = " .:-=+*#%"  # 17 levels of grey in nine characters
SIDE = 8


def draw(pixels: NDArray[Any]) -> str:
    """An image of 8 x 8 grey levels, 0 to 16, as eight lines between bars."""
    rows = pixels.reshape(SIDE, SIDE).astype(int) // 2
    return "\n".join("|" + "".join(INK[level] for level in row) + "|" for row in rows)


def look(text: str) -> NDArray[np.float64]:
    """The grey levels of the drawing in a text."""
    lines = [line for line in text.splitlines() if len(line) == SIDE + 2 and line[0] == "|"]
    return np.array([INK.index(ink) for line in lines[-SIDE:] for ink in line[1:-1]], dtype=float)


def split(seed: int = 0) -> tuple[list[str], list[str], list[str], list[str]]:
    """1,197 drawings with their digits to learn from, and 600 others to judge."""
    data = load_digits()
    order = np.random.default_rng(seed).permutation(len(data.target))
    drawings = [draw(data.data[n]) for n in order]
    digits = [str(data.target[n]) for n in order]
    return drawings[600:], digits[600:], drawings[:600], digits[:600]


def items(count: int = 300, seed: int = 0) -> list[dict[str, str]]:
    """Items to judge, with the truth for those who want to check."""
    _, _, drawings, digits = split(seed)
    rows = zip(drawings[:count], digits[:count], strict=True)
    return [{"id": f"d{n}", "drawing": d, "truth": t} for n, (d, t) in enumerate(rows)]


def answers(count: int = 500, seed: int = 0) -> list[dict[str, str]]:
    """What two systems say of each drawing; alpha is right on 8 of 10, beta on 7 of 10."""
    rng = np.random.default_rng(seed + 1)
    rows = []
    for item in items(count, seed):
        for system, share in (("alpha", 0.8), ("beta", 0.7)):
            right, slip = rng.random() < share, int(rng.integers(1, 10))
            answer = item["truth"] if right else str((int(item["truth"]) + slip) % 10)
            about = {"id": f"{system}-{item['id']}", "system": system, "drawing": item["drawing"]}
            rows.append({**about, "answer": answer, "truth": "right" if right else "wrong"})
    return rows


def png(drawing: str) -> bytes:
    """A drawing as an image: 8 x 8 pixels of grey."""
    levels = look(drawing).reshape(SIDE, SIDE).astype(int)
    rows = b"".join(b"\0" + bytes(255 - 31 * int(level) for level in row) for row in levels)
    head = struct.pack(">2I5B", SIDE, SIDE, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def drawing_of(image: bytes) -> str:
    """The drawing in an image of `png`.

    >>> drawing_of(png(draw(np.arange(64) // 4))) == draw(np.arange(64) // 4)
    True
    """
    start = image.index(b"IDAT")
    (length,) = struct.unpack(">I", image[start - 4 : start])
    rows = zlib.decompress(image[start + 4 : start + 4 + length])
    grey = np.frombuffer(rows, np.uint8).reshape(SIDE, SIDE + 1)[:, 1:].astype(int)
    return draw((255 - grey) // 31 * 2)


def with_pictures(folder: Path, count: int = 300) -> list[dict[str, str]]:
    """Answers of the system alpha to pictures, which are written; every second has a solution."""
    folder.mkdir(exist_ok=True)
    rows = []
    for n, (item, said) in enumerate(zip(items(count), answers(count)[::2], strict=True)):
        path = folder / f"{item['id']}.png"
        path.write_bytes(png(item["drawing"]))
        known = {"solution": item["truth"]} if n % 2 else {}
        about = {"id": item["id"], "photo": f"{folder.name}/{path.name}", "answer": said["answer"]}
        rows.append({**about, **known, "truth": said["truth"]})
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", action="store_true", help="1,000 answers of two systems")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="300 answers to pictures")
    options = parser.parse_args()
    rows = answers() if options.answers else items()
    for row in with_pictures(options.pictures) if options.pictures else rows:
        print(json.dumps(row))
