"""Inputs of up to 16 MB, the most that a request may have, in their worst shapes: each is read, or refused, within 2 s.

The time is the processor's, so a busy machine changes nothing. And while an object is validated no lock is held.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import pytest
from django.db import connection

from playground.clusters import kinds, structural
from playground.clusters.errors import InvalidManifest
from playground.clusters.kinds import Kind, by_kind
from playground.clusters.models import Cluster
from playground.clusters.objects import admission as admitting
from playground.clusters.objects import apply, write
from playground.clusters.objects.admission import Surroundings, admitted
from playground.clusters.objects.apply import apply_documents
from playground.clusters.objects.queries import selector_matches
from playground.clusters.objects.write import create_object, replace_object
from playground.clusters.structural import OverLimit, at_most
from playground.engine import admission
from playground.kube_api import managed_fields, patches, tables
from playground.kube_api.status import Refusal
from scheduler_core import load_scenario
from scheduler_core.dynamic_resources.model import Device, Slice
from scheduler_core.dynamic_resources.selectors import DeviceSelectorError, compiled
from scheduler_core.objects.merge import merge_patch
from scheduler_core.objects.quantity import parse_quantity
from scheduler_core.objects.reading import Posted
from scheduler_core.scenario.canonical import scenario_digest
from scheduler_core.scenario.redact import redact
from scheduler_core.schema.tables import Field, types
from tests.changes import one_in
from tests.clusters.builders import make_cluster, make_pod
from tests.manifests import make_object
from tests.tables import table

MOST_S = 2.0
MOST_BYTES = 16 * 2**20
MANY = 4_000
LIST_S = 0.5
"""For a list of so many items: each compared with each takes longer, and 16 MB of them in a line as long as 2 s."""


def took_s(run: Callable[[], Any]) -> float:
    began_s = time.thread_time()
    run()
    return time.thread_time() - began_s


# ---- every list and map of every built-in kind

SCALARS: Mapping[str, Any] = table(__file__, "SCALARS")


def value_of(field: Field, number: int, depth: int = 0) -> Any:
    """A small value of a type; its texts differ by the number."""
    kind = field.type
    if kind in SCALARS:
        return SCALARS[kind]
    if kind.startswith(("[]", "{}")) or depth > 2:
        return [] if kind.startswith("[]") else {}
    known = types().get(kind)
    if known is None:
        return f"n{number}"
    return {
        name: value_of(inner, number, depth + 1)
        for name, inner in known.items()
        if inner.required or name in ("name", "key", "type", "operator")
    }


def places(
    type_name: str, path: tuple[str, ...] = (), depth: int = 0
) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Paths of the lists and maps of a type, each type within another once."""
    if depth > 6:
        return
    for name, field in types().get(type_name, {}).items():
        if path == () and name in ("status", "apiVersion", "kind"):
            continue
        if field.type.startswith(("[]", "{}")):
            yield (*path, name), field
        if field.item in types() and field.item not in ("meta.v1.ManagedFieldsEntry",):
            yield from places(field.item, (*path, name), depth + 1)


def put(document: dict[str, Any], path: tuple[str, ...], type_name: str, value: Any) -> None:
    """The value at a path; what is on the way is made, as one item where it is a list."""
    known = types()[type_name]
    *way, last = path
    here = document
    for name in way:
        field = known[name]
        known = types()[field.item]
        if field.type.startswith("[]"):
            items = here.setdefault(name, [])
            if not items:
                items.append(
                    {
                        inner: value_of(one, 0)
                        for inner, one in known.items()
                        if one.required or inner == "name"
                    }
                )
            here = items[0]
        elif field.type.startswith("{}"):
            here = here.setdefault(name, {}).setdefault("a", {})
        else:
            here = here.setdefault(name, {})
    here[last] = value


def list_cases(kind: Kind) -> Iterator[tuple[str, dict[str, Any]]]:
    """An object for each list and map of a kind: many items in it, and else little."""
    seen = set()
    for path, field in places(kind.type):
        mark = (field, path[-1])
        if mark in seen:
            continue
        seen.add(mark)
        items = [value_of(Field(field.item), number) for number in range(MANY)]
        document: dict[str, Any] = make_object(kind.api_version, kind.kind, "x", namespace="default")
        if kind.kind == "Pod":
            document["spec"] = {"containers": [{"name": "c", "image": "i"}]}
        many = (
            items
            if field.type.startswith("[]")
            else {f"k{number}": item for number, item in enumerate(items)}
        )
        put(document, path, kind.type, many)
        yield ".".join(path), document


ADMISSION = ("playground/clusters/objects/", "scheduler_core/objects/", "scheduler_core/validation/")
KINDS = sorted((kind for kind in kinds.KINDS if kind.type), key=lambda kind: kind.kind != "Pod")


@pytest.mark.parametrize("kind", one_in(16, KINDS, *ADMISSION, name=lambda kind: kind.kind))
def test_each_list_of_each_kind_is_validated_in_time_that_grows_with_it_alone(kind: Kind) -> None:
    slow = {}
    for name, document in list_cases(kind):

        def admit(document: dict[str, Any] = document) -> None:
            with contextlib.suppress(InvalidManifest):
                admitted(kind, Posted(document), Surroundings(admission.priority_classes([])))

        if (seconds := took_s(admit)) > LIST_S:
            slow[name] = round(seconds, 2)
    assert not slow


# ---- schemas of custom resources

STRINGS = 700_000


@cache
def items() -> list[str]:
    return [f"string-{number:010}" for number in range(STRINGS)]


@cache
def keyed() -> list[dict[str, str]]:
    return [{"name": f"n{number:08}"} for number in range(STRINGS)]


TEXT = {"type": "string"}
A_SET = {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}


def listed(items: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def rules(*texts: str, **more: Any) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": text} for text in texts], **more}


SCHEMAS: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "a set": lambda: (items(), A_SET),
    "a set with a double at its end": lambda: ([*items(), items()[0]], A_SET),
    "a map": lambda: (
        keyed(),
        listed(
            {"type": "object", "properties": {"name": TEXT}},
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ),
    "an enumeration": lambda: (
        items(),
        listed({"type": "string", "enum": [f"e{number}" for number in range(100_000)]}),
    ),
    "a pattern and one text": lambda: ("a" * MOST_BYTES + "!", {"type": "string", "pattern": "^(a+)+$"}),
    "a pattern and many texts": lambda: (
        ["a" * 20] * STRINGS,
        listed({"type": "string", "pattern": "^(a|a)*$"}),
    ),
    "alternatives": lambda: (items(), listed({"anyOf": [{"type": "integer"}] * 1000, "type": "string"})),
    "defaults": lambda: (
        [{} for _ in range(STRINGS)],
        listed({"type": "object", "properties": {"x": {**listed(TEXT), "default": ["y"] * 100_000}}}),
    ),
    "fields that are not known": lambda: (
        {f"k{number}": 1 for number in range(STRINGS)},
        {"type": "object", "properties": {}},
    ),
    "a rule for each item": lambda: (items(), listed({"type": "string", **rules("self.size() < 100")})),
    "a rule that compares each with each": lambda: (
        items(),
        listed(TEXT, **rules("self.all(x, self.exists(y, y == x))")),
    ),
    "a thousand rules": lambda: (
        {"a": items()},
        {"type": "object", **rules(*(f"self.a.size() > {number}" for number in range(1000)))},
    ),
}


def validate_custom(value: Any, schema: dict[str, Any]) -> None:
    with contextlib.suppress(OverLimit), at_most(admitting.VALIDATION_S):
        whole = structural.defaulted(structural.pruned(value, schema), schema)
        structural.problems(whole, schema)
        structural.broken_rules(whole, None, schema)


# ---- what else reads what a client sends

LABELS = {f"key-{number}": f"value-{number}" for number in range(100_000)}
PODLIKE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "x", "labels": LABELS},
    "spec": {
        "containers": [{"name": f"c{number}", "image": "i"} for number in range(20_000)],
        "tolerations": [{"key": f"k{number}"} for number in range(20_000)],
    },
}
FINALIZERS = [f"example.com/f{number}" for number in range(200_000)]
CONTAINERS = [{"name": f"c{number}", "image": "j"} for number in range(20_000)]
ROOT = patches.root_of(PODLIKE)


def applied_again() -> Any:
    fields = managed_fields.to_fields(managed_fields.owned_paths(PODLIKE | {"metadata": {"name": "x"}}))
    entry = {"manager": "m", "operation": "Apply", "fieldsV1": fields}
    live = PODLIKE | {"metadata": {"name": "x", "managedFields": [entry]}}
    wanted = PODLIKE | {"metadata": {"name": "x"}, "spec": {"containers": CONTAINERS[::2]}}
    return managed_fields.applied(live, wanted, manager="m", force=True, time="t")


def written_again() -> Any:
    entry = {"manager": "m", "operation": "Apply", "fieldsV1": {"f:spec": {}}}
    live = PODLIKE | {"metadata": {"name": "x", "managedFields": [entry]}}
    return managed_fields.updated(live, live | {"spec": {"containers": CONTAINERS}}, manager="n", time="t")


def strategic(patch: dict[str, Any], target: Any = PODLIKE) -> Callable[[], Any]:
    return lambda: patches.strategic_merge_patch(target, patch, ROOT)


def operations(*, target: Any, many: list[dict[str, Any]]) -> Callable[[], Any]:
    return lambda: patches.json_patch(target, many)


IN_A_POD: dict[str, dict[str, Any]] = {
    "labels": {
        "metadata": {"name": "x", "labels": {f"key-{number}": f"value-{number}" for number in range(50_000)}}
    },
    "containers": {
        "spec": {"containers": [{"name": f"c{number}", "image": "i"} for number in range(40_000)]}
    },
    "tolerations": {
        "spec": PODLIKE["spec"]
        | {"tolerations": [{"key": f"k{number}", "operator": "Exists"} for number in range(30_000)]}
    },
    "conditions": {
        "status": {"conditions": [{"type": f"T{number}", "status": "True"} for number in range(40_000)]}
    },
}
"""Each about as large as the largest object that a cluster takes, 1.5 MB."""


def shared_without_names(**parts: Any) -> None:
    """Redact a scenario of one pod and take its digest; both are done by a child that holds no lock."""
    plain = make_object("v1", "Pod", "x", spec={"containers": CONTAINERS[:1]})
    head = {"apiVersion": "scheduling.playground/v1", "kind": "Scenario"}
    scenario = load_scenario({**head, "objects": [plain | parts]})
    scenario_digest(redact(scenario).scenario)


def select_device(text: str) -> None:
    attributes = {f"a{number}": {"string": "x" * 64} for number in range(32)}
    manifest = {"name": "d", "attributes": attributes}
    device = Device(manifest, ("x.example.com", "p", "d"), Slice("s", {}))
    with contextlib.suppress(DeviceSelectorError):
        compiled(text).matches(device)


LETTER = 'device.attributes["x.example.com"].a1'
NUMBERS = f"[{', '.join('1' for _ in range(1000))}]"
SELECTORS = {
    "a pattern": f'{LETTER}.matches("(x+x+)+y")',
    "a pattern and a long text": f'({" + ".join([LETTER] * 200)}).matches("(x+)+y")',
    "lists in lists": f"{NUMBERS}.all(a, {NUMBERS}.all(b, {NUMBERS}.all(c, a == b)))",
    "brackets": "(" * 5000 + "true" + ")" * 5000,
    "negations": "!" * 10_000 + "true",
}

READERS: dict[str, Callable[[], Any]] = {
    **{
        f"redaction and digest: many {name}": partial(shared_without_names, **given)
        for name, given in IN_A_POD.items()
    },
    **{f"a device's selector: {name}": partial(select_device, text) for name, text in SELECTORS.items()},
    "strategic merge by key": strategic({"spec": {"containers": CONTAINERS}}),
    "strategic merge, deletes and an order": strategic(
        {
            "spec": {
                "$setElementOrder/containers": [{"name": item["name"]} for item in reversed(CONTAINERS)],
                "containers": [item | {"$patch": "delete"} for item in CONTAINERS],
            }
        }
    ),
    "strategic merge of texts": strategic(
        {"metadata": {"finalizers": [f"{name}-more" for name in FINALIZERS]}},
        {"metadata": {"finalizers": FINALIZERS}},
    ),
    "strategic merge that deletes texts": strategic(
        {"metadata": {"$deleteFromPrimitiveList/finalizers": FINALIZERS}},
        {"metadata": {"finalizers": FINALIZERS}},
    ),
    "JSON patch at the head of a list": operations(
        target={"a": list(range(200_000))}, many=[{"op": "remove", "path": "/a/0"}] * patches.MAX_OPERATIONS
    ),
    "JSON patch that copies what it copied": operations(
        target={"a": [1] * 1000},
        many=[{"op": "copy", "from": "", "path": f"/b{number}"} for number in range(40)],
    ),
    "JSON patch that compares": lambda: operations(
        target={"a": items()}, many=[{"op": "test", "path": "/a", "value": items()}] * patches.MAX_OPERATIONS
    )(),
    "merge patch": lambda: merge_patch(PODLIKE, {"metadata": {"labels": dict.fromkeys(LABELS)}}),
    "owned fields": lambda: managed_fields.from_fields(
        managed_fields.to_fields(managed_fields.owned_paths(PODLIKE | {"metadata": {"name": "x"}}))
    ),
    "apply that gives up fields": applied_again,
    "a write beside an apply": written_again,
    "a selector of many values": lambda: selector_matches(
        {"matchExpressions": [{"key": "a", "operator": "In", "values": items()}]}, {"a": "b"}
    ),
    "a selector of many expressions": lambda: selector_matches(
        {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}] * 200_000}, {"a": "b"}
    ),
    "a selector of many labels": lambda: selector_matches({"matchLabels": LABELS}, LABELS),
    "a JSON path": lambda: tables.values({"a": keyed()}, tables.path_of(".a[*].name")),
    "a table": lambda: tables.table(by_kind("Pod"), [PODLIKE], now_ns=0),
    "a quantity": lambda: quantity("1" * MOST_BYTES),
    "a quantity's exponent": lambda: quantity("1e" + "9" * 1000),
}


def quantity(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_quantity(text)


@pytest.mark.parametrize(
    "name", one_in(6, [*READERS, *SCHEMAS], *ADMISSION, "playground/kube_api/", "scheduler_core/expressions/")
)
def test_what_a_client_sends_is_read_in_two_seconds_whatever_its_shape(name: str) -> None:
    # What is sent is there before it is read.
    items(), keyed()
    reader = READERS[name] if name in READERS else partial(validate_custom, *SCHEMAS[name]())

    def read() -> None:
        with contextlib.suppress(Refusal):
            reader()

    assert took_s(read) < MOST_S


# ---- the limit, and the lock


DEFINITION = table(__file__, "DEFINITION")


def widget(items: list[str]) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": items}}


@pytest.mark.django_db
def test_a_validation_that_takes_too_long_is_refused_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admitting, "VALIDATION_S", 0.05)
    cluster = make_cluster(DEFINITION)
    with pytest.raises(InvalidManifest, match=r"takes more than the 0.05 s of processor time that it may"):
        create_object(cluster=cluster, manifest=widget(items()[:100_000]))


@pytest.mark.django_db
def test_doubles_of_a_set_are_found_among_twenty_thousand() -> None:
    cluster = make_cluster(DEFINITION)
    some = items()[:20_000]

    def create() -> None:
        create_object(cluster=cluster, manifest=widget(some))

    assert took_s(create) < MOST_S
    with pytest.raises(InvalidManifest, match=r"spec.a\[20000\]: Duplicate value"):
        replace_object(cluster=cluster, manifest=widget([*some, some[7]]))


@pytest.mark.django_db(transaction=True)
@pytest.mark.dialect
def test_no_lock_is_held_while_an_object_is_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = make_cluster(DEFINITION)
    in_transaction: list[bool] = []

    def watched(*given: Any, **named: Any) -> Any:
        in_transaction.append(connection.in_atomic_block)
        return admitted(*given, **named)

    for module in (write, apply):
        monkeypatch.setattr(module, "admitted", watched)
    create_object(cluster=cluster, manifest=make_pod("a"))
    create_object(cluster=cluster, manifest=widget(["x"]))
    replace_object(cluster=cluster, manifest=widget(["y"]))
    replace_object(cluster=cluster, manifest=widget(["y"]) | {"status": {}}, subresource="status")
    apply_documents(cluster=cluster, objects=[make_pod("b"), widget(["z"])])
    apply_documents(cluster=cluster, objects=[DEFINITION])
    assert in_transaction == [False] * 7


@pytest.mark.django_db(transaction=True)
@pytest.mark.dialect
def test_what_comes_in_between_has_the_object_validated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = make_cluster()
    tries: list[str] = []

    def watched(*given: Any, **named: Any) -> Any:
        ready = admitted(*given, **named)
        if not tries:
            apply_documents(cluster=Cluster.objects.get(pk=cluster.pk), objects=[PRIORITY])
        tries.append(ready["metadata"]["name"])
        return ready

    monkeypatch.setattr(write, "admitted", watched)
    made = create_object(cluster=cluster, manifest=make_pod("p"))
    assert (tries, made["spec"]["priority"]) == (["p", "p"], 7)


PRIORITY = table(__file__, "PRIORITY")
