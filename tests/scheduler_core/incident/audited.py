"""A cluster that keeps an audit log: what its clients, scheduler and kubelets write, as an API server logs it."""

import json
from pathlib import Path
from random import Random
from typing import Any

from scheduler_core import prepare
from scheduler_core.objects.defaults import PriorityClasses
from scheduler_core.objects.fields import format_micro_time
from scheduler_core.releases import DEFAULT
from scheduler_core.sim.changes import DeleteObject, ObjectDeleted, ObjectWritten, WriteObject
from scheduler_core.sim.simulation import Simulation
from tests.scheduler_core.whatif.random_clusters import CLASSES, node, pod

Manifest = dict[str, Any]
BEGINS_NS = 1_767_225_600_000_000_000
SCHEDULER = ("system:kube-scheduler", "kube-scheduler/v1.37.0 (linux/amd64) kubernetes/abc/scheduler")
KUBELET = ("system:node:{}", "kubelet/v1.37.0 (linux/amd64) kubernetes/abc")
PERSON = ("admin", "kubectl/v1.37.0 (linux/amd64) kubernetes/abc")
PLURALS = {"Node": "nodes", "Pod": "pods"}


class Audited:
    """A simulated cluster, and `events`, its log."""

    def __init__(self, level: str = "RequestResponse", **more: Any) -> None:
        self.simulation = Simulation(start_ns=BEGINS_NS, release=DEFAULT, **more)
        self.events: list[Manifest] = []
        self._level = level
        self._classes = PriorityClasses(CLASSES)
        self._known: dict[tuple[str, str], Manifest] = {}
        self.lines: list[Manifest] = []
        """What watches of it say."""
        self.simulation.world.watcher = self._watched

    def _watched(self, kind: str, old: Any, new: Any) -> None:
        if kind in PLURALS:
            what = "DELETED" if new is None else "MODIFIED" if old is not None else "ADDED"
            at = format_micro_time(self.simulation.now_ns)
            self.lines.append({"at": at, "type": what, "object": (new or old).manifest})

    def write(self, manifest: Manifest) -> None:
        whole = dict(prepare(manifest, self._classes))
        verb = "update" if (whole["kind"], whole["metadata"]["name"]) in self._known else "create"
        self.simulation.submit(WriteObject(whole))
        self._event(verb, whole, PERSON, asked=whole, answer=whole)
        self._known[whole["kind"], whole["metadata"]["name"]] = whole

    def delete(self, kind: str, name: str) -> None:
        manifest = self._known[kind, name]
        namespace = manifest["metadata"].get("namespace", "")
        self.simulation.submit(DeleteObject(kind, namespace, name))
        meta = {**manifest["metadata"], "deletionTimestamp": format_micro_time(self.simulation.now_ns)}
        self._event("delete", manifest, PERSON, answer={**manifest, "metadata": meta})

    def go(self, duration_ns: int) -> None:
        self.simulation.advance(duration_ns)
        for outcome in self.simulation.drain_outcomes():
            if isinstance(outcome, ObjectDeleted):
                old = self._known.pop((outcome.kind, outcome.name))
                on = (old.get("spec") or {}).get("nodeName")
                by = (KUBELET[0].format(on), KUBELET[1]) if on else PERSON
                self._event("delete", old, by, asked={"gracePeriodSeconds": 0}, at_ns=outcome.at_ns)
            elif isinstance(outcome, ObjectWritten):
                self._written(outcome)

    def _written(self, outcome: ObjectWritten) -> None:
        manifest: Any = outcome.manifest
        key = manifest["kind"], manifest["metadata"]["name"]
        self._known[key] = manifest
        if outcome.reason == "bound":
            asked = {"kind": "Binding", "target": {"kind": "Node", "name": manifest["spec"]["nodeName"]}}
            self._event("create", manifest, SCHEDULER, "binding", asked, {"kind": "Status"}, outcome.at_ns)
        elif "deletionTimestamp" in manifest["metadata"] and outcome.reason == "preempted":
            self._event("delete", manifest, SCHEDULER, answer=manifest, at_ns=outcome.at_ns)
        else:
            by = SCHEDULER if outcome.reason in ("status", "nominated", "preempted") else PERSON
            asked = {"status": manifest.get("status")}
            self._event("patch", manifest, by, "status", asked, manifest, outcome.at_ns)

    def _event(
        self,
        verb: str,
        manifest: Manifest,
        by: tuple[str, str],
        sub: str = "",
        asked: Manifest | None = None,
        answer: Manifest | None = None,
        at_ns: int | None = None,
    ) -> None:
        meta = manifest["metadata"]
        at = format_micro_time(self.simulation.now_ns if at_ns is None else at_ns)
        event: Manifest = {
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": self._level, "stage": "ResponseComplete",
            "auditID": str(len(self.events)), "verb": verb, "user": {"username": by[0]}, "userAgent": by[1],
            "objectRef": {
                "resource": PLURALS[manifest["kind"]], "namespace": meta.get("namespace"), "name": meta["name"],
                "apiVersion": "v1", **({"subresource": sub} if sub else {}),
            },
            "responseStatus": {"code": 200}, "requestReceivedTimestamp": at, "stageTimestamp": at,
        }  # fmt: skip
        if self._level != "Metadata" and asked is not None:
            event["requestObject"] = asked
        if self._level == "RequestResponse" and answer is not None:
            event["responseObject"] = answer
        self.events.append(event)


def churn(seed: int, n_nodes: int = 12, n_steps: int = 120, level: str = "RequestResponse") -> Audited:
    """Pods and nodes that come and go, and pods for which others are evicted."""
    draw = Random(seed)
    live = Audited(level, seed=seed)
    for number in range(n_nodes):
        live.write(node(f"n{number}", cpu=str(draw.choice((2, 4, 8))), memory="16Gi", pods="20"))
    for number in range(n_steps):
        what = draw.random()
        if what < 0.75:
            requests = {"cpu": f"{draw.choice((200, 500, 1000, 1800))}m", "memory": "256Mi"}
            live.write(pod(f"p{number}", requests=requests, priority=draw.choice((0, 10, 100, 200))))
        elif what < 0.9 and (there := [name for kind, name in live._known if kind == "Pod"]):
            live.delete("Pod", draw.choice(there))
        else:
            name = f"n{draw.randrange(n_nodes)}"
            changed = json.loads(json.dumps(live._known["Node", name]))
            changed["spec"]["unschedulable"] = not changed["spec"].get("unschedulable")
            live.write(changed)
        live.go(draw.choice((0, 5, 400, 30_000)) * 1_000_000)
    live.go(60_000_000_000)
    return live


def written(events: list[Manifest], path: Path) -> Path:
    """The log as a file."""
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return path


def written_long(path: Path, n_bytes: int) -> Path:
    """A log of so many bytes as API servers write it: with what is managed by whom, and heartbeats between the rest."""
    draw, nodes, written = Random(n_bytes), dict[str, Manifest](), 0
    live = churn(n_bytes, n_nodes=100, n_steps=max(20, n_bytes // 55_000))
    managed = [
        {"manager": name, "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
         "fieldsType": "FieldsV1", "fieldsV1": {f"f:{name}-{at}": {"f:value": {}, ".": {}} for at in range(12)}}
        for name in ("kubectl", "kubelet", "kube-controller-manager")
    ]  # fmt: skip
    images = [{"names": [f"registry.example/{at}@sha256:{at:064}"], "sizeBytes": at} for at in range(25)]
    with path.open("w") as file:
        for event in live.events:
            answer = event.get("responseObject") or {}
            if "metadata" in answer:
                event["responseObject"] = {
                    **answer,
                    "metadata": {**answer["metadata"], "managedFields": managed},
                }
            if answer.get("kind") == "Node":
                nodes[answer["metadata"]["name"]] = event
            beats = []
            for name in draw.choices([*nodes], k=1) if nodes else ():
                whole = nodes[name]["responseObject"]
                at = {
                    "stageTimestamp": event["stageTimestamp"],
                    "user": {"username": KUBELET[0].format(name)},
                }
                status = {
                    **whole["status"],
                    "images": images,
                    "conditions": [{"type": "Ready", "status": "True"}],
                }
                ref = {**nodes[name]["objectRef"], "subresource": "status"}
                beat = {
                    "verb": "patch",
                    "userAgent": KUBELET[1],
                    "objectRef": ref,
                    "requestObject": {"status": status},
                }
                beats.append({**nodes[name], **at, **beat, "responseObject": {**whole, "status": status}})
            for one in (event, *beats):
                written += file.write(f"{json.dumps(one)}\n")
    assert written >= n_bytes, written
    return path
