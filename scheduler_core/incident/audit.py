"""A Kubernetes audit log: changes of objects, and decisions of schedulers (binds, pods without a node, evictions).

The log is `audit.k8s.io/v1` Events, one JSON object a line. Of objects what is there at a moment is in memory. Level
RequestResponse says all; what the other levels leave out is counted.

Source: staging/src/k8s.io/apiserver/pkg/apis/audit/v1/types.go, v1.34
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from scheduler_core.incident.changes import Incident, LoggedChange, Reading, is_followed, key_of
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.reading import group_of
from scheduler_core.schema.tables import kinds
from scheduler_core.whatif.judge import Key, Manifest

_OBJECTS: Final = ("objectRef", "responseStatus", "requestObject", "responseObject")
_READS: Final = frozenset({"get", "list", "watch", "proxy", "connect"})
_KUBE_SCHEDULER: Final = "system:kube-scheduler"

NO_OBJECTS: Final = "writes without their objects (level Metadata)"
NO_ANSWERS: Final = "changes without the object that came of them (level Request)"
COLLECTIONS: Final = "deletions of many objects at once that do not say which"
NO_TARGET: Final = "the log does not say to which node (level Metadata)"


def completed(event: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]] | None:
    """An Event with its time; None for one of another stage.

    Raises
    ------
    ValueError
        It is no Event of an audit log.
    """
    if event["kind"] != "Event" or not str(event["apiVersion"]).startswith("audit.k8s.io/"):
        raise ValueError("is not an Event of audit.k8s.io")
    for name in _OBJECTS:
        said = event.get(name) or {}
        if not isinstance(said, dict) or not isinstance(said.get("metadata") or {}, dict):
            raise ValueError(f"{name} must be an object, and its metadata, too")
    return (parse_time_ns(event["stageTimestamp"]), event) if event["stage"] == "ResponseComplete" else None


class AuditReading(Reading):
    """One reading of audit logs."""

    def __init__(self, incident: Incident, known: Mapping[Key, Manifest]) -> None:
        super().__init__(incident, known)
        self._authors: set[str] = set()

    def changes(self, events: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[LoggedChange]:
        """Changes by completed Events with their times."""
        for at_ns, event in events:
            at_ns = self.incident.happens(at_ns, str(event.get("level")))
            if str(event.get("verb")) in _READS or "dryRun=All" in str(event.get("requestURI")):
                continue
            code = (event.get("responseStatus") or {}).get("code") or 0
            if event.get("objectRef") and isinstance(code, int) and 200 <= code < 300:
                yield from self._read(event, at_ns)

    # ---- one event

    def _read(self, event: Mapping[str, Any], at_ns: int) -> Iterator[LoggedChange]:
        ref, verb = event["objectRef"], str(event.get("verb"))
        sub = ref.get("subresource") or ""
        answer = event.get("responseObject") or {}
        if ref.get("resource") == "bindings" or sub == "binding":
            key = ("Pod", str(ref.get("namespace") or ""), str(ref.get("name") or ""))
            node = str(((event.get("requestObject") or {}).get("target") or {}).get("name") or "")
            author = _program(event)
            self._authors.add(author)
            yield from self.bind(author, key, node, at_ns, "" if node else NO_TARGET)
            return
        kind = _kinds().get((str(ref.get("apiGroup") or ""), str(ref.get("resource"))), "")
        if not kind:
            return
        if verb == "deletecollection":
            items = answer.get("items") or ()
            self.incident.missing[COLLECTIONS] += not items
            for item in items:
                yield from self._delete(event, key_of({"kind": kind, **item}), {}, at_ns)
            return
        namespace = str(ref.get("namespace") or "") if kind != "Node" else ""
        key = (kind, namespace, str(ref.get("name") or (answer.get("metadata") or {}).get("name") or ""))
        if verb == "delete" or sub == "eviction":
            yield from self._delete(event, key, answer, at_ns)
        elif sub in ("", "status", "resize", "ephemeralcontainers") and verb in ("create", "update", "patch"):
            yield from self._write(event, key, answer, at_ns)

    def _write(
        self, event: Mapping[str, Any], key: Key, answer: Manifest, at_ns: int
    ) -> Iterator[LoggedChange]:
        verb, asked = event.get("verb"), event.get("requestObject") or {}
        by = ""
        if key[0] == "Pod" and event["objectRef"].get("subresource") == "status" and self._decides(event):
            by = _program(event)
            self.status(by, key, answer or asked, at_ns)
        whole = answer if (answer.get("metadata") or {}).get("name") else {}
        if not whole and verb in ("create", "update") and (asked.get("metadata") or {}).get("name"):
            whole = asked
        if not whole:
            self.incident.missing[NO_ANSWERS if asked else NO_OBJECTS] += 1
            return
        manifest = {"kind": key[0], **whole, "metadata": _meta(whole["metadata"])}
        if not is_followed(manifest):
            return
        if verb == "create":
            self.made.add(key)
        else:
            self.first_seen(key, manifest)
        yield self.now(manifest, key, at_ns, by)

    def _delete(
        self, event: Mapping[str, Any], key: Key, answer: Manifest, at_ns: int
    ) -> Iterator[LoggedChange]:
        pod = self.pods.get(key)
        if pod is None or not pod["spec"].get("nodeName"):
            yield self.gone(key, at_ns)
            return
        by = _program(event) if self._decides(event) else ""
        if by:
            self.evict(by, key, pod, at_ns)
        if _is_final(event):
            yield self.gone(key, at_ns)
            return
        ends = (answer.get("metadata") or {}).get("deletionTimestamp") or event.get("stageTimestamp")
        meta = {**pod["metadata"], "deletionTimestamp": ends}
        yield self.ending({**pod, "metadata": meta}, key, at_ns, by)

    def _decides(self, event: Mapping[str, Any]) -> bool:
        """Whether a scheduler sent it."""
        program = _program(event)
        by_name = "scheduler" in program.partition("/")[0].casefold()
        user = (event.get("user") or {}).get("username")
        return by_name or program in self._authors or user == _KUBE_SCHEDULER


@cache
def _kinds() -> Mapping[tuple[str, str], str]:
    found = {}
    for row in kinds():
        found[group_of(row["apiVersion"]), row["plural"]] = str(row["kind"])
    return found


def _meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in meta.items() if name != "managedFields"}


def _program(event: Mapping[str, Any]) -> str:
    return str(event.get("userAgent") or "unknown").partition(" ")[0]


def _is_final(event: Mapping[str, Any]) -> bool:
    """Whether a deletion takes the object away at once, as a kubelet's does."""
    user = str((event.get("user") or {}).get("username") or "")
    options = event.get("requestObject") or {}
    return user.startswith("system:node:") or options.get("gracePeriodSeconds") == 0
