"""Extenders made of rules, which the playground answers for itself."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import examples, representations
from playground.api.documentation import operation
from playground.api.serializers import answers, requests
from playground.api.views.base import PlaygroundView
from playground.clusters.extenders.mock import (
    create_mock_extender,
    delete_mock_extender,
    update_mock_extender,
)
from playground.clusters.objects.queries import get_mock_extender, list_mock_extenders


class MockExtenders(PlaygroundView):
    @operation(
        "List mock extenders",
        id="mock_extenders_list",
        answers_={200: answers.MockExtenders},
        errors=(400, 404),
        answer_example={"items": [examples.MOCK_EXTENDER]},
        tag="settings",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> Response:
        """Oldest first; a cluster has at most 20."""
        cluster = self.cluster(cluster_id)
        rows = list_mock_extenders(cluster)
        return Response({"items": [representations.mock_extender(row, cluster.public_id) for row in rows]})

    @operation(
        "Make a mock extender",
        id="mock_extenders_create",
        request=requests.MockExtenderRules,
        answers_={201: answers.MockExtender},
        errors=(400, 404, 409, 413, 415),
        example=examples.MOCK_RULES,
        answer_example=examples.MOCK_EXTENDER | {"calls": {}},
        tag="settings",
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """An extender that denies, scores, drops victims, binds, fails or dawdles by rules.

        It is asked once the scheduler configuration names its `urlPrefix` in an extender.
        """
        cluster = self.cluster(cluster_id)
        asked = requests.MockExtenderRules(data=request.data)
        asked.is_valid(raise_exception=True)
        row = create_mock_extender(cluster=cluster, **asked.validated_data)
        body = representations.mock_extender(row, cluster.public_id)
        return Response(body, status=201, headers={"Location": body["url"]})


class OneMockExtender(PlaygroundView):
    @operation(
        "Read a mock extender",
        id="mock_extenders_read",
        answers_={200: answers.MockExtender},
        errors=(400, 404),
        answer_example=examples.MOCK_EXTENDER,
        tag="settings",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str, extender_id: str) -> Response:
        """Its rules, and how many requests it has answered."""
        cluster = self.cluster(cluster_id)
        row = get_mock_extender(cluster, extender_id)
        return Response(representations.mock_extender(row, cluster.public_id))

    @operation(
        "Give a mock extender other rules",
        id="mock_extenders_write",
        request=requests.MockExtenderRules,
        answers_={200: answers.MockExtender},
        errors=(400, 404, 413, 415),
        example=examples.MOCK_RULES,
        answer_example=examples.MOCK_EXTENDER | {"calls": {}},
        tag="settings",
    )
    def put(self, request: Request, cluster_id: str, extender_id: str) -> Response:
        """Name and rules are replaced, and calls count from 0 again; its `urlPrefix` stays."""
        cluster = self.cluster(cluster_id)
        row = get_mock_extender(cluster, extender_id)
        asked = requests.MockExtenderRules(data=request.data)
        asked.is_valid(raise_exception=True)
        changed = update_mock_extender(extender=row, **asked.validated_data)
        return Response(representations.mock_extender(changed, cluster.public_id))

    @operation(
        "Delete a mock extender",
        id="mock_extenders_delete",
        answers_={204: None},
        errors=(400, 404),
        tag="settings",
    )
    def delete(self, request: Request, cluster_id: str, extender_id: str) -> Response:
        """A scheduler configuration that still names it gets 404 from then on."""
        cluster = self.cluster(cluster_id)
        delete_mock_extender(extender=get_mock_extender(cluster, extender_id))
        return Response(status=204)
