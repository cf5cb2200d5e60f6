"""What a page says when it could not be made."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.defaults import server_error

from playground.clusters.trouble import cause_of


def failed(request: HttpRequest) -> HttpResponse:
    """Name what is amiss with the database or its disk; of anything else only that something broke."""
    error = sys.exc_info()[1]
    if not isinstance(error, OperationalError | InterfaceError):
        return server_error(request)
    html = render_to_string("trouble.html", {"cause": cause_of(error)})
    return HttpResponse(html, status=503, headers={"Retry-After": "2"})
