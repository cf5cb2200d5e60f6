"""One view: a scheduler's request in, the answer of the rules out."""

import json

from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from playground.clusters.errors import ClusterError
from playground.clusters.extenders.mock import answer_as_mock_extender
from playground.engine.transport import DELAY_HEADER, FAILURE_HEADER


# A scheduler has neither cookie nor token; the id, which cannot be guessed, is what it knows.
@csrf_exempt
@never_cache
@require_POST
def answer(request: HttpRequest, public_id: str, verb: str) -> HttpResponse:
    """Answer `filter`, `prioritize`, `preempt` or `bind`.

    Slowness and broken connections are not acted out but said in headers: our own transport then takes them as
    virtual time and as an error. Others see the answer at once.
    """
    try:
        body = json.loads(request.body)
        reply = answer_as_mock_extender(public_id=public_id, verb=verb, body=body)
    except ValueError:
        return HttpResponse("the body is not JSON\n", status=400, content_type="text/plain")
    except ClusterError as error:
        return HttpResponse(f"{error.message}\n", status=error.status, content_type="text/plain")
    response = HttpResponse(reply.text, status=reply.status or 502, content_type="application/json")
    if reply.delay_ns:
        response.headers[DELAY_HEADER] = str(reply.delay_ns)
    if reply.error:
        response.headers[FAILURE_HEADER] = reply.error
    return response


# ---- Where mock extenders answer

app_name = "mock_extender"
urlpatterns = [path("<slug:public_id>/<slug:verb>", answer, name="answer")]
