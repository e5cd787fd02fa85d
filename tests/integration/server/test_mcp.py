"""`venire mcp`: an agent labels a stream of a running server, and does what its role allows."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.server.harness import SOURCE, Process
from venire.client import AsyncClient
from venire.connectors.mcp import TOOLS, Tools, make_server
from venire.model import Role
from venire.operations import OPERATIONS

if TYPE_CHECKING:
    from mcp import Client as Agent

SETTINGS: dict[str, Any] = {
    "classes": ["spam", "ok"],
    "slot_seconds": 0.2,
    "default_weight": 100.0,
    "panel": [{"id": "agent", "capacity": 4}],
}
TEXTS = {f"i{n}": f"{'BUY' if n % 2 else 'see'} {n}" for n in range(8)}


def agent_of(server: Any) -> Agent:
    from mcp import Client  # a second's work, only in a process that needs it

    return Client(server)


def ask(process: Process, key: str, talk: Callable[[Agent], Awaitable[Any]]) -> Any:
    """Talk to a server in this process, under the role of a key."""

    async def run() -> Any:
        async with AsyncClient(process.url, key) as client:
            who = await client.me()
            async with agent_of(make_server(client, who["role"])) as agent:
                return await talk(agent)

    return asyncio.run(run())


async def call(agent: Agent, tool: str, **given: Any) -> Any:
    done = await agent.call_tool(tool, given)
    assert not done.is_error, done.content
    return done.structured_content


@pytest.fixture
def keys(process: Process) -> dict[str, str]:
    with process.client() as client:
        made = {"admin": process.key}
        for role in ("producer", "reviewer", "viewer", "labeler"):
            labeler = "agent" if role == "labeler" else None
            made[role] = client.create_key(role, role, labeler)["token"]
        return made


async def label_everything(agent: Agent) -> int:
    """As an agent would: take, judge, answer, until there is nothing to do."""
    done = 0
    while True:
        wait = 0.0 if done == len(TEXTS) else 60.0
        work = await call(agent, "next_item", stream="asked", wait=wait)
        if work["item"] is None:
            return done
        assert work["classes"] == ["spam", "ok"]
        assert work["labeler"] == "agent"
        await call(agent, "renew", token=work["token"])
        said = "spam" if "BUY" in work["payload"]["text"] else "ok"
        told = {"label": said, "confidence": 0.9, "rationale": f"It says {work['payload']['text']}"}
        await call(agent, "label", token=work["token"], **told)
        done += 1


def test_agents_of_three_roles_send_label_and_ask(process: Process, keys: dict[str, str]) -> None:
    with process.client() as client:
        client.create_stream("asked", **SETTINGS)
    items = [{"id": name, "payload": {"text": text}} for name, text in TEXTS.items()]

    async def send(agent: Agent) -> Any:
        return await call(agent, "add_items", stream="asked", items=items)

    ask(process, keys["producer"], send)
    assert ask(process, keys["labeler"], label_everything) == len(TEXTS)

    async def look(agent: Agent) -> dict[str, Any]:
        found: dict[str, Any] = {"rows": [], "after": 0}
        while len(found["rows"]) < len(TEXTS):
            more = await call(agent, "verdicts", stream="asked", after=found["after"], limit=3)
            found["rows"] += more["verdicts"]
            found["after"] = more["after"]
            await asyncio.sleep(0.1)
        found["explained"] = await call(agent, "explain", stream="asked", item="i1")
        found["one"] = await call(agent, "verdict", stream="asked", item="i1")
        found["labelers"] = await call(agent, "labelers", stream="asked")
        found["insights"] = await call(agent, "insights", stream="asked")
        found["streams"] = await call(agent, "streams")
        return found

    found = ask(process, keys["viewer"], look)
    said = {row["item"]: row["verdict"] for row in found["rows"]}
    assert said == {name: "spam" if "BUY" in text else "ok" for name, text in TEXTS.items()}
    assert found["explained"]["given"][0]["labeler"] == "agent"
    [label] = found["one"]["labels"]
    told = label["said"], label["confidence"], label["rationale"]
    assert told == ("spam", 0.9, "It says BUY 1")
    assert [one["id"] for one in found["labelers"]["labelers"]] == ["agent"]
    assert "asked" in str(found["streams"])


def test_a_role_has_its_tools_and_the_server_checks(process: Process, keys: dict[str, str]) -> None:
    async def named(agent: Agent) -> set[str]:
        return {tool.name for tool in (await agent.list_tools()).tools}

    for role in Role:
        wanted = {name for name, entry in TOOLS.items() if role in (entry.roles or ())}
        assert ask(process, keys[role], named) == wanted

    async def cheat() -> Any:
        """The tools of an admin, with the key of a viewer."""
        client = AsyncClient(process.url, keys["viewer"])
        async with client, agent_of(make_server(client, "admin")) as agent:
            return await agent.call_tool("next_item", {"stream": "asked"})

    refused = asyncio.run(cheat())
    assert refused.is_error
    assert "viewer" in refused.content[0].text
    assert keys["viewer"] not in refused.content[0].text


def test_every_tool_is_a_method_and_an_operation() -> None:
    methods = {name for name in vars(Tools) if not name.startswith("_")}
    assert methods == set(TOOLS)
    assert TOOLS["next_item"].roles == OPERATIONS["next"].roles


def test_errors_are_told_and_a_release_gives_back(process: Process, keys: dict[str, str]) -> None:
    with process.client() as client:
        client.create_stream("given", **SETTINGS)
        client.add_items("given", [{"id": "a", "payload": "see"}])

    async def talk(agent: Agent) -> list[Any]:
        work = await call(agent, "next_item", stream="given", wait=60.0)
        held = await call(agent, "held", stream="given")
        wrong = await agent.call_tool("label", {"token": work["token"], "label": "maybe"})
        await call(agent, "release", token=work["token"], unable=True)
        after = await call(agent, "next_item", stream="given")
        lost = await agent.call_tool("next_item", {"stream": "none"})
        return [work, held, wrong, after, lost]

    work, held, wrong, after, lost = ask(process, keys["labeler"], talk)
    assert [one["item"] for one in held["held"]] == [work["item"]] == ["a"]
    assert wrong.is_error
    assert "maybe" in wrong.content[0].text
    assert after["item"] is None
    assert lost.is_error
    assert "none" in lost.content[0].text


def test_the_command_speaks_over_standard_input(process: Process, keys: dict[str, str]) -> None:
    env = {**os.environ, "PYTHONPATH": SOURCE, "VENIRE_KEY": keys["viewer"]}
    words = ["-m", "venire", "mcp", "--url", process.url]
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(command=sys.executable, args=words, env=env)

    async def run() -> tuple[Any, Any]:
        async with agent_of(stdio_client(server)) as agent:
            return await agent.list_tools(), await call(agent, "streams")

    tools, streams = asyncio.run(run())
    assert {"verdicts", "explain"} <= {tool.name for tool in tools.tools}
    assert all(tool.description for tool in tools.tools)
    assert "streams" in streams


@pytest.mark.parametrize(("key", "told"), [("", "set VENIRE_KEY"), ("vk_wrong", "401")])
def test_a_key_that_will_not_do_is_an_error(process: Process, key: str, told: str) -> None:
    env = {**os.environ, "PYTHONPATH": SOURCE, "VENIRE_KEY": key}
    done = subprocess.run(
        [sys.executable, "-m", "venire", "mcp", "--url", process.url],
        env=env, capture_output=True, text=True, timeout=100, check=False, input="",
    )  # fmt: skip
    assert done.returncode == 2
    assert told in done.stderr
    assert "vk_wrong" not in done.stderr
    assert done.stdout == ""


ODD: dict[str, Any] = {
    "stream": "../..", "item": "\x00" * 300, "token": "x/../../keys", "labeler": "é" * 500,
    "label": "=cmd", "limit": -1, "after": 2**70, "wait": -5.0, "unable": True,
    "items": [{"id": 7}, "x"],
}  # fmt: skip


@pytest.mark.parametrize("role", list(Role))
def test_every_tool_with_odd_values_is_an_answer_or_an_error_for_every_role(
    process: Process, keys: dict[str, str], role: Role
) -> None:
    """Also tools that the role has not: then the server refuses."""

    async def run() -> dict[str, Any]:
        client = AsyncClient(process.url, keys[role], retry_seconds=0.0)
        async with client, agent_of(make_server(client, "admin")) as agent:
            found = {}
            for tool in (await agent.list_tools()).tools:
                named = tool.input_schema["properties"]
                for given in ({name: ODD.get(name) for name in named}, {}):
                    found[tool.name] = await agent.call_tool(tool.name, given)
                    said = str(found[tool.name].content)
                    assert keys[role] not in said
                    assert "Traceback" not in said
                    assert len(said) < 5000
            return found

    found = asyncio.run(run())
    assert set(found) == set(TOOLS)
    for name, answer in found.items():
        assert answer.is_error or role in (TOOLS[name].roles or ()), name
