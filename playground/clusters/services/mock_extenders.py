"""Extenders made of rules: created by people, answered by the playground itself, over HTTP like any other."""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.conf import settings
from django.db import transaction

from playground.clusters.errors import ClusterError, Conflict, InvalidInput, InvalidManifest, NotFound
from playground.clusters.models import Cluster, MockExtender, Node, Pod
from playground.clusters.services.objects import bind_pod
from playground.engine.configuration import ConfigurationProblem
from playground.engine.mock_extender import VERBS, MockReply, answer, check_rules

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
    with transaction.atomic():
        if MockExtender.objects.filter(cluster=cluster).count() >= MAX_PER_CLUSTER:
            raise Conflict(f"a cluster has at most {MAX_PER_CLUSTER} mock extenders", kind="MockExtender")
        return MockExtender.objects.create(cluster=cluster, name=_name(name), rules=list(rules))


def update_mock_extender(
    *, extender: MockExtender, rules: Sequence[Any] | None = None, name: str | None = None
) -> MockExtender:
    """Give it other rules, which count calls from 0 again, or another name."""
    with transaction.atomic():
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
    extender.delete()


def mock_extender_url(extender: MockExtender) -> str:
    """Its `urlPrefix`. Workers know it by its id, whatever the host, so a copied configuration stays right."""
    return f"{settings.PLAYGROUND_OWN_URL.rstrip('/')}/mock-extenders/{extender.public_id}"


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
        )
    except ClusterError as error:
        return MockReply(200, json.dumps({"Error": error.message}), "", reply.delay_ns)
    return reply


def _check(rules: Any) -> None:
    if len(json.dumps(rules, default=str)) > MAX_RULES_BYTES:
        raise InvalidInput(f"rules are larger than {MAX_RULES_BYTES} bytes", field="rules")
    try:
        check_rules(rules)
    except ConfigurationProblem as problem:
        errors = [
            InvalidManifest(item.message, path=item.field, value=item.value, kind="MockExtender")
            for item in problem.items
        ]
        errors[0].causes = tuple(errors[1:])
        raise errors[0] from None


def _name(name: str) -> str:
    cleaned = " ".join(str(name).split())
    if len(cleaned) > 100 or not cleaned.isprintable():
        raise InvalidInput("a name has at most 100 printable characters", field="name", value=name)
    return cleaned


__all__ = [
    "answer_as_mock_extender",
    "create_mock_extender",
    "delete_mock_extender",
    "mock_extender_url",
    "update_mock_extender",
]
