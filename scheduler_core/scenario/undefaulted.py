"""Objects of a scenario as their author wrote them: without what defaulting writes into them anyway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_core.objects.defaults import prepare
from scheduler_core.scenario.priorities import KnownClasses, written_in
from scheduler_core.scenario.types import Manifest
from scheduler_core.sim.admission import TOLERATED_TAINTS, with_default_tolerations

_DEFAULTED = prepare({"kind": "Pod", "metadata": {"name": "x"}})["spec"]
_CONTAINER_DEFAULTS = ("imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy", "resources")


def without_defaults(manifest: Manifest, classes: KnownClasses) -> Manifest:
    """A pod or PodGroup without what defaulting writes into it anyway; other kinds as they are.

    Parameters
    ----------
    classes : KnownClasses
        PriorityClasses there are: a pod that none of them explains keeps its priority and policy and loses the name.
    """
    kind = manifest.get("kind")
    if kind not in ("Pod", "PodGroup") or not isinstance(manifest.get("spec"), Mapping):
        return manifest
    spec = dict(manifest["spec"])
    name, written, _ = written_in(spec)
    agrees = classes.agree(spec)
    if agrees:
        spec.pop("priority", None)
    elif name and written is not None:
        del spec["priorityClassName"]
    if kind == "PodGroup":
        return {**manifest, "spec": spec}
    for key, value in _DEFAULTED.items():
        if key != "priority" and spec.get(key) == value and (agrees or key != "preemptionPolicy"):
            del spec[key]
    if spec.get("tolerations"):
        own = [item for item in spec["tolerations"] if item.get("key") not in TOLERATED_TAINTS]
        if with_default_tolerations({**spec, "tolerations": own})["tolerations"] == spec["tolerations"]:
            spec["tolerations"] = own
        if not spec["tolerations"]:
            del spec["tolerations"]
    for key in ("containers", "initContainers"):
        if spec.get(key):
            spec[key] = [_container_without_defaults(item) for item in spec[key]]
    return {**manifest, "spec": spec}


def _container_without_defaults(container: Mapping[str, Any]) -> dict[str, Any]:
    bare = {key: value for key, value in container.items() if key not in _CONTAINER_DEFAULTS}
    defaulted = prepare({"kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [bare]}})
    defaults = defaulted["spec"]["containers"][0]
    return {
        key: value
        for key, value in container.items()
        if key not in _CONTAINER_DEFAULTS or defaults.get(key) != value
    }
