"""Clusters that each end in a cycle the demo never has, decided by the real engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from playground.clusters.drive.advance import advance
from playground.clusters.drive.config import set_config
from playground.clusters.drive.runs import request_run
from playground.clusters.extenders.mock import create_mock_extender, mock_extender_url
from playground.clusters.lifecycle import create_cluster
from playground.clusters.objects.apply import apply_documents
from tests.manifests import scheduler_config
from tests.tables import table

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

MOST_VISITS: Final = 50
SEED: Final = 20260101
RELEASE: Final = "1.34"

_NODE: Final = table(__file__, "_NODE")
_POD: Final = table(__file__, "_POD")
_TWO_NODES: Final = "---".join(_NODE.replace("NAME", name) for name in ("node-1", "node-2"))
_MANY_NODES: Final = "---".join(
    _NODE.replace("NAME", f"node-{i}").replace('cpu: "8"', f'cpu: "{4 + i % 5}"') for i in range(1, 241)
)
_WITH_A_CLAIM: Final = _POD + "  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n"

# An ephemeral volume's claim belongs to its pod; this one was made by hand, so the volumes of `scratch-0` cannot
# be counted, and NodeVolumeLimits can say nothing about node-1.
_UNCOUNTABLE: Final = table(__file__, "_UNCOUNTABLE")
_APPROVAL: Final = {"profiles": [{"plugins": {"permit": {"enabled": [{"name": "ManualApproval"}]}}}]}
_CONFIGURATION: Final = scheduler_config()


@dataclass(frozen=True)
class RareCycle:
    """A cluster whose last cycle is the one to look at.

    Attributes
    ----------
    objects
        Manifests there before the pod ``default/web-0`` is; YAML documents.
    pod
        The manifest of that pod.
    config
        What the scheduler's configuration says beyond its defaults.
    extender
        Rules of a mock extender that is asked to filter.
    """

    objects: str
    pod: str = _POD
    config: Mapping[str, Any] = field(default_factory=dict)
    extender: tuple[Mapping[str, Any], ...] = ()


RARE_CYCLES: Final[Mapping[str, RareCycle]] = {
    "zero-nodes": RareCycle(""),
    "one-node": RareCycle(_NODE.replace("NAME", "node-1")),
    "pre-filter": RareCycle(_TWO_NODES, _WITH_A_CLAIM),
    "many-nodes": RareCycle(_MANY_NODES, _POD.replace('cpu: "1"', 'cpu: "9"')),
    "waiting": RareCycle(
        _TWO_NODES,
        _POD.replace("labels:", "annotations: {playground.dev/approval: required}, labels:"),
        _APPROVAL,
    ),
    "plugin-error": RareCycle(f"{_NODE.replace('NAME', 'node-1')}---{_UNCOUNTABLE}", _WITH_A_CLAIM),
    "extender-error": RareCycle(
        _TWO_NODES, extender=({"fail": {"status": 503, "text": "licences are down"}},)
    ),
}


def make(name: str) -> Cluster:
    """The cluster called `name` in `RARE_CYCLES`, right after its cycle.

    Its extender answers over HTTP at ``PLAYGROUND_OWN_URL``.

    Raises
    ------
    RuntimeError
        The run did not end.
    """
    rare = RARE_CYCLES[name]
    cluster = create_cluster(name=name, seed=SEED, kubernetes_release=RELEASE)
    config = {**_CONFIGURATION, **rare.config}
    if rare.extender:
        mock = create_mock_extender(cluster=cluster, rules=rare.extender)
        url = mock_extender_url(mock)
        config["extenders"] = [{"urlPrefix": url, "filterVerb": "filter", "nodeCacheCapable": True}]
    set_config(cluster=cluster, config=config)
    if rare.objects:
        apply_documents(cluster=cluster, text=rare.objects)
        run_until(cluster, "idle")
    apply_documents(cluster=cluster, text=rare.pod)
    run_until(cluster, "cycle")
    cluster.refresh_from_db()
    return cluster


def run_until(cluster: Cluster, until: str) -> None:
    """Ask for a run and be the worker until it is over.

    Raises
    ------
    RuntimeError
        It is not over after many visits.
    """
    run = request_run(cluster=cluster, until=until)
    for _ in range(MOST_VISITS):
        advance(cluster_id=cluster.pk)
        run.refresh_from_db()
        if not run.is_open:
            return
    raise RuntimeError(f"the run until {until} did not end: {run.message}")
