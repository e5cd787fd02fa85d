"""What others wrote or will read: JSON of any depth, names for files, cells of tables, secrets."""

from __future__ import annotations

import base64
import json
import re
from html import escape
from typing import Any, Final
from urllib.parse import quote

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

#: How a text begins that a spreadsheet takes for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; whatever is wrong with it is a `json.JSONDecodeError`.

    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    json.decoder.JSONDecodeError: Nested too deeply: line 1 column 1 (char 0)
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise json.JSONDecodeError("Nested too deeply", "", 0) from None
    except ValueError as error:  # a number of thousands of digits, or no UTF-8
        raise json.JSONDecodeError(str(error)[:100], "", 0) from None


def is_file_name(name: object) -> bool:
    """Whether a name is that of a stream or segment, so that no path leads out of their folder.

    >>> is_file_name("posts-1.2"), is_file_name(".."), is_file_name("../x"), is_file_name("a/b")
    (True, False, False, False)
    """
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def harmless(value: Any) -> Any:
    """The cell of a CSV file: a text that a spreadsheet would take for a formula gets a quote.

    >>> harmless("=1+1"), harmless("-1"), harmless("- no"), harmless(-1)
    ("'=1+1", '-1', "'- no", -1)
    """
    if not isinstance(value, str) or not value.startswith(_FORMULA):
        return value
    try:
        float(value)
        return value  # a number does nothing, and classes are called -1 and +1
    except ValueError:
        return f"'{value}"


def scrubbed(text: str, secret: str) -> str:
    """The text without a secret, however it is written there: in a URL, JSON, HTML or base64.

    >>> scrubbed("no such key: sk%2D1234567 or sk-1234567", "sk-1234567")
    'no such key: *** or ***'
    >>> scrubbed("Basic " + base64.b64encode(b"me:sk-1234567").decode(), "sk-1234567")
    'Basic bWU6***'
    """
    if not secret:
        return text
    forms = ["".join(map(_written, secret)), re.escape(secret.encode().hex())]
    for shift in range(3):  # by what stands before it, base64 writes it in three ways
        coded = base64.b64encode(b"\0" * shift + secret.encode()).decode().rstrip("=")
        whole = coded[-(-shift * 4 // 3) : len(coded) - 1 if (shift + len(secret)) % 3 else None]
        if len(whole) > 7:
            end = "[A-Za-z0-9+/_-]?=*"
            forms += [re.escape(x) + end for x in (whole, whole.translate(_URL_SAFE))]
    return re.sub("|".join(forms), "***", text, flags=re.I)


_URL_SAFE: Final = str.maketrans("+/", "-_")


def _written(letter: str) -> str:
    code = ord(letter)
    coded = "".join(f"%{byte:02x}" for byte in letter.encode())
    twice = quote(coded, safe="")
    named = re.escape(escape(letter))  # &amp;
    return (
        f"(?:{named}|\\\\?{re.escape(letter)}|{coded}|{twice}|\\\\u{code:04x}|\\\\x{code:02x}"
        f"|&#0*{code};|&#x0*{code:x};)"
    )
