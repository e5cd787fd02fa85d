"""The recipes of docs/architecture.md: each is a patch, applied to a copy of the package and used.

A patch that no longer applies, or no longer does what the page promises, is a recipe that is wrong.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent.parent
PAGE: Final = (ROOT / "docs" / "architecture.md").read_text()

#: The most files that a recipe may touch.
MOST: Final = 5

#: What a reader would try after following each recipe.
USES: Final = {
    "an-api-verb": """
from venire import AsyncClient, Client
from venire.client import calls
from venire.operations import OPERATIONS
from venire.server import Service
from venire.server.app import create_app
from venire.server.edge.access import ROLES
from venire.server.store import open_storage

assert calls.queue("posts").path == "/v1/streams/posts/queue"
assert callable(Client.queue) and callable(AsyncClient.queue)
assert ROLES["GET /v1/streams/{stream}/queue"] == OPERATIONS["queue"].roles
described = create_app(Service(open_storage("memory:"))).openapi()
entry = described["paths"]["/v1/streams/{stream}/queue"]["get"]
assert entry["x-roles"] == ["admin", "producer", "reviewer", "viewer"], entry
""",
    "a-setting": """
from venire.server.pages.setting_fields import groups_of
from venire.server.settings import StreamSettings

settings = StreamSettings(classes=["a", "b"], most_open=7)
field = next(one for _, fields in groups_of(settings) for one in fields if one.name == "most_open")
assert (field.value, field.unit, field.least) == ("7", "items", 1), field
assert field.hint.startswith("Further items are refused"), field
assert "most_open" in StreamSettings.model_json_schema()["properties"]
""",
    "an-alarm-rule": """
from types import SimpleNamespace
from venire.server.reports.alarm_rules import findings, settled
from venire.server.settings import StreamSettings

settings = StreamSettings(classes=["a", "b"], alarms={"late_labels": 3})
now = SimpleNamespace(
    open_items=0, late_labels=4, oldest_seconds=None, response_p90=None, error_upper=None,
    budget=None, budget_left=None,
)
trends = SimpleNamespace(
    exits=0, accuracy=None, accuracy_high=None, single_label_share=None, mix={}, mix_shift=0.0
)
(found,) = findings(settings, now, trends, [])
assert found.message == "4 labels came late, more than 3", found
now.late_labels = 2
assert settled(found, settings, now, trends, []).message == "2 late labels, back below 3"
""",
}


def files_of(recipe: str) -> list[str]:
    """The files that a patch changes or adds."""
    return re.findall(r"^\+\+\+ b/(.+)$", (HERE / f"{recipe}.patch").read_text(), re.MULTILINE)


def test_every_patch_is_a_recipe_with_a_use_and_a_place_on_the_page() -> None:
    assert {path.stem for path in HERE.glob("*.patch")} == set(USES)
    for recipe in USES:
        assert f"tests/recipes/{recipe}.patch" in PAGE


@pytest.mark.parametrize("recipe", sorted(USES))
def test_a_recipe_touches_few_files_and_does_what_it_promises(recipe: str, tmp_path: Path) -> None:
    assert len(files_of(recipe)) <= MOST
    for folder in ("src", "docs"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.png")
        )
    patch = HERE / f"{recipe}.patch"
    subprocess.run(["git", "init", "--quiet", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "--recount", "-C1", str(patch)], cwd=tmp_path, check=True)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run(
        [sys.executable, "-c", USES[recipe]],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
