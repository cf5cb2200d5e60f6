"""What is asked for once and looked at later, as a page: the formal model, the joint placement, an upgrade's preview.

They differ in what they find, and in nothing else: POST asks, cancels, or does something with what was found; GET shows
the newest. REST has the same (`api.views.asked_for`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django.views.decorators.vary import vary_on_headers

from playground.clusters.choices import OPEN, WorkState
from playground.clusters.errors import ClusterError, Conflict, Forbidden
from playground.scenarios import services
from playground.scenarios.selectors import ASKED, asked_for
from playground.web.requests import HtmxHttpRequest, get_cluster, site_user
from playground.web.scenarios.shares import STOP_POLLING, get_share

View = Callable[..., HttpResponse]


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of work.

    Attributes
    ----------
    name
        Of its rows (`scenarios.selectors.asked_for`), its URLs (`scenarios:NAME`, `scenarios:cluster-NAME`) and its
        templates (`scenarios/NAME.html` and `_wait`).
    row
        What templates call the newest one.
    refused
        What a stranger is told who asks for it.
    place
        Which tab of a cluster it is under.
    ask
        Asks for it, with what the request says: ``ask(request, cluster=...)`` or ``ask(request, scenario=...)``.
    shown
        What a page says besides, of the newest row or of None.
    acts
        Name of a button -> what it does with the newest one that is done; gives where it leads.
    """

    name: str
    row: str
    refused: str
    place: Mapping[str, str]
    ask: Callable[..., Any]
    shown: Callable[[HttpRequest, Any, Mapping[str, Any]], dict[str, Any]]
    acts: Mapping[str, Callable[[HttpRequest, Any], str]] = field(default_factory=dict)

    def of_cluster(self) -> View:
        """The view for a cluster."""

        @require_http_methods(["GET", "HEAD", "POST"])
        @vary_on_headers("HX-Request")
        def view(request: HtmxHttpRequest, cluster_id: str) -> HttpResponse:
            cluster = get_cluster(request, cluster_id)
            here = reverse(f"scenarios:cluster-{self.name}", args=[cluster.public_id])
            rows = asked_for(self.name, cluster=cluster)
            context = {
                "cluster": cluster,
                "last_cycle": cluster.next_cycle - 1,
                "whose": cluster.name,
                **self.place,
            }
            return self._answer(request, here, rows, context, {"cluster": cluster})

        return view

    def of_scenario(self) -> View:
        """The view for a share: read without an account, asked for with one."""

        @require_http_methods(["GET", "HEAD", "POST"])
        @vary_on_headers("HX-Request")
        def view(request: HtmxHttpRequest, share_id: str) -> HttpResponse:
            share = get_share(request, share_id)
            here = reverse(f"scenarios:{self.name}", args=[share.public_id])
            rows = asked_for(self.name, scenario=share)
            context = {"share": share, "last_cycle": share.n_cycles, "whose": share.words}
            return self._answer(request, here, rows, context, {"scenario": share})

        return view

    def _answer(
        self, request: HtmxHttpRequest, here: str, rows: Any, context: dict[str, Any], of: Mapping[str, Any]
    ) -> HttpResponse:
        newest = rows.order_by("-pk").first()
        if request.method == "POST":
            return redirect(self._posted(request, here, rows, newest, of))
        is_open = newest is not None and newest.state in OPEN
        if request.htmx and not is_open:
            # Who waited gets the whole answer.
            response = HttpResponse(status=STOP_POLLING)
            response["HX-Refresh"] = "true"
            return response
        context |= {self.row: newest, "here": here, "is_open": is_open, **self.shown(request, newest, of)}
        template = f"scenarios/{self.name}{'_wait' if request.htmx else ''}.html"
        return render(request, template, context)

    def _posted(self, request: HttpRequest, here: str, rows: Any, newest: Any, of: Mapping[str, Any]) -> str:
        """Do what was posted; where it leads."""
        try:
            if site_user(request) is None and not settings.EMBEDDED:
                raise Forbidden(self.refused)
            if "cancel" in request.POST:
                services.cancel(rows)
                return here
            act = next((does for name, does in self.acts.items() if name in request.POST), None)
            if act is None:
                self.ask(request, **of)
                return here
            if newest is None or newest.state != WorkState.DONE:
                raise Conflict("there is no answer yet", kind=ASKED[self.name].__name__)
            return act(request, newest)
        except ClusterError as error:
            messages.error(request, error.message)
            return here
