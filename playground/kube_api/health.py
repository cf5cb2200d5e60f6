"""The answers of `/healthz`, `/livez` and `/readyz`, and of the checks below them.

A playground's cluster is well whenever it answers at all. The checks are those of an API server that mean something
here: what its start hooks do is not done, so none of them is listed.

Source: staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go (handleRootHealth, adaptCheckToHandler), v1.34
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from django.http import QueryDict

_LIVE: Final = ("ping", "log", "etcd")
CHECKS: Final[Mapping[str, tuple[str, ...]]] = {
    "healthz": _LIVE,
    "livez": _LIVE,
    "readyz": (*_LIVE, "etcd-readiness", "informer-sync", "shutdown"),
}
PATHS: Final = tuple(
    f"/{path}" for root, checks in CHECKS.items() for path in (root, *(f"{root}/{name}" for name in checks))
)


def health(path: str, query: QueryDict) -> str | None:
    """What a path says of the health of a cluster, as plain text; None if it is no such path."""
    root, _, check = path.partition("/")
    checks = CHECKS.get(root)
    if checks is None or (check and check not in checks):
        return None
    if check or "verbose" not in query:
        return "ok"
    excluded = set(query.getlist("exclude"))
    lines = [f"[+]{name} {'excluded: ' * (name in excluded)}ok\n" for name in checks]
    if strange := sorted(excluded.difference(checks) - {""}):
        names = ",".join(json.dumps(name) for name in strange)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
    return "".join((*lines, f"{root} check passed\n"))
