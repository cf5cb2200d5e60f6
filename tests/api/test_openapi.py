"""The OpenAPI document: valid, complete, true, and readable as a page.

What clients of REST v1 use is still there: the document of 1.0.0, without its words, beside the one of today.
"""

import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from django.db import connection
from drf_spectacular import validation
from hypothesis import HealthCheck, settings
from jsonschema import Draft202012Validator
from schemathesis.checks import load_all_checks
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.python._constants.orchestrator import make_constants_value_source
from schemathesis.specs.openapi.checks import (
    negative_data_rejection,
    positive_data_acceptance,
    response_schema_conformance,
)

from playground.api.documentation import METHODS, document
from playground.clusters.extenders.mock import create_mock_extender
from playground.clusters.models import Cluster
from playground.wsgi import application
from tests.api.conftest import Api
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.manifests import budget, priority_class
from tests.tables import table
from tests.web.factories import copied

pytestmark = pytest.mark.any_database


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document()["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def test_the_document_is_valid_openapi_3_1(api: Api) -> None:
    served = json.loads(api.get("/openapi.json").content)
    assert served["openapi"].startswith("3.1")
    rules = json.loads((Path(validation.__file__).parent / "openapi_3_1_schema.json").read_text())
    assert not [str(error) for error in jsonschema_rs.validator_for(rules).iter_errors(served)]
    assert (
        api.get("/openapi.yaml").content.startswith(b"components:")
        or b"openapi: 3.1" in api.get("/openapi.yaml").content
    )


def test_every_operation_has_words_and_examples() -> None:
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(ids) == len(set(ids)) > 25
    for path, method, operation in operations():
        where = f"{method} {path}"
        assert operation["summary"], where
        assert operation["description"], where
        for content in operation.get("requestBody", {}).get("content", {}).values():
            assert content.get("schema") is not None, where
        if "requestBody" in operation:
            contents = operation["requestBody"]["content"].values()
            assert any(content.get("examples") for content in contents), where
        success = next(code for code in operation["responses"] if code.startswith("2"))
        contents = operation["responses"][success].get("content", {}).values()
        assert not contents or any(content.get("examples") for content in contents), where


# Right refusals: a pod that does not wait at Permit, a change that is not the last one; tokens and teams where no user
# logs in.
REFUSED = table(__file__, "REFUSED")
NAMES = table(__file__, "NAMES")
MADE = ("extender_id",)  # ids that are drawn


def test_every_request_example_is_taken(api: Api, known: dict[str, str]) -> None:
    for path, method, operation in operations():
        names = set(re.findall(r"{(\w+)}", path))
        if not names <= {"cluster_id", *NAMES, *MADE}:
            continue
        for media, content in operation.get("requestBody", {}).get("content", {}).items():
            for example in content.get("examples", {}).values():
                here = path.format(**known | NAMES).removeprefix("/api/v1")
                answer = api.send(method.upper(), here, example["value"], media=media)
                wanted = REFUSED.get(operation["operationId"])
                taken = answer.status_code == wanted if wanted else answer.status_code < 300
                # Names of scenarios in an example are unknown here.
                taken |= answer.status_code == 404 and answer.json().get("kind") == "Scenario"
                assert taken, (here, answer.status_code, answer.content)


def test_the_page_shows_every_operation(api: Api) -> None:
    page = api.get("/docs/").content.decode()
    for path, _, operation in operations():
        assert path in page
        assert f'id="{operation["operationId"]}"' in page
    assert "<script>" not in page
    assert "style=" not in page


@cache
def schema() -> Any:
    return schemathesis.openapi.from_dict(document())


# The production-sized scenario takes minutes to make.
ASKED = [
    f"{method.upper()} {path}"
    for path, method, operation in operations()
    if operation["operationId"] != "gallery_make_large"
]


@pytest.fixture
def known(transactional_db: None, wakes: list[Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Names that exist, so that not everything is a 404."""
    # A request gives its connection back; the next of thousands would open it again.
    monkeypatch.setattr(connection, "close", lambda: None)

    def make() -> Cluster:
        cluster = make_cluster(
            *(make_node("n1"), make_pod("p1"), make_pod("huge", cpu="99")),
            *(priority_class("gold", 9), budget("web", minAvailable=1)),
        )
        run(cluster)
        create_mock_extender(cluster=cluster, rules=[])
        return cluster

    cluster = copied("known", make)
    return {
        "cluster_id": cluster.public_id,
        "run_id": cluster.runs.get().public_id,
        **NAMES,
        "reason": "NotFound",
        "token_id": "1",
        "extender_id": cluster.mock_extenders.get().public_id,
    }


# Of some 7,500 requests at the edges of the schemas: of a third of the operations one in 16 is made by day, and one in
# 4 of all by night; a search makes all.
PARTS = [(label, 16) for label in ASKED[::3]] + [
    pytest.param(label, 4, marks=pytest.mark.nightly("playground/api/")) for label in ASKED
]
if settings.get_current_profile_name() == "search":
    PARTS = [(label, 1) for label in ASKED]
made: Counter[str] = Counter()


@pytest.mark.parametrize(("label", "one_in"), PARTS)
def test_no_request_is_a_server_error_or_answered_in_an_undocumented_way(
    label: str, one_in: int, known: dict[str, str]
) -> None:
    """Its requests are made up here: where pytest collects, each of its processes would make up all of them."""
    method, _, path = label.partition(" ")
    load_all_checks()
    test = build_operation_test(
        config=schema().config,
        operation=schema()[path][method],
        test_func=asking(one_in),
        given_kwargs={},
        feedback=FeedbackSources(constants_value_source=make_constants_value_source(schema())),
    )
    test.hypothesis_explicit_examples = [*test.hypothesis_explicit_examples][::one_in]
    test(known=known)
    assert made[label]


def asking(one_in: int) -> Any:
    @settings(max_examples=32 // one_in, deadline=None, suppress_health_check=list(HealthCheck))
    def ask(case: schemathesis.Case, known: dict[str, str]) -> None:
        made[case.operation.label] += 1
        there = Cluster.objects.filter(public_id=known["cluster_id"]).exists()
        if there:
            case.path_parameters = {
                name: known.get(name, value) for name, value in (case.path_parameters or {}).items()
            }
        # The client of a WSGI application asks for packed answers, and does not unpack them.
        plain = {"Accept-Encoding": "identity"}
        answer = case.call(app=application, base_url="http://127.0.0.1", headers=plain)
        # What a schema allows may still mean nothing: a label's syntax, a profile's plugins, `until`.
        left_out = [positive_data_acceptance]
        media = answer.headers.get("content-type", [""])[0].partition(";")[0]
        if media in ("application/yaml", "text/event-stream"):
            # Strings to the document and the client that is generated from it; the check reads what stands in them.
            left_out.append(response_schema_conformance)
        if case.operation.path.endswith("/config/convert/"):
            # What is wrong in a configuration otherwise stays as it is, and is told beside it.
            left_out += [negative_data_rejection, response_schema_conformance]
        body = case.meta.components.get(ParameterLocation.BODY) if case.meta else None
        if body is None or not body.mode.is_negative or case.media_type == "application/yaml":
            # Paths are made to exist above, and unknown query parameters are not looked at. In YAML all is text.
            left_out.append(negative_data_rejection)
        case.validate_response(answer, excluded_checks=left_out)

    return ask


KEPT = Path(__file__).parent / "data" / "openapi-1.0.0.json.xz"
WORDS = frozenset(
    {"description", "summary", "example", "examples", "title", "tags", "info", "servers", "x-spec-enum-id"}
)
LOST = {place: why for why, places in table(__file__, "LOST").items() for place in places}


def facts(value: Any, path: str = "") -> Iterator[str]:
    """Every place of a document with its value; of a list of names, each name is a place."""
    if isinstance(value, dict):
        is_named = path.endswith((".properties", ".schemas", ".paths"))
        for key, item in value.items():
            if is_named or key not in WORDS:
                yield from facts(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                name = item.get("$ref") or item.get("name") or item.get("type") or ""
                yield from facts(item, f"{path}[{name}]")
            else:
                yield f"{path}.{item}"
    else:
        yield f"{path} = {json.dumps(value)}"


def test_nothing_that_clients_use_is_lost() -> None:
    kept = set(facts(json.loads(lzma.decompress(KEPT.read_bytes()))))
    lost = kept - set(facts(json.loads(json.dumps(document(), default=str))))
    unlisted = {fact for fact in lost if not any(fact.startswith(place) for place in LOST)}
    assert sorted(unlisted) == []
    assert len(kept) > 5000
    # What is listed is really gone.
    assert {place for place in LOST if not any(fact.startswith(place) for fact in lost)} == set()


# ---- Nothing of the document is `{"type": "object"}` and no more, and its examples are what it says


ANY_VALUE = {"Cause.value", "ConfigChange.value", "Problem.value"}
"""What was written where something else should be: any JSON."""
OPEN_PARTS = {
    "Manifest.*",
    "Manifest.metadata.*",
    "Payload.*",
    *(f"MergePatch.{part}.*" for part in ("metadata", "spec", "status")),
}
"""Objects and protocols of Kubernetes, and RFC 7386: another reference says what they hold."""


def untyped(schema: dict[str, Any], place: str) -> Iterator[str]:
    """Places of a schema at which anything may stand."""
    if "$ref" in schema or "enum" in schema:
        return
    parts = [schema[name] for name in ("allOf", "anyOf", "oneOf") if name in schema]
    if "type" not in schema and not parts:
        yield place
    if schema.get("type") == "object" and not schema.get("properties"):
        named = schema.get("additionalProperties")
        if not isinstance(named, dict) or not named:
            yield f"{place}.*"
            return
    for name, of in schema.get("properties", {}).items():
        yield from untyped(of, f"{place}.{name}")
    named = schema.get("additionalProperties")
    if isinstance(named, dict):
        yield from untyped(named, f"{place}.*")
    if "array" in (schema.get("type") or ()):
        yield from untyped(schema.get("items", {}), f"{place}[]")
    for part in parts:
        for one in part:
            yield from untyped(one, place)


def contents() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, method, operation in operations():
        place = f"{method.upper()} {path}"
        for media, content in operation.get("requestBody", {}).get("content", {}).items():
            yield f"{place} request {media}", content
        for code, answer in operation["responses"].items():
            for media, content in answer.get("content", {}).items():
                yield f"{place} {code} {media}", content


def test_nothing_of_the_document_is_untyped() -> None:
    found = [place for where, content in contents() for place in untyped(content["schema"], where)]
    for name, schema in document()["components"]["schemas"].items():
        found += untyped(schema, name)
    assert set(found) == ANY_VALUE | OPEN_PARTS


@pytest.mark.parametrize(
    "schema", [{"type": "object"}, {}, {"type": "object", "additionalProperties": {}}, {"type": "array"},
               {"type": "object", "properties": {"a": {}}}, {"oneOf": [{"type": "string"}, {"type": "object"}]}]
)  # fmt: skip
def test_what_is_untyped_is_found(schema: dict[str, Any]) -> None:
    assert list(untyped(schema, "here"))


def test_each_shape_is_there_and_used() -> None:
    named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document())))
    assert named == set(document()["components"]["schemas"])


def test_examples_are_what_the_document_says() -> None:
    components = document()["components"]
    n_examples = 0
    for place, content in contents():
        for example in content.get("examples", {}).values():
            if isinstance(example["value"], str) and "json" not in place:
                continue
            schema = {**content["schema"], "components": components}
            errors = list(Draft202012Validator(schema).iter_errors(example["value"]))
            assert not errors, (place, list(errors[0].absolute_path), errors[0].message[:500])
            n_examples += 1
    assert n_examples > 100
