"""Files of judges: what is read, and what the errors say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from venire.connectors.judges import Judge, open_judges, read_judges
from venire.connectors.judges.prompt import Prompt
from venire.errors import FileError, InputError, MissingExtra

YAML = """\
# for every judge
classes:
  spam: it sells something
  ok:
prompt: "{{ text }}"
base_url: http://127.0.0.1:1/v1/
judges:
  - id: strict
    model: gpt-x
    rpm: 500
    price: {input: 0.15, output: 0.6}
    temperature: 0
  - {id: mild, model: llama, votes: 3, prompt: "Is it spam? {{ item }}"}
"""

TOML = """\
prompt = "{{ text }}"
base_url = "http://127.0.0.1:1/v1"
[classes]
spam = "it sells something"
ok = ""
[[judges]]
id = "strict"
model = "gpt-x"
rpm = 500
price = {input = 0.15, output = 0.6}
temperature = 0
[[judges]]
id = "mild"
model = "llama"
votes = 3
prompt = "Is it spam? {{ item }}"
"""


def written(folder: Path, text: str, name: str = "judges.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_yaml_and_toml_say_the_same(tmp_path: Path) -> None:
    judges = read_judges(written(tmp_path, YAML))
    assert judges == read_judges(written(tmp_path, TOML, "judges.toml"))
    strict, mild = judges
    assert (strict.rpm, strict.price.output, strict.extra) == (500.0, 0.6, {"temperature": 0})
    assert strict.classes == {"spam": "it sells something", "ok": ""}
    assert (mild.votes, mild.prompt, mild.api_key_env) == (3, "Is it spam? {{ item }}", None)
    assert mild.base_url == "http://127.0.0.1:1/v1"


def test_a_list_of_judges_alone_will_do(tmp_path: Path) -> None:
    (judge,) = read_judges(written(tmp_path, "- {id: 7, model: m, prompt: p}\n"))
    assert (judge.id, judge.api_key_env) == ("7", "OPENAI_API_KEY")


ONE = "judges:\n  - id: a\n    model: m\n    prompt: p\n    "
BAD = {
    ONE + "rpm: fast": r"line 5: judges\[0\].rpm is 'fast', expected a number above 0",
    ONE + "rpm: -1": r"line 5: judges\[0\].rpm is -1, expected a number above 0",
    ONE + "timeout: .inf": r"line 5: judges\[0\].timeout is inf",
    ONE + "votes: 0": r"line 5: judges\[0\].votes is 0, expected a whole number, 1 or more",
    ONE + "votes: 1.5": r"votes is 1.5, expected a whole number",
    ONE + "num_retries: -1": r"num_retries is -1, expected a whole number, 0 or more",
    ONE + "logprobs: 5": r"line 5: judges\[0\].logprobs is 5, expected true or false",
    ONE + "classes: [yes, no]": r"line 5: judges\[0\].classes\[0\] is true, .*quotes, \"yes\"",
    ONE + "classes: {no: bad}": r"classes.False is false, expected text: put it in quotes",
    ONE + "classes: spam": r"classes is 'spam', expected a list of names",
    ONE + "classes: [a]": r"classes is \['a'\], expected two or more different names",
    ONE + "classes: [a, a]": r"expected two or more different names",
    ONE + "price: 3": r"price is 3, expected \{input: ..., output: ...\} per million tokens",
    ONE
    + "price:\n      input: 1\n      output: free": r"line 7: judges\[0\].price.output is 'free'",
    ONE + "price: {in: 3}": r"expected \{input: ..., output: ...\}",
    ONE + "base_url: example.org": r"base_url is 'example.org', expected http://... or https://",
    ONE + "base_url: http://a:b@c/v1": r"base_url has a password in it: name the variable",
    ONE
    + "api_key: sk-123": r"line 5: judges\[0\].api_key cannot be sent to the API: keys come from",
    ONE + "stream: true": r"stream cannot be sent to the API: answers are read as a whole",
    ONE + "vote: 3": r"judges\[0\].vote is not a key of a judge: did you mean votes\?",
    ONE + "pair: [a]": r"pair is \['a'\], expected the two fields that are compared",
    ONE + "pair: [a, b]": r"classes has 0 classes, expected the first, the second",
    "judges:\n  - id: a\n    prompt: p": r"line 2: judges\[0\].model is missing: every judge needs",
    "rpm: 0\njudges:\n  - {id: a, model: m, prompt: p}": r"line 1: rpm is 0, expected",
    "judges:\n  - {id: a, model: m, prompt: p}\n  - {id: a, model: n, prompt: p}": (
        r"line 3: judges\[1\].id is 'a', as judges\[0\] is: rename one"
    ),
    "judges:\n  - gpt": r"line 2: judges\[0\] is 'gpt', expected id, model, prompt",
    "judges: []": "the list of judges is empty",
    "models: []": "has no list of judges: write `judges:`",
    "": "has no list of judges",
    "judges: [\n": r"line 2: this is not YAML: expected",
    "a: b: c": r"line 1: this is not YAML: mapping values are not allowed here",
}


@pytest.mark.parametrize(("text", "message"), BAD.items())
def test_an_error_names_the_line_the_key_and_the_remedy(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(FileError, match=message) as caught:
        read_judges(written(tmp_path, text))
    assert "sk-123" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"cannot be read \(no such file or directory\)"):
        read_judges(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"judges: \xe9")
    with pytest.raises(FileError, match="not UTF-8"):
        read_judges(tmp_path / "latin.yaml")
    with pytest.raises(FileError, match=r"this is not TOML: .*line 1"):
        read_judges(written(tmp_path, "a = = b", "judges.toml"))


async def opened(path: Path) -> list[str]:
    async with open_judges(path) as judges:
        return [type(judge).__name__ for judge in judges.values()]


def test_judges_are_opened_together(tmp_path: Path) -> None:
    import asyncio

    pair = YAML + '  - {id: two, model: m, pair: [a, b], prompt: "{{ a }}{{ b }}"}\n'
    assert asyncio.run(opened(written(tmp_path, pair))) == ["Judge", "Judge", "PairJudge"]
    bad = YAML.replace("{{ item }}", "{{ item")
    with pytest.raises(FileError, match=r"judge mild: prompt is not a jinja2 template, line 1"):
        asyncio.run(opened(written(tmp_path, bad)))


ATTACKS = [
    "{{ ''.__class__.__mro__ }}",
    "{{ item.__init__.__globals__ }}",
    "{{ item.clear() }}",
    "{% include '/etc/passwd' %}",
    "{{ self.__init__ }}",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_templates_are_in_a_sandbox(attack: str) -> None:
    with pytest.raises(InputError, match="the prompt cannot be filled in"):
        Prompt(attack + "{{ missing }}").messages({"text": "x"}, {"a": "", "b": ""})


def test_the_text_of_an_item_is_not_a_template() -> None:
    item = {"text": "{{ 7 * 7 }}<b>"}
    assert Prompt("{{ text }}").messages(item, {"a": "", "b": ""})[-1]["content"] == item["text"]


def test_instructions_are_where_the_template_wants_them() -> None:
    (user,) = Prompt("{{ item }}\n{{ instructions }}").messages("x", {"a": "", "b": ""})
    assert user["content"].startswith("x\nThe classes are:\n- a\n- b\nAnswer with JSON only")


@pytest.mark.parametrize(
    ("module", "package"), [("yaml", "pyyaml"), ("jinja2", "jinja2"), ("httpx2",) * 2]
)
def test_a_missing_library_says_how_to_install_it(
    module: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, YAML)
    monkeypatch.setitem(sys.modules, module, None)
    for name in [name for name in sys.modules if name.startswith(f"{module}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra) as caught:
        Judge(read_judges(path)[0])
    assert f"{package} is not installed" in str(caught.value)
    assert "pip install 'venire[judges]'" in str(caught.value)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, venire.connectors.judges; "
        "print([m for m in ('httpx2', 'jinja2', 'yaml', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
