"""The OpenAPI document, laid out for a page that needs no script and no other host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A field or a parameter: its name, type, whether it is required, and meaning."""

    name: str
    kind: str
    needed: bool
    text: str


@dataclass(frozen=True)
class Operation:
    """One route."""

    method: str
    path: str
    summary: str
    roles: tuple[str, ...]
    parameters: tuple[Row, ...]
    fields: tuple[Row, ...]
    example: str
    answers: tuple[tuple[str, str], ...]


def sections(described: Schema) -> dict[str, list[Operation]]:
    """The operations by tag.

    >>> get = {"tags": ["a"], "description": "Look.", "responses": {"200": {"description": "ok"}}}
    >>> [row] = sections({"paths": {"/x": {"get": get}}, "components": {}})["a"]
    >>> row.method, row.path, row.summary, row.answers
    ('GET', '/x', 'Look.', (('200', 'ok'),))
    """
    found: dict[str, list[Operation]] = {}
    schemas = described["components"].get("schemas", {})
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            laid_out = _operation(method.upper(), path, operation, schemas)
            found.setdefault(operation["tags"][0], []).append(laid_out)
    return found


def _operation(method: str, path: str, operation: Schema, schemas: Schema) -> Operation:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    example = content.get("example")
    return Operation(
        method=method,
        path=path,
        summary=operation.get("description", ""),
        roles=tuple(operation.get("x-roles", ("anyone",))),
        parameters=tuple(
            Row(
                p["name"],
                _kind(p["schema"], schemas),
                p.get("required", False),
                p.get("description", ""),
            )
            for p in operation.get("parameters", ())
        ),
        fields=_fields(content.get("schema", {}), schemas),
        example="" if example is None else json.dumps(example, indent=2),
        answers=tuple(
            (str(status), answer["description"])
            for status, answer in sorted(operation["responses"].items())
        ),
    )


def _fields(schema: Schema, schemas: Schema) -> tuple[Row, ...]:
    schema = schema.get("items", schema)
    schema = schemas.get(str(schema.get("$ref", "")).rpartition("/")[2], schema)
    needed = schema.get("required", ())
    return tuple(
        Row(name, _kind(field, schemas), name in needed, _default(field))
        for name, field in schema.get("properties", {}).items()
    )


def _default(field: Schema) -> str:
    return f"default: {json.dumps(field['default'])}" if "default" in field else ""


def _kind(schema: Schema, schemas: Schema) -> str:
    """A type in words; for an enum, its values."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        meant = schemas.get(name, {})
        return _kind(meant, schemas) if "enum" in meant else name
    if "anyOf" in schema:
        return " or ".join(_kind(choice, schemas) for choice in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(str(choice) for choice in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}), schemas)}"
    return str(schema.get("type", "any"))
