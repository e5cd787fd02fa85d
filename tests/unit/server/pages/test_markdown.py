"""Markdown comes out as HTML of known tags, whatever goes in."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.server.pages.rendering import ATTRIBUTES, TAGS, as_html

#: Pieces that something dangerous could be made of.
PIECES = st.sampled_from(
    ["<script>", "</script>", "<img src=x onerror=a()>", "[a](", "](", ")", "javascript:a()", "![",
     "# ",
     "- ", "> ", "1. ", "```", "`", "|a|b|\n|-|-|\n|c|d|", "\n", "\n\n", "&lt;", '"', "'", "<", ">",
     "data:text/html,x", "https://a.b", "<a href='javascript:a()'>",
     "**", "~~", "\\", "onclick=a()"]
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=50), st.lists(st.one_of(PIECES, st.text(max_size=5))).map("".join)
)


class Seen(HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@given(TEXTS)
def test_only_known_tags_and_attributes_come_out(text: str) -> None:
    depth = 1
    for tag, attributes in Seen(as_html(text)).tags:
        assert tag in TAGS
        assert set(attributes) <= ATTRIBUTES
        if "href" in attributes:
            assert (attributes["href"] or "").startswith(("http://", "https://", "mailto:"))
        if tag[0] == "h" and tag[1:].isdecimal():
            assert int(tag[1]) <= depth + 1  # no level is left out
            depth = int(tag[1])


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# a\n### b\n## c", "<h2>a</h2>\n<h3>b</h3>\n<h3>c</h3>\n"),
        ("a\nb", "<p>a<br>\nb</p>\n"),
        ("![a cat](https://a.b/c.png)", "<p>a cat</p>\n"),
        ("[a](javascript:b)", "<p>[a](javascript:b)</p>\n"),
        ("```js\n<b>\n```", "<pre><code>&lt;b&gt;\n</code></pre>\n"),
        ("", ""),
    ],
)
def test_examples(text: str, html: str) -> None:
    assert as_html(text).replace(' dir="auto"', "") == html
