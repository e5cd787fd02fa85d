"""The demo's stream as a server gets it: settings, and items with their images.

An image is sent as a picture for people (a PNG in a `data:` URL) and as numbers for the student.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any, Final

import numpy as np

from venire_research.digits.panel import DIGITS, SLOTS, DigitJob, Images

__all__ = ["SLOT_SECONDS", "STREAM", "arrivals", "as_png", "settings_of"]

#: The name of the stream, and the length of its slots: about one image arrives in a second.
STREAM: Final = "digits"
SLOT_SECONDS: Final = 3.0

#: Pixels of the picture for one of the image.
_SCALE: Final = 12

_GUIDELINES: Final = """Which digit is it?

The images are 8 x 8 pixels small, and some are hard to read. Answer **not sure** rather than guess.
"""


def settings_of(job: DigitJob) -> dict[str, Any]:
    """The settings of the stream: the panel and its prices, a student, and otherwise the defaults.

    >>> from venire_research.digits import load_job
    >>> settings_of(load_job())["panel"][0]
    {'id': 'bayes', 'kind': 'person', 'capacity': 1, 'price': 0.1}
    """
    terms = zip(job.labelers, job.kinds, job.capacity, job.prices, strict=True)
    return {
        "classes": [str(digit) for digit in (*DIGITS[1:], 0)],  # the key 1 means 1
        "panel": [
            {"id": name, "kind": kind, "capacity": most, "price": price}
            for name, kind, most, price in terms
        ],
        "slot_seconds": SLOT_SECONDS,
        "student": {"field": "pixels"},
        "layout": [{"field": "image", "show": "image"}],
        "guidelines": _GUIDELINES,
    }


def arrivals(job: DigitJob, seed: int = 0, slots: int = SLOTS) -> list[list[dict[str, Any]]]:
    """The items of each slot, in the order, at the times and with the weights of the seed.

    >>> from venire_research.digits import load_job
    >>> slots = arrivals(load_job())
    >>> sum(map(len, slots)), sorted(slots[0][0])
    (1197, ['id', 'payload', 'weight'])
    """
    items = job.world(seed).items(slots)
    first = items.first(slots)
    rows = range(first[slots])
    sent = [
        {
            "id": str(items.name(row)),
            "payload": _payload(job, str(items.name(row))),
            "weight": float(items.weight[row]),
        }
        for row in rows
    ]
    return [sent[first[slot] : first[slot + 1]] for slot in range(slots)]


def _payload(job: DigitJob, name: str) -> dict[str, Any]:
    image = job.images[job.row[name]]
    return {
        "title": "a handwritten digit of 8 x 8 pixels",
        "image": as_png(image),
        "pixels": image.ravel().tolist(),
    }


def as_png(image: Images) -> str:
    """An image, dark ink on white, as the `data:` URL of a PNG.

    >>> as_png(np.zeros((8, 8)))[:30]
    'data:image/png;base64,iVBORw0K'
    """
    ink = np.kron(1.0 - np.clip(image, 0.0, 1.0), np.ones((_SCALE, _SCALE)))
    grey = np.round(255 * ink).astype(np.uint8)
    height, width = grey.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in grey)
    parts = (b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")
    body = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)
    return f"data:image/png;base64,{base64.b64encode(body).decode()}"


def _chunk(kind: bytes, data: bytes) -> bytes:
    """A chunk of a PNG: its length, its kind, the data, and a checksum."""
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
