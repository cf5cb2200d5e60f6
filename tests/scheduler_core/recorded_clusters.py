"""Clusters of the recorded cases, which were made to trouble a scheduler, and changed by objects of one another.

All of them name nodes n1, n2 ... and pods e1, e2 ..., so what one case holds takes the place of what another does.
"""

from collections import defaultdict
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from scheduler_core.cli.conformance import read_cases
from scheduler_core.cli.conformance_cycles import CaseCluster
from scheduler_core.events import ObjectChanged
from scheduler_core.objects.defaults import prepare
from scheduler_core.objects.kinds import parse
from scheduler_core.objects.pod import Pod
from scheduler_core.releases import RELEASES

DATA = Path(__file__).parent / "conformance/data"
KINDS = {
    "resources": (
        "resources-fit",
        "balanced-allocation",
        "taints",
        "node-ports",
        "node-affinity",
        "image-locality",
    ),
    "devices": ("dra-cycle",),
    "domains": ("inter-pod-affinity", "topology-spread"),
    "storage": ("volumes",),
    "preemption": ("preemption",),
}
"""Families by what their clusters are about."""


@cache
def recorded(kind: str) -> list[dict[str, Any]]:
    """Cases of one cycle each, those of releases after the others."""
    named = [DATA / f"{family}.jsonl.gz" for family in KINDS[kind]]
    paths = [*named, *(DATA / f"releases/{name}.jsonl.gz" for name in ("v1.36", "v1.37-gates"))]
    cases = [case for path in paths if path.exists() for case in read_cases(path)]
    return [case for case in cases if case["family"] in KINDS[kind]]


class RecordedCluster:
    """A cluster that is filled and changed at random, the same way for the same seed."""

    def __init__(self, kind: str, seed: int) -> None:
        self.random = Random(seed)
        self.cases = recorded(kind)
        self.release = self.random.choice(list(RELEASES.values()))
        self.known: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for case in self.cases:
            for manifest in case["objects"]:
                self.known[manifest["kind"]].append(manifest)
        self.known.pop("ResourceClaimTemplate", None)
        self.cluster = CaseCluster(self.known.pop("PriorityClass", []), None, release=self.release)
        self.there: dict[tuple[str, str, str], Any] = {}
        self.n_incoming = 0
        for manifest in self.random.choice(self.cases)["objects"]:
            self.put(manifest)

    def incoming(self) -> Pod:
        """A pod that waits for a node in one of the cases."""
        self.n_incoming += 1
        manifest = self.random.choice(self.cases)["pod"]
        metadata = {**manifest["metadata"], "uid": f"incoming-{self.n_incoming}"}
        return self.cluster.pending_pod({**manifest, "metadata": metadata})

    def put(self, manifest: dict[str, Any]) -> None:
        """An object comes, or one of its name changes; a pod is deleted and made anew."""
        if manifest["kind"] not in self.known:
            return
        kind, namespace, name, typed = parse(prepare(manifest, self.cluster.priority_classes))
        key = (kind, namespace, name)
        if kind == "Pod":
            self.remove(key)
        self.cluster.handle(ObjectChanged(kind, self.there.get(key), typed))
        self.there[key] = typed

    def remove(self, key: tuple[str, str, str]) -> None:
        if (old := self.there.pop(key, None)) is not None:
            self.cluster.handle(ObjectChanged(key[0], old, None))

    def change(self) -> None:
        """Something happens to an object, of whichever kind."""
        kind = self.random.choice(list(self.known))
        there = [key for key in self.there if key[0] == kind]
        if there and self.random.random() < 0.4:
            self.remove(self.random.choice(there))
        else:
            self.put(self.random.choice(self.known[kind]))
