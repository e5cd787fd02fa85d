"""What others wrote, or will read, does no harm."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.tools.untrusted import harmless, is_file_name, parse_json, scrubbed

KEYS = st.text("abcXYZ019-_.~+/=&<", min_size=8, max_size=40)


@pytest.mark.parametrize("text", ["[" * 200_000, "9" * 5_000, '{"a":' * 100_000, b"\xff", "{"])
def test_whatever_is_wrong_with_json_is_one_error(text: str | bytes) -> None:
    with pytest.raises(json.JSONDecodeError):
        parse_json(text)


@given(key=KEYS, before=st.text("ab:", max_size=5), after=st.text("ab:", max_size=5))
def test_a_secret_is_scrubbed_however_it_is_encoded(key: str, before: str, after: str) -> None:
    whole = f"{before}{key}{after}"
    everything = "".join(f"%{byte:02X}" for byte in key.encode())
    unicode = "".join(f"\\u{ord(letter):04x}" for letter in key)
    for told in (key, quote(key, safe=""), quote(quote(key, safe=""), safe=""), everything,
                 html.escape(key), json.dumps(key)[1:-1], unicode, key.encode().hex(),
                 key.replace("/", "\\/"), key.upper()):  # fmt: skip
        assert scrubbed(f"no: {told}!", key) == "no: ***!", told
    for coded in (base64.b64encode(whole.encode()), base64.urlsafe_b64encode(whole.encode())):
        assert "***" in scrubbed(coded.decode(), key)


@given(st.text(max_size=9))
def test_no_cell_is_a_formula(text: str) -> None:
    cell = harmless(text)
    if cell[:1] in ("=", "+", "-", "@", "\t", "\r"):
        float(cell)  # a number
    assert cell in (text, f"'{text}")


@pytest.mark.parametrize(
    "name", ["..", ".", "", "../x", "a/b", "a\\b", "/etc", "a\0", "-x", "é", 7]
)
def test_no_path_is_a_name(name: object) -> None:
    assert not is_file_name(name)
