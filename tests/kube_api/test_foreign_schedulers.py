"""A stock kube-scheduler meets what it would meet at a real API server, request by request.

`data/foreign_schedulers/*.json.gz` are recordings of kube-scheduler 1.34.1 and 1.36.2, of JSON and protobuf: the
objects that were there before (`objects`), the `requests`, in order, with the status of each, and what was so `after`.
"""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import pytest

from playground.clusters.models import LogEntry
from playground.clusters.objects.apply import apply_documents
from tests.changes import one_in
from tests.kube_api.conftest import Kube

FOLDER: Final = Path(__file__).parent / "data/foreign_schedulers"
RUNS: Final = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))


def recording(name: str) -> dict[str, Any]:
    """``objects``, ``requests``, ``after`` of a run."""
    found: dict[str, Any] = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    return found


class Replay:
    """Sends a recording's requests to a cluster, with uids and versions as they are there."""

    def __init__(self, kube: Kube) -> None:
        self.kube = kube
        self._uids: dict[str, str] = {}

    def here(self, text: str) -> str:
        """A text of the recording with the uids that the objects have here."""
        for uid, own in self._uids.items():
            text = text.replace(uid, own)
        return text

    def send(self, line: dict[str, Any]) -> Any:
        """The answer to one line."""
        body = base64.b64decode(line.get("bodyBase64") or "")
        for uid, path in (line.get("uids") or {}).items():
            body = body.replace(uid.encode(), self._uid(uid, path).encode())
        needs = line.get("needs")
        for need in [needs] if isinstance(needs, dict) else needs or []:
            version = self.kube.get(need["of"]).json()["metadata"]["resourceVersion"]
            body = with_version(body, need, version)
        headers = {
            name: line[key]
            for name, key in (("accept", "accept"), ("user_agent", "userAgent"))
            if line.get(key)
        }
        query = self._query(line)
        path = line["path"] + (f"?{query}" if query else "")
        answer = self.kube.send(line["method"], path, body, media=line.get("contentType") or "", **headers)
        if line.get("uid") and answer.status_code == 201:
            self._uids[line["uid"]] = answer.json()["metadata"]["uid"]
        return answer

    def _uid(self, uid: str, path: str) -> str:
        if uid not in self._uids:
            self._uids[uid] = self.kube.get(path).json()["metadata"]["uid"]
        return self._uids[uid]

    def _query(self, line: dict[str, Any]) -> str:
        query: str = line.get("query") or ""
        if not re.search(r"(^|&)resourceVersion=[1-9]", query):
            return query
        now = self.kube.get(line["path"]).json()["metadata"]["resourceVersion"]
        parts = parse_qsl(query, keep_blank_values=True)
        return urlencode([(key, now if key == "resourceVersion" else value) for key, value in parts])


def with_version(body: bytes, need: dict[str, Any], version: str) -> bytes:
    """The body with another resourceVersion: at a JSON field, or at a path of protobuf numbers."""
    if not body.startswith(b"k8s\0"):
        document = json.loads(body)
        *path, last = need["field"].split(".")
        inner = document
        for step in path:
            inner = inner[step]
        inner[last] = version
        return json.dumps(document).encode()
    return body[:4] + _put(body[4:], list(need["proto"]), version.encode())


def _put(data: bytes, path: list[int], text: bytes) -> bytes:
    result, position = b"", 0
    while position < len(data):
        start = position
        tag, position = _varint(data, position)
        wire = tag & 7
        if wire == 2:
            size, position = _varint(data, position)
            inner = data[position : position + size]
            position += size
            if tag >> 3 == path[0]:
                inner = text if len(path) == 1 else _put(inner, path[1:], text)
                result += _bytes(tag) + _bytes(len(inner)) + inner
                continue
        elif wire == 0:
            _, position = _varint(data, position)
        else:
            position += 8 if wire == 1 else 4
        result += data[start:position]
    return result


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if not byte & 0x80:
            return value, position


def _bytes(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


@pytest.mark.parametrize("run", one_in(3, RUNS, "playground/kube_api/"))
def test_every_request_is_answered_with_its_recorded_status(kube: Kube, cluster: Any, run: str) -> None:
    recorded = recording(run)
    apply_documents(cluster=cluster, objects=recorded["objects"])
    replay = Replay(kube)
    wrong = []
    for line in recorded["requests"]:
        if line["by"] == "server":
            continue
        answer = replay.send(line)
        told = b"" if answer.streaming else answer.content[:200]
        if answer.status_code != line["status"] or not answer["Content-Type"].startswith("application/json"):
            wrong.append((line["n"], line["method"], line["path"], line["status"], answer.status_code, told))
    assert wrong == []
    check_after(replay, recorded["after"])
    in_log = LogEntry.objects.filter(cluster=cluster, object_kind__in=("Event", "Lease"))
    assert not in_log.exclude(source=LogEntry.Source.KEPT).exists()


def check_after(replay: Replay, after: dict[str, Any]) -> None:
    kube = replay.kube
    for name, wanted in after.get("pods", {}).items():
        pod = kube.get(f"/api/v1/namespaces/default/pods/{name}").json()
        assert pod["spec"].get("nodeName") == wanted.get("nodeName"), name
    for event in after.get("events", ()):
        place = f"namespaces/{event['namespace']}/events/{event['name']}"
        new = kube.get(f"/apis/events.k8s.io/v1/{place}").json()
        old = kube.get(f"/api/v1/{place}").json()
        assert (new["note"], new["regarding"]) == (old["message"], old["involvedObject"])
        assert new["note"] == replay.here(event["text"])
        assert new["reportingController"] == old["reportingComponent"] == event["reporter"]
        if "seriesCount" in event:
            assert new["series"]["count"] == event["seriesCount"]
    for lease in after.get("leases", ()):
        place = f"/apis/coordination.k8s.io/v1/namespaces/{lease['namespace']}/leases/{lease['name']}"
        spec = kube.get(place).json()["spec"]
        assert spec.get("holderIdentity", "") == lease.get("holderIdentity", spec.get("holderIdentity", ""))
