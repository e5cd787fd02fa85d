"""schemathesis over the whole API: nothing it can think of gets an undeclared answer.

Its own plugin for pytest is not used: operations are known from the table of roles.
"""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.parameters import ParameterLocation

from tests.integration.server.harness import STREAM, Process
from tests.marks import examples
from venire.server.edge.guard import ROLES

PAGES = {"GET /", "GET /docs", "GET /work", "GET /live", "POST /sign-in", "POST /sign-out"}
PAGES |= {"GET /sign-in", "GET /audit", "GET /archived", "GET /new-stream"}
PAGES |= {"GET /join/{stream}", "POST /join/{stream}"}
PAGES |= {"GET /sign-in/oidc", "GET /sign-in/oidc/callback"}
PAGES |= {route for route in ROLES if route.startswith("GET /streams/")}
#: A log that is followed has no end; it is tested by itself.
ENDLESS = {"GET /v1/streams/{stream}/events"}
#: What fits the schema may still be wrong, such as a class that the stream does not have; and who
#: may do what is tested route by route in test_roles.
EXCLUDED = [
    schemathesis.checks.positive_data_acceptance,
    schemathesis.checks.ignored_auth,
]


@pytest.fixture(scope="module")
def api(process: Process) -> Any:
    with process.client() as client:
        client.create_stream("posts", **STREAM)
        client.add_items("posts", [{"id": f"item-{n}"} for n in range(50)])
        headers = {"authorization": f"Bearer {process.key}"}
        return schemathesis.openapi.from_url(f"{process.url}/openapi.json", headers=headers)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("route", sorted(set(ROLES) - PAGES - ENDLESS))
def test_every_answer_is_declared(
    api: Any, process: Process, route: str, mode: GenerationMode
) -> None:
    method, _, path = route.partition(" ")
    case_of = api[path][method].as_strategy(generation_mode=mode)
    headers = {"authorization": f"Bearer {process.key}"}

    @settings(examples(night=12, day=4), suppress_health_check=list(HealthCheck))
    @given(case=case_of, known=st.booleans())
    def ask(case: Any, known: bool) -> None:
        if known and "stream" in (case.path_parameters or {}):
            case.path_parameters["stream"] = "posts"
        if (case.query or {}).get("wait"):
            case.query["wait"] = 0
        body = case.meta.components.get(ParameterLocation.BODY) if case.meta else None
        excluded = list(EXCLUDED)
        if body is None or body.mode != GenerationMode.NEGATIVE or path.endswith("/upload"):
            # what was wrong may be the stream or the key, which are put right here; and a file is
            # any text: "null" is a table with a header and no rows
            excluded.append(schemathesis.checks.negative_data_rejection)
        case.call_and_validate(headers=headers, timeout=30, excluded_checks=excluded)

    try:
        ask()
    except Unsatisfiable:
        pytest.skip("nothing can be wrong about it")
