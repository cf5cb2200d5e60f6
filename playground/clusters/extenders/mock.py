"""The playground's own extenders: their rules, where they are served, and what they answer."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django.conf import settings
from django.db import transaction

from playground.clusters.errors import ClusterError, Conflict, InvalidInput, InvalidManifest, NotFound
from playground.clusters.log.changes import opening
from playground.clusters.log.writer import writing
from playground.clusters.models import Cluster, MockExtender, Node, Pod
from playground.clusters.objects.write import bind_pod
from playground.engine.extender_answers import OWN_PATH, answer, check_rules
from scheduler_core.errors import ConfigurationError
from scheduler_core.scenario.mock_extender import VERBS, MockReply

logger = logging.getLogger(__name__)

MAX_PER_CLUSTER: Final = 20
MAX_RULES_BYTES: Final = 256 * 1024


def create_mock_extender(*, cluster: Cluster, rules: Sequence[Any], name: str = "") -> MockExtender:
    """A new mock extender; `mock_extender_url` is what a scheduler configuration names as `urlPrefix`.

    Parameters
    ----------
    rules
        E.g. ``[{"deny": {"nodes": ["n1"]}}, {"score": {"labels": {"disk": "ssd"}, "points": 10}}]``.

    Raises
    ------
    InvalidManifest
        With the path of every field at fault.
    InvalidInput, Conflict
    """
    _check(rules)
    with writing(cluster, rules=True) as writer:
        writer.words = f"make mock extender {name}".strip()
        if MockExtender.objects.filter(cluster=cluster).count() >= MAX_PER_CLUSTER:
            raise Conflict(f"a cluster has at most {MAX_PER_CLUSTER} mock extenders", kind="MockExtender")
        return MockExtender.objects.create(cluster=cluster, name=_name(name), rules=list(rules))


def update_mock_extender(
    *, extender: MockExtender, rules: Sequence[Any] | None = None, name: str | None = None
) -> MockExtender:
    """Give it other rules, which count calls from 0 again, or another name."""
    with writing(extender.cluster, rules=True) as writer:
        writer.words = f"change mock extender {extender.name}".strip()
        row = MockExtender.objects.select_for_update(of=("self",)).get(pk=extender.pk)
        if rules is not None:
            _check(rules)
            row.rules, row.calls = list(rules), {}
        if name is not None:
            row.name = _name(name)
        row.save()
    return row


def delete_mock_extender(*, extender: MockExtender) -> None:
    """Remove it; a configuration that names it gets 404 from then on."""
    with writing(extender.cluster, rules=True) as writer:
        writer.words = f"delete mock extender {extender.name}".strip()
        extender.delete()


def mock_extender_url(extender: MockExtender) -> str:
    """Its `urlPrefix`. Workers know it by its id, whatever the host, so a copied configuration stays right."""
    return f"{settings.PLAYGROUND_OWN_URL.rstrip('/')}{OWN_PATH}{extender.public_id}"


def serve_mock_extenders(*, cluster: Cluster, rules: Mapping[int, Sequence[Any]]) -> dict[int, str]:
    """Give a cluster without decisions its mock extenders.

    Parameters
    ----------
    rules
        Place of an extender in the cluster's configuration, now or later, -> its rules. That extender's `urlPrefix`
        becomes the address of a new mock extender. It is how the cluster begins, so the log says nothing of it.

    Returns
    -------
    dict of int to str
        Place -> `urlPrefix`.

    Raises
    ------
    InvalidManifest, Conflict
    """
    with opening():
        urls = {
            place: mock_extender_url(
                create_mock_extender(cluster=cluster, rules=rules[place], name=f"extender {place}")
            )
            for place in sorted(rules)
        }
    if any(place in urls for place, _ in enumerate((cluster.config or {}).get("extenders") or ())):
        cluster.config = with_extenders_at(cluster.config or {}, urls)
        cluster.save(update_fields=["config"])
    return urls


def with_extenders_at(config: Mapping[str, Any], urls: Mapping[int, str]) -> dict[str, Any]:
    """The configuration with the extenders at some places reached elsewhere; there it is plain HTTP."""
    extenders = [
        {key: value for key, value in extender.items() if key not in ("tlsConfig", "enableHTTPS")}
        | {"urlPrefix": urls[place]}
        if place in urls
        else extender
        for place, extender in enumerate(config.get("extenders") or ())
    ]
    return {**config, "extenders": extenders}


def mock_rules_of(cluster: Cluster, config: Mapping[str, Any] | None) -> dict[int, Sequence[Any]]:
    """Place in a configuration -> rules, of the extenders that are mock extenders of this cluster."""
    own = dict(MockExtender.objects.filter(cluster=cluster).values_list("public_id", "rules"))
    return {place: own[public_id] for place, public_id in _named(config).items() if public_id in own}


def mock_rules_throughout(
    cluster: Cluster, configs: Iterable[Mapping[str, Any] | None]
) -> tuple[dict[int, Sequence[Any]], list[int]]:
    """As `mock_rules_of`, over every configuration a cluster had.

    Returns
    -------
    rules
        Of places where no configuration has another extender.
    others
        Places of mock extenders where one has.
    """
    own = dict(MockExtender.objects.filter(cluster=cluster).values_list("public_id", "rules"))
    named: dict[int, set[str]] = {}
    for config in configs:
        for place, public_id in _named(config).items():
            named.setdefault(place, set()).add(public_id)
    alike = {place: ids.pop() for place, ids in sorted(named.items()) if len(ids) == 1}
    rules = {place: own[public_id] for place, public_id in alike.items() if public_id in own}
    return rules, [place for place, ids in sorted(named.items()) if len(ids) > 1 and not ids.isdisjoint(own)]


def _named(config: Mapping[str, Any] | None) -> dict[int, str]:
    """Place of an extender -> the id of a mock extender in its address; else the address."""
    return {
        place: str(extender.get("urlPrefix", "")).rstrip("/").rpartition(OWN_PATH)[2]
        for place, extender in enumerate((config or {}).get("extenders") or ())
    }


def _check(rules: Any) -> None:
    if len(json.dumps(rules, default=str)) > MAX_RULES_BYTES:
        raise InvalidInput(f"rules are larger than {MAX_RULES_BYTES} bytes", field="rules")
    try:
        check_rules(rules)
    except ConfigurationError as problem:
        raise InvalidManifest.of(
            [
                InvalidManifest(item.detail, path=item.field, value=item.value, kind="MockExtender")
                for item in problem.errors
            ]
        ) from None


def _name(name: str) -> str:
    cleaned = " ".join(str(name).split())
    if len(cleaned) > 100 or not cleaned.isprintable():
        raise InvalidInput("a name has at most 100 printable characters", field="name", value=name)
    return cleaned


# ---- What extenders made of rules answer, by the playground itself, over HTTP like any other


def answer_as_mock_extender(*, public_id: str, verb: str, body: Any) -> MockReply:
    """Answer one request by the rules; a bind that succeeds posts the Binding.

    Raises
    ------
    NotFound
        No such extender, or verb.
    InvalidInput
        The body is not an object.
    """
    if verb not in VERBS:
        raise NotFound(f'"{verb}" is none of {", ".join(VERBS)}', kind="MockExtender", name=public_id)
    if not isinstance(body, Mapping):
        raise InvalidInput("the body must be a JSON object")
    with transaction.atomic():
        extender = (
            MockExtender.objects.select_for_update(of=("self",))
            .select_related("cluster")
            .filter(public_id=public_id)
            .first()
        )
        if extender is None:
            raise NotFound("there is no such mock extender", kind="MockExtender", name=public_id)
        call = int(extender.calls.get(verb, 0))
        extender.calls = {**extender.calls, verb: call + 1}
        extender.save(update_fields=["calls"])
    cluster = extender.cluster

    def node_labels(name: str) -> Mapping[str, str] | None:
        labels: Mapping[str, str] | None = (
            Node.objects.filter(cluster=cluster, name=name).values_list("labels", flat=True).first()
        )
        return labels

    def pod_of_uid(uid: str) -> Mapping[str, Any] | None:
        manifest: Mapping[str, Any] | None = (
            Pod.objects.filter(cluster=cluster, uid=uid).values_list("manifest", flat=True).first()
        )
        return manifest

    reply = answer(extender.rules, verb, body, call, node_labels=node_labels, pod_of_uid=pod_of_uid)
    if verb == "bind" and reply.status == 200 and not reply.error:
        reply = _bound(cluster, body, reply)
    logger.info(
        "mock extender %s: %s answered %s",
        public_id,
        verb,
        reply.error or reply.status,
        extra={"cluster": cluster.public_id, "extender": public_id, "verb": verb, "call": call},
    )
    return reply


def _bound(cluster: Cluster, body: Mapping[str, Any], reply: MockReply) -> MockReply:
    try:
        said = json.loads(reply.text)
    except ValueError:
        return reply
    if not isinstance(said, Mapping) or said.get("Error"):
        return reply
    fields = {key.lower(): str(value) for key, value in body.items()}
    try:
        bind_pod(
            cluster=cluster,
            namespace=fields.get("podnamespace") or "default",
            name=fields.get("podname", ""),
            node=fields.get("node", ""),
            uid=fields.get("poduid", ""),
        )
    except ClusterError as error:
        return MockReply(200, json.dumps({"Error": error.message}), "", reply.delay_ns)
    return reply
