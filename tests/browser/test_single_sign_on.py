"""Signing in with a provider in a real Chromium, which sends cookies as browsers do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_labelling import Check, picture
from tests.browser.test_pages import fill, labels, ready
from tests.integration.server.harness import Process, running, until, unused_port
from tests.judge_server import serving as in_thread
from tests.oidc_provider import Provider, variables_for

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server whose people sign in with a provider on another site (ports do not count)."""
    folder: Path = tmp_path_factory.mktemp("serve")
    provider, port = Provider(), unused_port()
    with in_thread(provider):
        provider.url = provider.url.replace("127.0.0.1", "localhost")
        provider.redirects = {f"http://127.0.0.1:{port}/sign-in/oidc/callback"}
        url = f"sqlite:///{folder}/venire.db"
        with running(Process(url, folder, port, env=variables_for(provider))) as server:
            yield server


def test_a_person_signs_in_with_the_provider_labels_and_signs_out(
    page: Any, served: Process, check_access: Check
) -> None:
    with served.client(timeout=200) as client:
        panel = [{"id": "ann@example.org", "competence": 0.8}]
        fill(client, "posts", "Buy now", panel=panel, undo_seconds=0)
        page.goto(f"{served.url}/work?stream=posts")
        for width in (360, 1440):
            page.set_viewport_size({"width": width, "height": 760})
            check_access(page, "sign-in")
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                picture(page, f"sign-in-{scheme}-{width}")
        page.click("text=Sign in with Acme")
        assert page.url.startswith("http://localhost:")
        page.click("text=Ann Ray")
        ready(page)
        assert page.url == f"{served.url}/work?stream=posts"
        assert page.inner_text("form.who bdi") == "Ann Ray"
        page.keyboard.press("1")
        until(lambda: labels(client, "posts", "i0") == [("ann@example.org", "spam")])
        page.click("text=Sign out")
        page.wait_for_selector("text=Signed out")
        check_access(page, "signed-out")
        picture(page, "signed-out")
        page.click("text=Sign out of Acme too")
        page.wait_for_selector("#key")
        assert page.url == f"{served.url}/"


def test_who_has_no_role_is_told_why(page: Any, served: Process, check_access: Check) -> None:
    page.goto(f"{served.url}/sign-in/oidc")
    page.click("text=Eve")
    page.wait_for_selector("text=You have no role here")
    assert "<b>bold</b>" in page.inner_text("main")
    check_access(page, "no-role")
    picture(page, "no-role")
