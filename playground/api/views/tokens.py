"""Personal access tokens, for kubectl and other tools."""

from __future__ import annotations

import datetime

from django.conf import settings
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from playground.accounts.models import AccessToken
from playground.accounts.tokens import TooManyTokens, create_token
from playground.api import examples, representations
from playground.api.documentation import operation
from playground.api.serializers import answers, requests
from playground.api.views.base import PlaygroundView
from playground.clusters.errors import Conflict, NotFound


class Tokens(PlaygroundView):
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
        rows = AccessToken.objects.filter(user=self.person).order_by("-pk") if self.person else ()
        return Response({"items": [representations.token(row) for row in rows]})

    @operation(
        "Make a token",
        id="tokens_create",
        request=requests.TokenCreate,
        answers_={201: answers.NewToken},
        errors=(400, 409, 413, 415),
        example={"name": "laptop", "expiresInDays": 90},
        answer_example=examples.TOKEN | {"token": "ksp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9f"},
        tag="tokens",
    )
    def post(self, request: Request) -> Response:
        """The answer holds the token, once: only its digest is kept here."""
        if settings.EMBEDDED:
            raise Conflict("the embedded playground has no login, so it needs no tokens", kind="Token")
        asked = requests.TokenCreate(data=request.data)
        asked.is_valid(raise_exception=True)
        days = asked.validated_data.get("expiresInDays")
        expires = timezone.now() + datetime.timedelta(days=days) if days else None
        try:
            row, text = create_token(user=self.person, name=asked.validated_data["name"], expires=expires)
        except TooManyTokens as error:
            raise Conflict(str(error), kind="Token") from None
        return Response(representations.token(row) | {"token": text}, status=201)


class OneToken(PlaygroundView):
    @operation("Delete a token", id="tokens_delete", answers_={204: None}, errors=(400, 404), tag="tokens")
    def delete(self, request: Request, token_id: int) -> Response:
        """It stops working at once."""
        mine = AccessToken.objects.filter(pk=token_id, user=self.person) if self.person else None
        if mine is None or not mine.delete()[0]:
            raise NotFound(f"token {token_id} not found", kind="Token", name=str(token_id))
        return Response(status=204)
