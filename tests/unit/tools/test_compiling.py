"""Kernels that a function builds are kept on disk, each for what it was built of."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.caching import NullCache

import venire
from venire.tools.compiling import _Turn, inlined, kernel

SOURCE = str(Path(venire.__file__).parents[1])

BUILDER = """
from venire.tools.compiling import kernel

def twice(step):
    @kernel
    def run(x):
        return step(step(x))
    return run
"""

PARTS = """
from builder import twice
from venire.tools.compiling import kernel

@kernel
def more(x):
    return x + 1.0

@kernel
def double(x):
    return 2.0 * x

built = twice(more), twice(double), twice(twice(double))
"""

MAIN = """
from parts import built
print([run(3.0) for run in built], sum(sum(run.stats.cache_misses.values()) for run in built))
"""


TOUCHED = 2_000_000_000


def outcome(folder: Path) -> str:
    """What a fresh process prints."""
    paths = [str(folder), str(Path(venire.__file__).parents[1])]
    own = {"PYTHONPATH": os.pathsep.join(paths), "NUMBA_CACHE_DIR": str(folder)}
    env = {**os.environ, **own, "NUMBA_DISABLE_JIT": "0"}
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=folder, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_second_process_compiles_no_built_kernel_until_a_part_changes(tmp_path: Path) -> None:
    for name, text in {"builder.py": BUILDER, "parts.py": PARTS, "main.py": MAIN}.items():
        (tmp_path / name).write_text(text)
    assert outcome(tmp_path) == "[5.0, 12.0, 48.0] 3"
    assert outcome(tmp_path) == "[5.0, 12.0, 48.0] 0"
    for name in ("builder.py", "parts.py"):  # as after installing the same version again
        os.utime(tmp_path / name, (TOUCHED, TOUCHED))
    assert outcome(tmp_path) == "[5.0, 12.0, 48.0] 0"
    (tmp_path / "parts.py").write_text(PARTS.replace("x + 1.0", "x + 10.0"))
    assert outcome(tmp_path).startswith("[23.0, 12.0, 48.0]")


def test_of_three_processes_one_compiles(tmp_path: Path) -> None:
    for name, text in {"builder.py": BUILDER, "parts.py": PARTS}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "main.py").write_text(MAIN)
    with ThreadPoolExecutor() as pool:
        said = list(pool.map(outcome, [tmp_path] * 3))
    assert {text.rpartition(" ")[0] for text in said} == {"[5.0, 12.0, 48.0]"}
    assert sum(int(text.rpartition(" ")[2]) for text in said) == 3


def test_who_compiles_is_not_waited_for_in_vain(tmp_path: Path) -> None:
    one, other = _Turn(tmp_path / "lock"), _Turn(tmp_path / "lock")
    assert not one.taken()
    other.PATIENCE = 0.1  # type: ignore[misc]
    assert not other.taken()
    one.over()
    other.over()
    assert not other.taken()
    (tmp_path / "file").write_text("")
    assert not _Turn(tmp_path / "file" / "lock").taken()


def test_a_kernel_built_of_code_without_a_file_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "builder.py").write_text(BUILDER)
    (tmp_path / "main.py").write_text(
        "from builder import twice\nfrom numba import njit\n"
        "space = {}\nexec('def less(x): return x - 1.0', space)\n"
        "run = twice(njit(space['less']))\nprint(run(3.0), type(run._cache).__name__)\n"
    )
    assert outcome(tmp_path) == "1.0 NullCache"
    assert not list(tmp_path.rglob("*run*.nbi"))


def test_a_part_called_from_python_is_an_entry_point_of_its_own() -> None:
    @inlined
    def half(x: float) -> float:
        return x / 2.0

    @inlined
    def quarter(x: float) -> float:
        return half(half(x))

    @inlined
    def same(x: float) -> float:
        return quarter(x) if x < 0 and x > 0 else half(2.0 * x)  # a call that is optimised away

    @kernel
    def eighth(x: float) -> float:
        return half(quarter(same(x)))

    def written(x: float) -> float:
        return half(half(quarter(x)))

    sixteenth: Any = njit(written)

    assert quarter(8.0) == 2.0  # before and after it is a part of something
    assert eighth(8.0) == 1.0
    assert sixteenth(8.0) == 0.5
    assert quarter(8.0) == 2.0


def test_a_part_is_compiled_once_for_all_sizes_of_integer_and_an_entry_point_may_be_one() -> None:
    @inlined
    def twice(x: int) -> int:
        return 2 * x

    @kernel
    def inner(x: int) -> int:
        return twice(x) + twice(3)

    @kernel
    def outer(values: Any) -> int:
        return inner(values[0]) + twice(values[1])

    compiled: Any = twice
    if hasattr(compiled, "overloads"):
        uncached: Any = outer
        uncached._cache = NullCache()  # what an earlier run kept on disk compiles no part
    largest = np.iinfo(np.int32).max
    assert outer(np.array([largest, largest], np.int32)) == 4 * largest + 6
    if hasattr(compiled, "overloads"):  # not with NUMBA_DISABLE_JIT
        assert [list(map(str, given)) for given in compiled.overloads] == [["int64"]]
    assert inner(1) == 8


NOTICE = """
from venire.tools.compiling import Notice

for _ in range(10):
    Notice.count()
assert not Notice.given
for _ in range(10):
    Notice.count()
"""


def test_the_notice_comes_once() -> None:
    told = subprocess.run(
        [sys.executable, "-c", NOTICE], capture_output=True, text=True, check=True
    )
    assert (told.stdout, told.stderr) == (
        "",
        "venire compiles, which takes up to half a minute the first time; "
        "`venire warm-up` does it beforehand\n",
    )


SHAPES = """
from typing import NamedTuple
from venire.tools.compiling import kernel

class Square(NamedTuple):
    side: float

@kernel
def area(shape):
    return shape.side * shape.side

print(area(Square(3.0)), len(area.stats.cache_misses))
"""


def test_an_index_that_names_a_class_which_is_gone_is_written_again(tmp_path: Path) -> None:
    """As after an upgrade: Numba's files stay where the old version wrote them."""
    main = tmp_path / "main.py"
    (tmp_path / "shapes.py").write_text(SHAPES)
    main.write_text("import shapes")
    assert outcome(tmp_path) == "9.0 1"
    (tmp_path / "shapes.py").write_text(SHAPES.replace("Square", "Box"))
    assert outcome(tmp_path) == "9.0 1"
    assert outcome(tmp_path) == "9.0 0"


@pytest.mark.parametrize("temporary", [True, False])
def test_without_a_folder_for_compiled_code_it_works_and_says_so(
    tmp_path: Path, temporary: bool
) -> None:
    (tmp_path / "__pycache__").write_text("no folder")
    (tmp_path / "one.py").write_text(
        "from venire.tools.compiling import kernel\n@kernel\ndef one(x):\n    return x + 1.0\n"
    )
    source = "import tempfile; from pathlib import Path; "
    if not temporary:
        source += "tempfile.mkdtemp = lambda **_: open('/nowhere/at/all'); "
    source += "import os, one; print(one.one(1.0)); folder = os.environ['NUMBA_CACHE_DIR']; "
    source += "print(folder, len(list(Path(folder).rglob('*.nbi'))))"
    nowhere = str(tmp_path / "__pycache__")
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": nowhere}
    env |= {"XDG_CACHE_HOME": nowhere, "PYTHONPATH": SOURCE}
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    first, kept = done.stdout.splitlines()
    folder, _, files = kept.rpartition(" ")
    assert first == "2.0"
    assert f"NUMBA_CACHE_DIR={nowhere} is not a folder that this user may write to" in done.stderr
    assert "Set NUMBA_CACHE_DIR to a folder" in done.stderr
    assert done.stderr.count("RuntimeWarning") == 1
    assert int(files) == temporary
    assert temporary == ("nothing is kept" not in done.stderr)
    assert temporary == (folder != nowhere)
    assert not temporary or not Path(folder).exists()
