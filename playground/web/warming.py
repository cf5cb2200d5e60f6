"""What a server does before its first request, so that no page waits for it: views imported, templates compiled."""

import gc
import logging
from pathlib import Path
from threading import Thread

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.template import TemplateSyntaxError
from django.template.loader import get_template
from django.urls import reverse
from django_htmx.middleware import HtmxDetails

from playground.clusters.selectors.objects import empty_cluster
from playground.engine.profiles import outline
from playground.web.htmx import HtmxHttpRequest

logger = logging.getLogger(__name__)


def warm() -> None:
    """Import what the paths lead to, compile every template, and load the default configuration once."""
    reverse("web:home")  # imports every view, and reads every path
    reverse("api:index")  # the same for paths within a prefix
    for folder in (Path(directory) for directory in settings.TEMPLATES[0]["DIRS"]):
        for file in sorted(folder.rglob("*.html")):
            try:
                get_template(str(file.relative_to(folder)))
            except TemplateSyntaxError:
                # A request for that page is told; the others are served.
                continue
    outline(None)
    _draw_a_board()
    # What is there now stays for the life of the process: the collector need not look at it in some later request.
    gc.collect()
    gc.freeze()


def _draw_a_board() -> None:
    """The board of a cluster that is not there: what queries and pages are put together with is made once.

    In a thread of its own, as a server that imports this may run its loop already.
    """

    def draw() -> None:
        from playground.web.views.board import page_of

        request = HtmxHttpRequest()
        request.method = "GET"
        request.user = AnonymousUser()
        request.htmx = HtmxDetails(request)
        try:
            page_of(request, empty_cluster())
        except Exception as error:
            # No reason not to start: a request for a page is told. A database may only be missing yet.
            logger.info("no board could be drawn, so the first page takes longer: %s", error)
        finally:
            connection.close()

    thread = Thread(target=draw)
    thread.start()
    thread.join()
