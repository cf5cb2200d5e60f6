"""Static files, served alike by WSGI and ASGI."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    """WhiteNoise with whole answers instead of streamed files.

    Under ASGI Django reads a streamed file whole anyway, warns about it, and leaves it open. Our files are
    small; the largest is htmx with 50 kB.
    """

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        """Answer with the file's bytes, or the part of them that was asked for."""
        found = static_file.get_response(request.method, request.META)
        body = b""
        if found.file is not None:
            with found.file:
                body = found.file.read()
        response = HttpResponse(body, status=int(found.status))
        del response["content-type"]
        for key, value in found.headers:
            response[key] = value
        if found.file is not None:
            # The length was noted when the site started; the file may have been changed since.
            response["Content-Length"] = str(len(body))
        return response
