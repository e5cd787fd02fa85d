"""`sh scripts/docs`: build the site into site/, without network; a warning is an error.

The sources are put together in build/site: the pages of docs/ with their links changed, the pages
of the project, and those that are made from the code.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Final

from tools.site import reference, sources
from tools.site.links import PROJECT, Links
from tools.site.navigation import index_of

__all__ = ["assemble", "main"]

ROOT: Final = Path(__file__).resolve().parents[2]


def assemble(folder: Path) -> None:
    """Write the sources of the site into an empty folder."""
    links, pages = Links(ROOT), dict[str, str]()
    for file in sorted((ROOT / "docs").rglob("*")):
        name = file.relative_to(ROOT / "docs").as_posix()
        if file.suffix == ".md":
            page = "index.md" if name == "README.md" else name
            text = file.read_text(encoding="utf-8").replace("```mermaid", "```text")
            pages[page] = links.of(page, f"docs/{name}", text)
        elif file.is_file():
            _write(folder / name, file.read_bytes())
    for name, page in PROJECT.items():
        pages[page] = links.of(page, name, (ROOT / name).read_text(encoding="utf-8"))
    pages |= reference.pages(ROOT)
    pages["index.md"] = index_of(pages["index.md"], {page.removesuffix(".md") for page in pages})
    for page, text in pages.items():
        _write(folder / page, text.encode())
    for path in sorted(links.shown):
        to = sources.address(path, (ROOT / path).is_dir())
        _write(folder / "extra" / to, sources.page_of(ROOT, path).encode())
    shutil.copy(Path(__file__).with_name("conf.py"), folder)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def main() -> int:
    """Build; 0 if there was no warning."""
    from sphinx.cmd.build import build_main

    parser = argparse.ArgumentParser(prog="sh scripts/docs", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="folder of the site")
    out = parser.parse_args().out
    folder = ROOT / "build" / "site"
    shutil.rmtree(folder, ignore_errors=True)
    assemble(folder)
    shutil.rmtree(out, ignore_errors=True)
    done = build_main(["-W", "--keep-going", "-q", "-j", "1", str(folder), str(out)])
    if done == 0:
        print(f"The site is in {out}: open {out / 'index.html'}")
    return done


if __name__ == "__main__":
    sys.exit(main())
