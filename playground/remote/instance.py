"""A running instance, as its REST API shows it."""

from __future__ import annotations

import ipaddress
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

DEFAULT_SERVER: Final = "http://127.0.0.1:8000"
TIMEOUT_S: Final = 60.0
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
YAML: Final = "application/yaml"


class Refused(Exception):
    """The instance said no, or could not be asked; the words name place and value.

    Attributes
    ----------
    status : int
        Of the answer; 0 where there was none.
    """

    def __init__(self, said: str, status: int = 0) -> None:
        super().__init__(said)
        self.status = status


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A token goes to the address it was given for."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class Instance:
    """One instance.

    Parameters
    ----------
    server : str, optional
        Its address; `PLAYGROUND_SERVER` of the environment, or a playground on this machine.
    token : str, optional
        Of a person's; `PLAYGROUND_TOKEN` of the environment.

    Raises
    ------
    Refused
        The address is none, or would carry the token unprotected.
    """

    def __init__(self, server: str | None = None, token: str | None = None) -> None:
        self.server = (server or os.environ.get("PLAYGROUND_SERVER") or DEFAULT_SERVER).rstrip("/")
        self._token = token or os.environ.get("PLAYGROUND_TOKEN") or ""
        parts = urllib.parse.urlsplit(self.server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Refused(f'--server: "{self.server}" is not an address such as {DEFAULT_SERVER}')
        if self._token and parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise Refused(f'--server: "{self.server}" would send the token unencrypted; use https')
        # An instance on this machine is not behind a proxy.
        own = [urllib.request.ProxyHandler({})] if _is_loopback(parts.hostname) else []
        self._opener = urllib.request.build_opener(_NoRedirects, *own)

    def page(self, path: str) -> str:
        """The whole address of a path, or of an address that is whole already."""
        return path if path.startswith(("http://", "https://")) else f"{self.server}{path}"

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | str | bytes | None = None,
        query: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """(status, answer) of a request; a text is sent as YAML, a mapping as JSON.

        Raises
        ------
        Refused
        """
        address = self.page(path if path.startswith("/") else f"/api/v1/{path}")
        if query:
            address = f"{address}?{urllib.parse.urlencode(query)}"
        headers = {"Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None
        if isinstance(body, str | bytes):
            data = body.encode() if isinstance(body, str) else body
            headers["Content-Type"] = YAML
        elif body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(address, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                text = answer.read(MAX_ANSWER_BYTES + 1)
                status = answer.status
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(_refusal(error.code, error.read(MAX_ANSWER_BYTES)), error.code) from None
        except (urllib.error.URLError, OSError) as error:
            cause = getattr(error, "reason", error)
            raise Refused(f"{self.server} cannot be reached: {cause}") from None
        if len(text) > MAX_ANSWER_BYTES:
            raise Refused(f"{address}: the answer has more than {MAX_ANSWER_BYTES:,} bytes")
        try:
            return status, json.loads(text) if text else None
        except ValueError:
            raise Refused(f"{address} does not answer as a playground does") from None

    def get(self, path: str, **query: str) -> Any:
        """The answer of a GET."""
        return self.ask("GET", path, query=query)[1]

    def post(self, path: str, body: Mapping[str, Any] | str | bytes | None = None, **query: str) -> Any:
        """The answer of a POST."""
        return self.ask("POST", path, {} if body is None else body, query)[1]


def part(text: str) -> str:
    """A name as one part of a path."""
    return urllib.parse.quote(text, safe="")


def pod_path(cluster: str, pod: str) -> str:
    """The path of a pod, `namespace/name` or a name in namespace default."""
    namespace, _, name = pod.rpartition("/")
    return f"clusters/{part(cluster)}/pods/{part(namespace or 'default')}/{part(name)}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _refusal(status: int, text: bytes) -> str:
    """Problem details as one line a problem, each with its place and value."""
    try:
        problem = json.loads(text)
        lines = [_place(problem) + str(problem["detail"])]
    except (ValueError, KeyError, TypeError):
        return f"the server answered {status}: {text[:200].decode(errors='replace').strip()}"
    causes = problem.get("causes") or []
    lines += [_place(cause) + str(cause.get("detail", "")) for cause in causes[:19]]
    if len(causes) > 19:
        lines.append(f"and {len(causes) - 19} more")
    return "\n".join(dict.fromkeys(lines))


def _place(problem: Mapping[str, Any]) -> str:
    """The places a problem names, where its words do not have them already."""
    detail = str(problem.get("detail", ""))
    kind, name = problem.get("kind"), problem.get("name")
    places = [f"{kind} {name}" if kind and name else ""]
    if problem.get("line"):
        places.append(f"line {problem['line']}")
    places.append(str(problem.get("field") or ""))
    value = problem.get("value")
    if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value) not in detail:
        places.append(f'"{str(value)[:80]}"')
    found = [place for place in places if place and place not in detail]
    return f"{', '.join(found)}: " if found else ""


def reasons_of(explained: Mapping[str, Any]) -> list[tuple[str, str, list[str]]]:
    """(plugin, reason, nodes) of a cycle's explanation, that of most nodes first.

    A plugin that rejects the pod before any node is looked at has no nodes.
    """
    before = explained.get("preFilter") or {}
    if before.get("reasons") and explained.get("filter") is None:
        return [(before.get("plugin") or "", reason, []) for reason in before["reasons"]]
    nodes: dict[tuple[str, str], list[str]] = {}
    for node, verdict in (explained.get("filter") or {}).items():
        for reason in (verdict or {}).get("reasons") or ():
            nodes.setdefault((verdict.get("plugin") or "", reason), []).append(node)
    return sorted(
        ((plugin, reason, found) for (plugin, reason), found in nodes.items()), key=lambda item: -len(item[2])
    )
