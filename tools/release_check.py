"""Build the release twice, install it with each extra alone, and try its commands.

Run by scripts/release-check. It makes, in a folder that is not part of the repository:

1. the wheel and the sdist, twice, with the date of the last commit: both builds are equal;
2. an empty environment for each extra, with the wheel from 1: its command works there, and a
   command that lacks an extra names it;
3. the bill of materials of the server's environment (CycloneDX), beside the wheel.

The tools for it (build, uv, cyclonedx-bom) are installed into an environment of their own.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent

TOOLS: Final = ("build", "uv", "cyclonedx-bom")

JUDGES: Final = """
base_url: http://127.0.0.1:9/v1
classes: ["good", "bad"]
prompt: "Is this good? {{ text }}"
num_retries: 0
judges:
  - {id: one, model: m, price: {input: 1, output: 1}}
"""
LABELS: Final = "task,worker,label\na,ann,yes\na,bob,yes\nb,ann,no\nb,bob,no\nb,eve,yes\n"


class Install(NamedTuple):
    """An empty environment with the wheel and one extra, and a folder to work in."""

    extra: str
    bin: Path
    folder: Path

    def run(self, *words: str, fails_with: str = "") -> str:
        """Run a program of the environment; it must succeed, or fail and say this."""
        command = [str(self.bin / words[0]), *words[1:]]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=900
        )
        said = done.stdout + done.stderr
        if (done.returncode != 0) is not bool(fails_with) or fails_with not in said:
            wanted = f"to fail with {fails_with!r}" if fails_with else "to succeed"
            raise SystemExit(
                f"error: with [{self.extra}], expected `{' '.join(words)}` {wanted}, got "
                f"exit code {done.returncode}:\n{said[-2000:]}"
            )
        return done.stdout


def core(at: Install) -> None:
    """Without an extra: tables, simulations, plans; the others name their extra."""
    (at.folder / "labels.csv").write_text(LABELS)
    at.run("venire", "--version")
    at.run("venire", "aggregate", "labels.csv", "--out", "verdicts.csv")
    at.run("venire", "simulate", "--policy", "greedy", "--slots", "50")
    at.run("venire", "demo", fails_with="venire[demo]")
    at.run("venire", "compare", "--quick", fails_with="venire[plot]")
    at.run("venire", "serve", fails_with="venire[serve]")
    at.run("venire", "keys", "list", fails_with="venire[serve]")
    work = ("venire", "work", "--stream", "s", "--call", "string:capwords", "--key", "k")
    at.run(*work, fails_with="venire[client]")


def data(at: Install) -> None:
    """Tables in Parquet."""
    (at.folder / "labels.csv").write_text(LABELS)
    at.run("venire", "aggregate", "labels.csv", "--out", "verdicts.parquet")


def plot(at: Install) -> None:
    """A comparison, with its picture."""
    words = ("--policy", "greedy", "--regime", "paper", "--quick", "--seeds", "1", "--jobs", "1")
    at.run("venire", "compare", *words, "--no-certificate", "--out", "out")


def demo(at: Install) -> None:
    """The demo."""
    at.run("venire", "demo", "--seeds", "1", "--no-live")


def client(at: Install) -> None:
    """A worker, which finds no server."""
    words = ("--stream", "s", "--call", "string:capwords", "--key", "k", "--until-idle", "1")
    at.run("venire", "work", *words, "--url", "http://127.0.0.1:9", fails_with="127.0.0.1:9")


def judges(at: Install) -> None:
    """Judges and models whose server is not there: no label, and one line that says so."""
    (at.folder / "items.jsonl").write_text('{"id": "a", "text": "good"}\n')
    (at.folder / "judges.yaml").write_text(JUDGES)
    words = ("items.jsonl", "--config", "judges.yaml", "--budget", "1", "--out", "verdicts.jsonl")
    at.run("venire", "judge", *words, fails_with="no label was bought")
    (at.folder / "panel.yaml").write_text(
        "- {id: m, http: 'http://127.0.0.1:9/', request: {}, label: x, num_retries: 0}\n"
    )
    words = ("items.jsonl", "--panel", "panel.yaml", "--labels", "1", "--out", "v.csv")
    at.run("venire", "label", *words, fails_with="no label was bought")


def serve(at: Install) -> None:
    """A server that answers."""
    command = [str(at.bin / "venire"), "serve", "--port", "0", "--storage", "sqlite:///venire.db"]
    with (at.folder / "serve.log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=at.folder, stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert server.stdout is not None
    try:
        lines = iter(server.stdout.readline, "")
        address = next((w for line in lines for w in line.split() if w.startswith("http")), None)
        if address is None:
            raise SystemExit(f"error: the server did not start: {at.folder / 'serve.log'}")
        with urllib.request.urlopen(f"{address.rstrip('/.')}/health", timeout=60) as answer:
            assert answer.status == 200
    finally:
        server.terminate()
        server.wait(60)
    at.run("venire", "keys", "list")


def postgres(at: Install) -> None:
    """A store in PostgreSQL, which is not there."""
    url = "postgresql://venire@127.0.0.1:9/venire"
    at.run("venire", "keys", "list", "--storage", url, fails_with="refused")


def datasets(at: Install) -> None:
    """Verdicts as a data set."""
    (at.folder / "labels.csv").write_text(LABELS)
    at.run("venire", "aggregate", "labels.csv", "--out", "verdicts.dataset")


def mcp(at: Install) -> None:
    """An MCP server that has no key."""
    at.run("python", "-c", "import mcp, venire.connectors.mcp")
    at.run("venire", "mcp", fails_with="VENIRE_KEY")


def sklearn(at: Install) -> None:
    """A model in a file."""
    save = (
        "import skops.io; from sklearn.dummy import DummyClassifier\n"
        "skops.io.dump(DummyClassifier().fit([[0], [1]], ['a', 'b']), 'm.skops')"
    )
    at.run("python", "-c", save)
    (at.folder / "items.jsonl").write_text('{"id": "a", "x": 1}\n')
    (at.folder / "panel.yaml").write_text("- {id: m, sklearn: m.skops, fields: [x]}\n")
    words = ("items.jsonl", "--panel", "panel.yaml", "--labels", "1", "--out", "v.csv")
    at.run("venire", "label", *words)


def student(at: Install) -> None:
    """A function labels, and a student learns from it."""
    rows = (f'{{"id": "{word}{n}", "text": "{word}"}}\n' for n in range(20) for word in ("a", "b"))
    (at.folder / "items.jsonl").write_text("".join(rows))
    (at.folder / "said.py").write_text("def text(item):\n    return item['text']\n")
    (at.folder / "panel.toml").write_text('[[labelers]]\nid = "one"\ncall = "said:text"\n')
    words = ("items.jsonl", "--panel", "panel.toml", "--labels-per-item", "1", "--out", "v.csv")
    at.run("venire", "label", *words, "--student", "text")


def onnx(at: Install) -> None:
    """A file that is no model is named as such by the runtime."""
    (at.folder / "items.jsonl").write_text('{"id": "a", "x": 1}\n')
    (at.folder / "m.onnx").write_text("no model")
    (at.folder / "panel.yaml").write_text("- {id: m, onnx: m.onnx, fields: [x]}\n")
    words = ("items.jsonl", "--panel", "panel.yaml", "--labels", "1", "--out", "v.csv")
    at.run("venire", "label", *words, fails_with="no ONNX model")


def distributed(at: Install) -> None:
    """Two files of labels are aggregated on a cluster of this machine."""
    for name, task in (("one", "a"), ("two", "b")):
        rows = "".join(f"{task},{who},{said}\n" for who, said in (("ann", "yes"), ("bob", "no")))
        (at.folder / f"labels-{name}.csv").write_text(f"task,worker,label\n{rows}")
    words = ("labels-*.csv", "--method", "majority", "--cluster", "local", "--out", "v.csv")
    at.run("venire", "aggregate", *words)


def inspect(at: Install) -> None:
    """A panel of judges as a scorer of inspect_ai, which is made and asks nobody."""
    (at.folder / "judges.yaml").write_text(JUDGES)
    make = "from venire.connectors.inspect import panel_scorer; panel_scorer('judges.yaml', 'good')"
    at.run("python", "-c", make)


def oidc(at: Install) -> None:
    """What single sign-on needs can be imported."""
    at.run("python", "-c", "import authlib.oidc.core, joserfc.jwt, venire.server.edge.oidc")


def notebooks(at: Install) -> None:
    """What runs the notebooks can be imported."""
    at.run("python", "-c", "import ipykernel, nbclient, nbformat, pandas, matplotlib, venire")


EXTRAS: Final[dict[str, Callable[[Install], None]]] = {
    "none": core,
    "data": data,
    "plot": plot,
    "demo": demo,
    "client": client,
    "judges": judges,
    "inspect": inspect,
    "serve": serve,
    "oidc": oidc,
    "postgres": postgres,
    "distributed": distributed,
    "datasets": datasets,
    "mcp": mcp,
    "sklearn": sklearn,
    "onnx": onnx,
    "student": student,
    "notebooks": notebooks,
}


def run(*words: str | Path, **variables: str) -> str:
    """Run a command in the repository, and return what it prints."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"error: {words[0]} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def digests(folder: Path) -> dict[str, str]:
    """The sha256 of each file in a folder, by name."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }


def build(tools: Path, scratch: Path) -> Path:
    """The wheel, built twice from a clean copy of the last commit with the same result."""
    epoch = run("git", "log", "-1", "--format=%ct").strip()
    found = []
    for name in ("dist", "again"):
        source = scratch / f"source-{name}"
        run("git", "clone", "--quiet", "--local", ROOT, source)
        run(tools / "python", "-m", "build", "--outdir", scratch / name, source,
            SOURCE_DATE_EPOCH=epoch)  # fmt: skip
        found.append(digests(scratch / name))
        time.sleep(1)  # another second on the clock must change nothing
    if found[0] != found[1]:
        raise SystemExit(f"error: two builds differ: {found[0]} and {found[1]}")
    for name, digest in found[0].items():
        print(f"{digest}  {name}")
    (wheel,) = (scratch / "dist").glob("*.whl")
    return wheel


def install(tools: Path, wheel: Path, extra: str, python: str, scratch: Path) -> Install:
    """An empty environment with the wheel and this extra alone."""
    folder = scratch / f"env-{extra}"
    run(tools / "uv", "venv", "--quiet", "--python", python, folder / "venv")
    wanted = f"venire{'' if extra == 'none' else f'[{extra}]'} @ {wheel.as_uri()}"
    home = folder / "venv"
    run(tools / "uv", "pip", "install", "--quiet", "--python", home / "bin" / "python", wanted)
    return Install(extra, home / "bin", folder)


def bill_of_materials(tools: Path, at: Install, wheel: Path) -> None:
    """Write what the server's environment is made of beside the wheel."""
    sheet = wheel.with_name(f"{wheel.name.removesuffix('.whl')}.cdx.json")
    run(tools / "cyclonedx-py", "environment", "--output-reproducible", "--of", "JSON",
        "--output-file", sheet, at.bin / "python")  # fmt: skip
    print(f"bill of materials: {sheet.name}, {sheet.stat().st_size:,} bytes")


def main(words: Sequence[str] | None = None) -> None:
    """Build, install and try; all extras, unless some are named."""
    parser = argparse.ArgumentParser(prog="scripts/release-check", description=__doc__)
    parser.add_argument("extras", nargs="*", choices=[*EXTRAS, []], help="only these")
    parser.add_argument("--python", default=sys.executable, help="for the environments")
    parser.add_argument("--keep", type=Path, help="a folder for the files, which stay there")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="venire-release-") as made:
        scratch = Path(given.keep or made).resolve()
        scratch.mkdir(parents=True, exist_ok=True)
        if any(scratch.iterdir()):
            raise SystemExit(f"error: {scratch} is not empty: name a new folder")
        run(sys.executable, "-m", "venv", scratch / "tools")
        tools = scratch / "tools" / "bin"
        run(tools / "python", "-m", "pip", "install", "--quiet", *TOOLS)
        wheel = build(tools, scratch)
        for extra in given.extras or EXTRAS:
            start = time.monotonic()
            at = install(tools, wheel, extra, given.python, scratch)
            EXTRAS[extra](at)
            print(f"venire[{extra}] works: {time.monotonic() - start:.0f} s", flush=True)
            if extra == "serve":
                bill_of_materials(tools, at, wheel)


if __name__ == "__main__":
    main()
