"""The OpenAPI document, made of the operations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from receipts import __version__
from receipts.serve.forms import CODE, MEDIA
from receipts.serve.operation import WORD, Operation, Param
from receipts.serve.problems import MEDIA as PROBLEM
from receipts.serve.problems import TITLES


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for item in operations:
        paths.setdefault(item.path, {})[item.method.lower()] = _operation(item)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "receipts",
            "version": __version__,
            "description": "Verdicts on training-performance numbers",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _PROBLEM},
        },
    }


_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {"type": "array", "items": {"type": "object", "required": ["at", "what", "do"]}},
    },
}


def _operation(item: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": item.summary,
        "operationId": f"{item.method.lower()}_{re.sub(r'[^a-z0-9]+', '_', item.path.lower()).strip('_')}",
        "parameters": [*_of_path(item.path), *map(_parameter, item.query)],
        "responses": {
            **{str(status): _answer(item, media) for status, media in item.answers.items()},
            **_failures(item),
        },
    }
    if item.scope is not None:
        described["security"] = [{"token": []}]
        described["x-scope"] = item.scope
    if item.body is not None:
        content = {item.body.media: {"schema": item.body.schema or {"type": "string"}}}
        described["requestBody"] = {"required": True, "description": item.body.summary, "content": content}
    return described


_IN_PATH = {
    "id": {**WORD, "pattern": r"^[^\x00-\x1f\x7f-\x9f/?#%]+$"},
    "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "name": {"type": "string", "pattern": r"^[A-Za-z][A-Za-z0-9._-]{0,99}$"},
}


def _of_path(path: str) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)}", path)
    return [{"name": name, "in": "path", "required": True, "schema": _IN_PATH[name]} for name in names]


def _parameter(item: Param) -> dict[str, Any]:
    schema = {"type": "array", "items": item.schema, "minItems": 1} if item.many else item.schema
    return {"name": item.name, "in": "query", "required": item.required, "description": item.summary, "schema": schema}


def _answer(item: Operation, media: str) -> dict[str, Any]:
    forms = next((one.schema["enum"] for one in item.query if one.name == "format"), None)
    kinds = [MEDIA.get(form, "text/html") for form in forms] if forms else [media]
    answer: dict[str, Any] = {"description": item.summary, "content": {kind: {} for kind in kinds}}
    if any(one.name == "width" for one in item.query):
        answer["headers"] = {CODE: {"description": "What the command ends with", "schema": {"type": "string"}}}
    return answer


def _failures(item: Operation) -> dict[str, Any]:
    statuses = [400, 404, 421, 429, 503]
    statuses += [401, 403] if item.scope else []
    statuses += [409, 413, 415, 422] if item.body else []
    statuses += [504] if item.costly else []
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {str(status): {"description": TITLES[status], "content": content} for status in sorted(statuses)}
