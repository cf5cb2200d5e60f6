"""What `HtmxMiddleware` puts on every request, for views that answer htmx otherwise than a browser."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails


class HtmxHttpRequest(HttpRequest):
    """A request as views get it; ``request.htmx`` is true where htmx asks."""

    htmx: HtmxDetails
