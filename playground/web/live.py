"""Ticks for open pages. A tick says only that something changed; the page then asks for its fragments."""

from collections.abc import AsyncIterator

from playground.clusters.live import HERE, RETRY, changes


async def ticks(pk: int) -> AsyncIterator[bytes]:
    """Server-sent events of one cluster: ``tick`` on every change, a comment now and then to stay open."""
    yield RETRY
    async for stamp in changes(pk):
        yield HERE if stamp is None else f"event: tick\ndata: {stamp}\n\n".encode()
