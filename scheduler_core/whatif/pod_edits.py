"""Edits of the pod itself: each is a changed manifest, read again as any manifest is."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from scheduler_core.objects.defaults import PriorityClass
from scheduler_core.objects.node import TAINT_UNSCHEDULABLE, Taint
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, amount_text, quantity_nano
from scheduler_core.whatif.edits import CHANGES, LAST_RESORT, TRUE, Edit, amount_words, edit, written

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
CORDON: Final = Taint(TAINT_UNSCHEDULABLE, "", "NoSchedule")
KEEPS_OFF: Final = ("NoSchedule", "NoExecute")
LIFECYCLE: Final = "node.kubernetes.io/"
_MARKS: Mapping[str, str] = {
    TAINT_UNSCHEDULABLE: "cordoned nodes",
    "node.kubernetes.io/not-ready": "nodes that are not ready",
    "node.kubernetes.io/unreachable": "nodes that are unreachable",
    "node-role.kubernetes.io/control-plane": "the control plane",
    "node-role.kubernetes.io/master": "the control plane",
    "node.cloudprovider.kubernetes.io/uninitialized": "nodes that are not set up yet",
    "node.cloudprovider.kubernetes.io/shutdown": "nodes that are shut down",
    "ToBeDeletedByClusterAutoscaler": "nodes that are about to go",
    "DeletionCandidateOfClusterAutoscaler": "nodes that are about to go",
    "karpenter.sh/disrupted": "nodes that are about to go",
    "karpenter.sh/unregistered": "nodes that are not set up yet",
}
"""Taints of nodes that are broken, about to go or kept for the cluster itself; others are people's."""
_MIB = 2**20
_NUMBER = re.compile(r"[-+]?[0-9][0-9._]*(?:[eE][-+]?[0-9]+)?")
_GONE: Final = object()

Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Variant:
    """A changed version of the pod, and what the change is."""

    edit: Edit
    pod: Pod


def _variant(pod: Pod, kind: str, title: str, spec: Spec, **more: Any) -> Variant:
    manifest = {**pod.manifest, "spec": spec}
    return Variant(edit(kind, title, {"write": manifest}, **more), pod_from(manifest))


def tolerations(pod: Pod, taints: Sequence[Taint]) -> Iterator[Variant]:
    """One toleration for each taint the pod does not tolerate."""
    for taint in taints:
        toleration = {"key": taint.key, "effect": taint.effect}
        toleration |= {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
        shown = ", ".join(f"{key}: {_scalar(value)}" for key, value in toleration.items())
        spec = _with(pod, {("tolerations",): [*(_spec(pod).get("tolerations") or ()), toleration]})
        more: dict[str, Any] = {"added": [f"tolerations: [{{{shown}}}]"]}
        if marks := marked_by(taint):
            more |= {"note": f"This taint marks {marks}", "price": "pods meant to stay off", "size": 0.95}
            more["standing"] = LAST_RESORT
        yield _variant(pod, "tolerate", f"Tolerate the taint {taint}", spec, **more)


def marked_by(taint: Taint) -> str:
    """What nodes with a taint are, where it keeps off pods that are not meant for such nodes; else empty."""
    return _MARKS.get(taint.key) or (
        "nodes that are not well or not in use" if LIFECYCLE in taint.key else ""
    )


def is_of_template(pod: Pod, template: Spec | None, *path: str | int) -> bool:
    """Whether a field of the pod's spec is its owner's own; else a controller or an admission plugin set it.

    Source: pkg/controller/daemon/util/daemonset_util.go ReplaceDaemonSetPodNodeNameNodeAffinity, v1.34: it takes the
    place of all required node affinity.

    Parameters
    ----------
    template : mapping or None
        The spec of the owner's pod template; None where it is not known, and without an owner.
    """
    if path[:2] == ("affinity", "nodeAffinity") and is_daemon(pod):
        return False
    found: Any = template
    for key in path if template is not None else ():
        there = isinstance(key, int) and key < len(found) if isinstance(found, list) else key in (found or {})
        if not there:
            return False
        found = found[key]
    return True


def is_daemon(pod: Pod) -> bool:
    """Whether a DaemonSet made it, for one node alone."""
    return pod.meta.controller is not None and pod.meta.controller.kind == "DaemonSet"


def without_selectors(pod: Pod, template: Spec | None = None) -> Iterator[Variant]:
    """The pod without one key of its nodeSelector."""
    for key, value in dict(_spec(pod).get("nodeSelector") or {}).items():
        if is_of_template(pod, template, "nodeSelector", key):
            title, spec = f"Drop the node selector {key}={value}", _with(pod, {("nodeSelector", key): _GONE})
            removed = [f"nodeSelector: {{{key}: {_scalar(value)}}}"]
            yield _variant(pod, "drop-selector", title, spec, removed=removed)


def without_node_affinity(pod: Pod, template: Spec | None = None) -> Iterator[Variant]:
    """The pod without one requirement of a required term, and without any required term.

    Terms are alternatives: a requirement is dropped only where others remain, since an empty term matches nothing.
    """
    path = ("affinity", "nodeAffinity", REQUIRED)
    required = _at(_spec(pod), *path)
    if not required or not is_of_template(pod, template, *path):
        return
    terms = required.get("nodeSelectorTerms") or []
    for index, term in enumerate(terms):
        wanted = [
            (key, place, requirement_words(item))
            for key in ("matchExpressions", "matchFields")
            for place, item in enumerate(term.get(key) or ())
        ]
        for key, place, words in wanted if len(wanted) > 1 else ():
            title = f"Drop the requirement {words}" + (f" of term {index + 1}" if len(terms) > 1 else "")
            spec = _with(pod, {(*path, "nodeSelectorTerms", index, key, place): _GONE})
            yield _variant(pod, "drop-requirement", title, spec, removed=[f"nodeAffinity: {words}"])
    every = " or ".join(" and ".join(map(requirement_words, _requirements(term))) for term in terms)
    preferred = _at(_spec(pod), "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
    note = "What it prefers stays" if preferred else ""
    title, spec = "Drop the required node affinity", _with(pod, {path: _GONE})
    yield _variant(pod, "drop-node-affinity", title, spec, note=note, removed=[f"nodeAffinity: {every}"])


def _requirements(term: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [item for key in ("matchExpressions", "matchFields") for item in term.get(key) or ()]


def without_affinity_terms(pod: Pod, template: Spec | None = None) -> Iterator[Variant]:
    """The pod without one required pod affinity or anti-affinity term."""
    for key, kind, words in (
        ("podAntiAffinity", "drop-anti-affinity-term", "pod anti-affinity"),
        ("podAffinity", "drop-affinity-term", "pod affinity"),
    ):
        for index, term in enumerate(_at(_spec(pod), "affinity", key, REQUIRED) or ()):
            path = ("affinity", key, REQUIRED, index)
            if is_of_template(pod, template, *path):
                about = f"{selector_words(term.get('labelSelector'))} by {term.get('topologyKey')}"
                title, spec = f"Drop the required {words} to {about}", _with(pod, {path: _GONE})
                yield _variant(pod, kind, title, spec, removed=[f"{key}: {about}"])


def without_host_ports(pod: Pod) -> Iterator[Variant]:
    """The pod without one of its host ports."""
    for key in ("initContainers", "containers"):
        for index, container in enumerate(_spec(pod).get(key) or ()):
            for place, port in enumerate(container.get("ports") or ()):
                if not port.get("hostPort"):
                    continue
                title = f"Drop the host port {port['hostPort']}/{port.get('protocol') or 'TCP'}"
                spec = _with(pod, {(key, index, "ports", place, "hostPort"): _GONE})
                note, removed = "The container keeps its own port", [f"hostPort: {port['hostPort']}"]
                yield _variant(pod, "drop-host-port", title, spec, note=note, removed=removed)


def hard_spread(pod: Pod, template: Spec | None = None) -> Iterator[tuple[int, int]]:
    """(place, maxSkew) of each DoNotSchedule constraint that the pod's owner wrote."""
    for index, item in enumerate(_spec(pod).get("topologySpreadConstraints") or ()):
        is_own = is_of_template(pod, template, "topologySpreadConstraints", index)
        if is_own and item.get("whenUnsatisfiable") == "DoNotSchedule":
            yield index, int(item.get("maxSkew") or 0)


def _with_constraint(
    pod: Pod, index: int, kind: str, title: str, fields: Mapping[str, Any], **more: Any
) -> Variant:
    """The pod with other fields in a spread constraint."""
    item = _spec(pod)["topologySpreadConstraints"][index]
    spec = _with(pod, {("topologySpreadConstraints", index, name): value for name, value in fields.items()})
    removed = [f"{name}: {item[name]}" for name in fields if item.get(name)]
    added = [f"{name}: {value}" for name, value in fields.items()]
    title = title.format(key=item.get("topologyKey"), before=item.get("maxSkew"))
    return _variant(pod, kind, title, spec, removed=removed, added=added, **more)


def honoring(pod: Pod, index: int) -> Variant | None:
    """The pod with a spread constraint that counts only nodes it may go to; None where it does already."""
    item = _spec(pod)["topologySpreadConstraints"][index]
    # What is not written is Honor for affinity and Ignore for taints.
    asked = {"nodeTaintsPolicy": "Ignore", "nodeAffinityPolicy": "Honor"}
    fields = {name: "Honor" for name, default in asked.items() if (item.get(name) or default) != "Honor"}
    if not fields:
        return None
    title = f"Set {' and '.join(f'{name}: Honor' for name in fields)} in the spread over {{key}}"
    note = "It then counts only nodes that the pod may go to"
    return _with_constraint(pod, index, "honor-policy", title, fields, note=note)


def with_max_skew(pod: Pod, index: int, max_skew: int) -> Variant:
    """The pod with a laxer spread constraint."""
    before = int(_spec(pod)["topologySpreadConstraints"][index].get("maxSkew") or 0)
    title, fields = f"Relax maxSkew over {{key}} from {{before}} to {max_skew}", {"maxSkew": max_skew}
    size = 1 - before / max_skew if max_skew else 0.0
    return _with_constraint(
        pod, index, "relax-spread", title, fields, price=f"a skew of {max_skew}", size=size
    )


def without_spread(pod: Pod, index: int) -> Variant:
    """The pod with one hard constraint made a wish."""
    fields = {"whenUnsatisfiable": "ScheduleAnyway"}
    return _with_constraint(pod, index, "drop-spread", "Only prefer to spread over {key}", fields)


def with_request(pod: Pod, resource: str, amount: int) -> Variant | None:
    """The pod asking for `amount` (whole units) of a resource in all; None where its overhead alone is more.

    The largest containers give way first.
    """
    before = pod.requests[resource]
    spec = _with(pod, {})
    _lower(spec, resource, amount)
    short = resource if "/" not in resource else resource.rsplit("/", 1)[1]
    title = (
        f"Lower the {short} request from {amount_text(resource, before)} to {amount_text(resource, amount)}"
    )
    result = _variant(
        pod,
        "lower-request",
        title,
        spec,
        note="The pod gets less than it asked for" if amount else "The pod asks for none",
        removed=[f"{resource}: {written(resource, before)}"],
        added=[f"{resource}: {written(resource, amount)}"],
        price=amount_words(resource, before - amount),
        size=(before - amount) / before,
    )
    return result if result.pod.requests.get(resource, 0) <= amount else None


def with_priority(pod: Pod, to: PriorityClass, *, is_new: bool = False) -> Variant:
    """The pod in a higher priority class, which `is_new` makes first; of a DaemonSet that is what it means anyway."""
    before = str(_spec(pod).get("priorityClassName") or "")
    fields = {"priorityClassName": to.name, "priority": to.value, "preemptionPolicy": to.preemption_policy}
    title = f"Raise to the priority class {to.name}"
    if is_new:
        title = f"Create the priority class {to.name} ({to.value:,}) and use it"
    made = _variant(
        pod,
        "raise-priority",
        title,
        _with(pod, {(name,): value for name, value in fields.items()}),
        note=f"From priority {pod.priority} to {to.value}",
        removed=[f"priorityClassName: {before}"] if before else [f"priority: {pod.priority}"],
        added=[f"priorityClassName: {to.name}"],
        standing=TRUE if is_daemon(pod) else CHANGES,
    )
    if not is_new:
        return made
    manifest = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": to.name},
        "value": to.value,
    }
    return Variant(replace(made.edit, change={"write": [manifest, made.edit.change["write"]]}), made.pod)


def round_amount(resource: str, amount: int) -> int:
    """A little less where the exact amount would read badly: whole mebibytes."""
    if resource in (MEMORY, EPHEMERAL_STORAGE) and amount > _MIB:
        return amount // _MIB * _MIB
    return amount


# ---- reading and writing specs


def _spec(pod: Pod) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = pod.manifest.get("spec") or {}
    return spec


def _with(pod: Pod, changes: Mapping[tuple[str | int, ...], Any]) -> Spec:
    """A copy of the pod's spec with these values at these paths; `_GONE` takes away what is there."""
    spec: Any = copy.deepcopy(dict(_spec(pod)))
    for (*way, last), value in changes.items():
        place = spec
        for key in way:
            place = place[key]
        if value is _GONE:
            del place[last]
        else:
            place[last] = value
    return dict(spec)


def _at(document: Mapping[str, Any], *keys: str) -> Any:
    found: Any = document
    for key in keys:
        found = (found or {}).get(key)
    return found


def _lower(spec: Spec, resource: str, amount: int) -> None:
    """Bring the pod's sum of requests down to `amount` whole units."""
    unit = 10**6 if resource == CPU else 10**9
    overhead = _nano(spec.get("overhead") or {}, resource)
    target = max(0, amount * unit - overhead)
    containers = list(spec.get("containers") or ())
    inits = list(spec.get("initContainers") or ())
    sidecars = [item for item in inits if item.get("restartPolicy") == "Always"]
    running = sorted([*containers, *sidecars], key=lambda item: -_requested(item, resource))
    excess = sum(_requested(item, resource) for item in running) - target
    for container in running:
        if excess <= 0:
            break
        given_up = min(excess, _requested(container, resource))
        excess -= _write(container, resource, _requested(container, resource) - given_up, unit)
    started = 0
    for container in inits:
        if container.get("restartPolicy") == "Always":
            started += _requested(container, resource)
        elif _requested(container, resource) > target - started:
            _write(container, resource, max(0, target - started), unit)
    pod_level = _at(spec, "resources", "requests")
    if pod_level and resource in pod_level:
        pod_level[resource] = written(resource, target // unit)


def _write(container: Spec, resource: str, nano: int, unit: int) -> int:
    """Set a container's request, rounded down to whole units; returns by how much it went down."""
    before = _requested(container, resource)
    container["resources"]["requests"][resource] = written(resource, nano // unit)
    return before - nano // unit * unit


def _requested(container: Mapping[str, Any], resource: str) -> int:
    return _nano(_at(container, "resources", "requests") or {}, resource)


def _nano(amounts: Mapping[str, Any], resource: str) -> int:
    return quantity_nano(amounts[resource], resource) if resource in amounts else 0


def requirement_words(requirement: Mapping[str, Any]) -> str:
    """`disk In (ssd, nvme)`."""
    values = requirement.get("values")
    shown = f" ({', '.join(map(str, values))})" if values else ""
    return f"{requirement.get('key')} {requirement.get('operator')}{shown}"


def selector_words(selector: Mapping[str, Any] | None) -> str:
    """`app=web, tier In (a, b)`, or which pods an empty or absent selector means."""
    if selector is None:
        return "no pod"
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    parts += [requirement_words(item) for item in selector.get("matchExpressions") or ()]
    return ", ".join(parts) or "any pod"


def _scalar(value: object) -> str:
    """A text in YAML, quoted where it would read as something else."""
    text = str(value)
    reads_otherwise = text.lower() in ("", "true", "false", "yes", "no", "on", "off", "null", "~")
    return f'"{text}"' if reads_otherwise or _NUMBER.fullmatch(text) else text
