"""Bodies: how large one may be, packed and unpacked; that of a request, read; a long answer's, in parts."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.middleware.gzip import GZipMiddleware
from rest_framework.exceptions import APIException, ParseError

_GZIP: Final = b"\x1f\x8b"
MOST_PARTS: Final = 100
"""Of a gzip'd file; programs write one, or one a processor."""


class BodyTooLarge(APIException):
    """More bytes than one request may carry, as it is sent or unpacked.

    Attributes
    ----------
    limit_bytes : int
        The most that is taken.
    """

    status_code = 413

    def __init__(self, limit_bytes: int, *, is_packed: bool = False) -> None:
        if is_packed:
            words = (
                f"unpacked the body has more than {megabytes(limit_bytes)}, which is the most that is read"
            )
        else:
            words = f"the body is larger than the {megabytes(limit_bytes)} one request may carry"
        super().__init__(words)
        self.limit_bytes = limit_bytes


class NotUnpacked(ParseError):
    """A gzip'd file is damaged or cut off, or is none."""


class UnknownEncoding(APIException):
    """A body is packed in another way than gzip."""

    status_code = 415
    accepts = "gzip"


def megabytes(n_bytes: int) -> str:
    """A size in words.

    >>> megabytes(16 * 2**20)
    '16 MB'
    """
    return f"{n_bytes / 2**20:,.0f} MB"


def size_words(size: str) -> str:
    """The refusal of an upload that is too large, and what can be done; pages fill in the size themselves."""
    return (
        f"This upload has {size}; at most {megabytes(settings.PLAYGROUND_MAX_UPLOAD_BYTES)} are taken."
        " Pack a larger dump with gzip and upload the .gz file:"
        f" it may have {megabytes(settings.PLAYGROUND_MAX_UNPACKED_BYTES)} unpacked."
    )


def unpacked(data: bytes, *, limit_bytes: int | None = None) -> bytes:
    """A gzip'd upload unpacked, no further than the limit; any other as it is.

    Parameters
    ----------
    limit_bytes
        The most it may have unpacked; None = what an upload may.

    Raises
    ------
    BodyTooLarge
        Unpacked it has more.
    NotUnpacked
    """
    if not data.startswith(_GZIP):
        return data
    limit = settings.PLAYGROUND_MAX_UNPACKED_BYTES if limit_bytes is None else limit_bytes
    found: list[bytes] = []
    room = limit + 1
    for _ in range(MOST_PARTS):
        inflater = zlib.decompressobj(wbits=31)
        try:
            found.append(inflater.decompress(data, room))
        except zlib.error as error:
            raise NotUnpacked(f"the gzip'd file is damaged: {error}") from None
        room -= len(found[-1])
        if room <= 0:
            raise BodyTooLarge(limit, is_packed=True)
        if not inflater.eof:
            raise NotUnpacked("the gzip'd file ends too early")
        data = inflater.unused_data.lstrip(b"\0")
        if not data:
            return b"".join(found)
    raise NotUnpacked(f"the gzip'd file has more than {MOST_PARTS} parts")


def decoded(body: bytes, encoding: str, *, limit_bytes: int | None = None) -> bytes:
    """A body without its Content-Encoding, which may be gzip.

    Raises
    ------
    BodyTooLarge, NotUnpacked, UnknownEncoding
    """
    encoding = encoding.strip().lower()
    if not body or encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        raise UnknownEncoding(f"Content-Encoding: {encoding} is not read here; gzip is")
    if not body.startswith(_GZIP):
        raise NotUnpacked("Content-Encoding says gzip, and the body is not")
    return unpacked(body, limit_bytes=limit_bytes)


def read_body(request: HttpRequest, *, limit_bytes: int | None = None) -> bytes:
    """The whole body, unpacked; what is announced too large is not read, what turns out so is not read on.

    Parameters
    ----------
    request
        Django's own request, its body not touched yet.
    limit_bytes
        The most, packed or not; None = what one upload may have, and unpacked.

    Raises
    ------
    BodyTooLarge, NotUnpacked, UnknownEncoding
    """
    limit = settings.PLAYGROUND_MAX_UPLOAD_BYTES if limit_bytes is None else limit_bytes
    announced = request.META.get("CONTENT_LENGTH") or "0"
    if announced.isdecimal() and int(announced) > limit:
        raise BodyTooLarge(limit)
    body = request.read(limit + 1)
    if len(body) > limit:
        raise BodyTooLarge(limit)
    return decoded(body, request.headers.get("Content-Encoding", ""), limit_bytes=limit_bytes)


def media_type(request: HttpRequest) -> str:
    """The Content-Type without its parameters, in lower case; empty if the request names none."""
    return (request.META.get("CONTENT_TYPE") or "").partition(";")[0].strip().lower()


def warning_header(sentences: Iterable[str]) -> str:
    """The value of a ``Warning`` header, as kubectl and others print it; empty without a sentence."""
    return ", ".join(f'299 - "{_quoted(sentence)}"' for sentence in sentences)


def _quoted(sentence: str) -> str:
    printable = "".join(letter if " " <= letter <= "~" else "?" for letter in sentence)
    return printable.replace("\\", "\\\\").replace('"', '\\"')


def in_parts(request: HttpRequest, parts: Iterator[str], content_type: str) -> StreamingHttpResponse:
    """An answer that is sent as its parts are made, with others' requests in between; all of it is never held."""

    async def one_by_one() -> AsyncIterator[str]:
        following = sync_to_async(lambda: next(parts, None))
        try:
            while (part := await following()) is not None:
                yield part
        finally:
            # The parts were read in a thread that ends with the request, and nothing else gives its connection back.
            await sync_to_async(connections.close_all)()

    # Django's ASGI handler would make a list of a plain iterator.
    body = one_by_one() if isinstance(request, ASGIRequest) else parts
    return StreamingHttpResponse(body, content_type=content_type)


class CompressionMiddleware(GZipMiddleware):
    """Compress answers for clients that accept it; streams are not compressed, which would delay events.

    Django pads each by a random length, so that the size of a page tells nothing of a secret in it (BREACH).
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        return response if response.streaming else super().process_response(request, response)
