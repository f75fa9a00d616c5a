"""Every operation of the OpenAPI document, with whatever its schemas allow and forbid."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance, unsupported_method
from starlette.testclient import TestClient

from receipts.plugins.serve.operations import OPERATIONS
from thorough import unless_thorough

pytestmark = pytest.mark.slow

# A receipt, a plan and claims are checked by more than a schema of the document can say.
EXCLUDED = [positive_data_acceptance, unsupported_method]
EXAMPLES = unless_thorough(2, 150)


@schemathesis.serializer("application/toml")
def toml(_context: object, value: Any) -> bytes:
    """What a claims.toml is sent as."""
    return str(value).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("operation", [f"{item.method} {item.path}" for item in OPERATIONS])
def test_whatever_is_asked_is_answered_as_the_document_says(
    guarded: tuple[TestClient, dict[str, str]], operation: str
) -> None:
    client, tokens = guarded
    method, path = operation.split()
    described = schemathesis.openapi.from_asgi("/openapi.json", client.app)[path][method]

    headers = {"Authorization": f"Bearer {tokens['admin']}"}

    @settings(
        max_examples=EXAMPLES,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=described.as_strategy())
    def ask(case: Any) -> None:
        case.call_and_validate(headers=headers, excluded_checks=EXCLUDED)

    ask()
