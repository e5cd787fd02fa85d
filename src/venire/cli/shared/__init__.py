"""What several commands share: options, tables, stores, worlds, and what is printed."""

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
