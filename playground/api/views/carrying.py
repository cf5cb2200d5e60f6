"""Shares that leave the site whole: as a link, and as one HTML file."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from playground.api.documentation import operation
from playground.api.serializers import scenarios as answers
from playground.api.views.base import PlaygroundView
from playground.api.views.scenarios import Reads
from playground.scenarios import selectors, services


class Link(Reads):
    @operation(
        "Read the link that carries a scenario",
        id="scenarios_link_read",
        answers_={200: answers.CarriedLink},
        errors=(400, 404, 413),
        answer_example={
            "link": "https://playground.example/open/#1.6f1c0b7e92d4.eNqrVkrLz1eyUkpKLFKqBQAdegQ2",
            "characters": 1408,
        },
        tag="scenarios",
        reads=True,
    )
    def get(self, request: Request, scenario_id: str) -> Response:
        """What follows the `#` is the scenario itself: no server sees it, and any playground opens it."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        line = services.carried_line(scenario=scenario)
        link = f"{request.build_absolute_uri(reverse('scenarios:open'))}#{line}"
        return Response({"link": link, "characters": len(link)})


class Replay(PlaygroundView):
    @operation(
        "Save a scenario's replay as one HTML file",
        id="scenarios_replay_read",
        answers_={(200, "text/html"): OpenApiTypes.STR},
        errors=(400, 404, 409, 413),
        answer_example="<!doctype html> ...",
        tag="scenarios",
        reads=True,
    )
    def get(self, request: Request, scenario_id: str) -> HttpResponse:
        """It opens from disk without a server, a network or this site, and proves its digests; at most 5 MiB."""
        scenario = selectors.get_scenario(scenario_id, request.user)
        page = services.standalone_file(
            scenario=scenario, owner=self.person, address=request.build_absolute_uri("/")
        )
        response = HttpResponse(page, content_type="text/html; charset=utf-8")
        response.headers["Content-Disposition"] = f'attachment; filename="{scenario.public_id}.html"'
        response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
        return response
