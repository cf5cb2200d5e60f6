"""Personal access tokens, for kubectl and other tools."""

from __future__ import annotations

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from playground.accounts.tokens import TokenError, create_token, delete_token, tokens_of
from playground.api import examples, representations
from playground.api.documentation import operation
from playground.api.serializers import answers, requests
from playground.api.views.base import PlaygroundView
from playground.clusters.access import get_cluster
from playground.clusters.errors import Conflict, NotFound
from playground.scenarios.services.storage import quota_of

QUOTA = {
    "clusters": {"used": 3, "limit": 100},
    "shares": {"used": 1, "limit": 500},
    "storedBytes": {"used": 12_345_678, "limit": 2_147_483_648},
}


class Tokens(PlaygroundView):
    told_once = True

    @operation(
        "List your tokens",
        id="tokens_list",
        answers_={200: answers.Tokens},
        answer_example={"items": [examples.TOKEN]},
        tag="tokens",
        reads=True,
    )
    def get(self, request: Request) -> Response:
        """Never the tokens themselves, only what tells them apart. Embedded mode has none."""
        rows = tokens_of(self.person) if self.person else ()
        return Response({"items": [representations.token(row) for row in rows]})

    @operation(
        "Make a token",
        id="tokens_create",
        request=requests.TokenCreate,
        answers_={201: answers.NewToken},
        errors=(400, 404, 409, 413, 415),
        example={"name": "laptop", "scope": "read", "cluster": "fk5pq8t2ab", "expiresInDays": 90},
        answer_example=examples.TOKEN | {"token": "ksp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9f"},
        tag="tokens",
    )
    def post(self, request: Request) -> Response:
        """The answer holds the token, once: only its digest is kept here.

        A token to read answers 403 to what would change anything, a token of one cluster to all but that cluster.
        """
        if settings.EMBEDDED:
            raise Conflict("the embedded playground has no login, so it needs no tokens", kind="Token")
        asked = requests.TokenCreate(data=request.data)
        asked.is_valid(raise_exception=True)
        wanted = asked.validated_data
        cluster = wanted.get("cluster", "")
        if cluster:
            get_cluster(cluster, self.person)
        try:
            row, text = create_token(
                user=self.person,
                name=wanted["name"],
                scope=wanted["scope"],
                cluster=cluster,
                days=wanted["expiresInDays"],
                by=request.auth,
            )
        except TokenError as error:
            raise Conflict(str(error), kind="Token") from None
        return Response(representations.token(row) | {"token": text}, status=201)


class OneToken(PlaygroundView):
    @operation("Delete a token", id="tokens_delete", answers_={204: None}, errors=(400, 404), tag="tokens")
    def delete(self, request: Request, token_id: int) -> Response:
        """It stops working at once."""
        if self.person is None or not delete_token(user=self.person, token_id=token_id):
            raise NotFound(f"token {token_id} not found", kind="Token", name=str(token_id))
        return Response(status=204)


class Quota(PlaygroundView):
    @operation(
        "Read your quota",
        id="quota_read",
        answers_={200: answers.Quota},
        errors=(400, 404),
        answer_example=QUOTA,
        tag="tokens",
        reads=True,
    )
    def get(self, request: Request) -> Response:
        """What you have, and what one person may have. Embedded mode has no quotas."""
        if self.person is None:
            raise NotFound("the embedded playground has no quotas", kind="Quota")
        found = quota_of(self.person)
        return Response({name: {"used": used, "limit": limit} for name, (used, limit) in found.items()})
