import subprocess
import sys
import warnings

import pytest

import venire
from venire.cli import COMMANDS, main, make_app
from venire.cli.simulate import LEARNING, POLICY
from venire.scheduling.base import Learning, Policy
from venire.scheduling.by_name import exported

HEAVY = ("matplotlib", "numba", "numpy", "pandas", "scipy", "sklearn")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"venire {venire.__version__}\n"


@pytest.mark.parametrize("args", [[], ["--help"], ["-h"]])
def test_help_names_every_verb(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 0
    out = capsys.readouterr().out
    assert all(verb in out for verb in COMMANDS)


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    told = capsys.readouterr().out
    # what mcp prints is the protocol, and what deploy-files prints the paths of its files
    assert "--json" in told or verb in ("mcp", "deploy-files")


def test_help_names_every_policy_and_learning() -> None:
    assert all(name in POLICY for name in exported(Policy))
    assert all(name in LEARNING for name in exported(Learning))


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["simulate", "--help"]])
def test_help_imports_nothing_heavy(args: list[str]) -> None:
    code = (
        "import sys; from venire.cli import main; main(sys.argv[1:]); "
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_verb_imports_only_its_own_module() -> None:
    code = (
        "import sys; from venire.cli import main; main(['keys', '--help']); "
        "print('venire.cli.simulate' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_python_m_venire() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "venire", "simulat"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: No such command 'simulat'. Did you mean 'simulate', 'estimate'?\n"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--nope"], "No such option: --nope"),
        (["simulate", "--polcy", "x"], "--policy"),
        (["simulate", "--slots", "many"], "--slots"),
        (["simulate", "extra"], "extra"),
        (["plan"], "--panel"),
    ],
)
def test_wrong_usage_is_one_line(
    args: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert says in err


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def app(verbs: object) -> None:
        raise error

    monkeypatch.setattr("venire.cli.make_app", app)


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    raising(monkeypatch, KeyboardInterrupt())
    assert main(["simulate"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_want_of_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, MemoryError("9 TiB"))
    assert main(["simulate"]) == 2
    assert capsys.readouterr().err.startswith("error: not enough memory (9 TiB)")


def test_a_bug_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, KeyError("oops"))
    with pytest.raises(KeyError):
        main(["simulate"])


def test_a_warning_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app(verbs: tuple[str, ...]) -> object:
        warnings.simplefilter("always")
        warnings.warn("this is\nodd", stacklevel=1)
        return make_app(verbs)

    shown = warnings.showwarning
    monkeypatch.setattr("venire.cli.make_app", app)
    assert main(["--version"]) == 0
    assert capsys.readouterr().err == "warning: this is odd\n"
    assert warnings.showwarning is shown
