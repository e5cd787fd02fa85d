"""The environment of other programs: never a dependency, made on demand in .bench-peers/."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent.parent / ".bench-peers"

#: crowd-kit without what only its text methods need (transformers and what that brings).
ALONE = ["crowd-kit==1.4.2"]
NEEDS = ["attrs", "nltk", "numpy", "pandas", "scikit-learn", "tqdm"]


def peer_python() -> Path:
    """The Python of that environment; makes it the first time."""
    python = FOLDER / "bin" / "python"
    done = FOLDER / ".done"
    if not done.exists():
        print(f"Installing {', '.join(ALONE)} into {FOLDER} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(FOLDER)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *NEEDS], check=True)
        subprocess.run([*pip, "--no-deps", *ALONE], check=True)
        done.touch()
    return python
