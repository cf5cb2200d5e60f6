"""What extenders made of rules answer, by the playground itself, over HTTP like any other."""

import json
import logging
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from playground.clusters.errors import ClusterError, InvalidInput, NotFound
from playground.clusters.models import Cluster, MockExtender, Node, Pod
from playground.clusters.services.objects import bind_pod
from playground.engine.mock_extender import VERBS, MockReply, answer

logger = logging.getLogger(__name__)


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
