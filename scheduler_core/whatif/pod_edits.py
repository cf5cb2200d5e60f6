"""Edits of the pod itself: each is a changed manifest, read again as any manifest is."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scheduler_core.objects.defaults import PriorityClass
from scheduler_core.objects.node import TAINT_UNSCHEDULABLE, Taint
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, amount_text, quantity_nano
from scheduler_core.whatif import edits
from scheduler_core.whatif.edits import COST_POD, COST_QUEUE, Edit, amount_words, written

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_LIFECYCLE = "node.kubernetes.io/"
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

Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Variant:
    """A changed version of the pod, and what the change is."""

    edit: Edit
    pod: Pod


def _variant(
    pod: Pod,
    kind: str,
    title: str,
    note: str,
    change: Callable[[Spec], None],
    *,
    removed: Sequence[str] = (),
    added: Sequence[str] = (),
    price: str,
    size: float,
    cost: int = COST_POD,
    standing: int = edits.CHANGES,
) -> Variant:
    manifest: dict[str, Any] = {**pod.manifest, "spec": copy.deepcopy(dict(pod.manifest.get("spec") or {}))}
    change(manifest["spec"])
    edit = Edit(
        kind, edits.POD, title, note, tuple(removed), tuple(added), cost, price, size, {"write": manifest},
        standing=standing,
    )  # fmt: skip
    return Variant(edit, pod_from(manifest))


def tolerations(pod: Pod, taints: Sequence[Taint]) -> Iterator[Variant]:
    """One toleration for each taint the pod does not tolerate."""
    for taint in taints:
        toleration = {"key": taint.key, "effect": taint.effect}
        toleration |= {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}

        def change(spec: Spec, toleration: Mapping[str, str] = toleration) -> None:
            spec["tolerations"] = [*(spec.get("tolerations") or ()), dict(toleration)]

        shown = ", ".join(f"{key}: {_scalar(value)}" for key, value in toleration.items())
        marks = marked_by(taint)
        yield _variant(
            pod,
            edits.TOLERATE,
            f"Tolerate the taint {taint}",
            f"This taint marks {marks}" if marks else "",
            change,
            added=[f"tolerations: [{{{shown}}}]"],
            price="pods meant to stay off" if marks else "allowed on tainted nodes",
            size=0.95 if marks else 0.5,
            standing=edits.LAST_RESORT if marks else edits.CHANGES,
        )


def marked_by(taint: Taint) -> str:
    """What nodes with a taint are, where it keeps off pods that are not meant for such nodes; else empty."""
    return _MARKS.get(taint.key) or (
        "nodes that are not well or not in use" if _LIFECYCLE in taint.key else ""
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
        if not is_of_template(pod, template, "nodeSelector", key):
            continue

        def change(spec: Spec, key: str = key) -> None:
            del spec["nodeSelector"][key]

        yield _variant(
            pod,
            edits.DROP_SELECTOR,
            f"Drop the node selector {key}={value}",
            "",
            change,
            removed=[f"nodeSelector: {{{key}: {_scalar(value)}}}"],
            price="1 selector",
            size=0.6,
        )


def without_node_affinity(pod: Pod, template: Spec | None = None) -> Iterator[Variant]:
    """The pod without one requirement of a required term, and without any required term.

    Terms are alternatives: a requirement is dropped only where others remain, since an empty term matches nothing.
    """
    required = _at(_spec(pod), "affinity", "nodeAffinity", _REQUIRED)
    if not is_of_template(pod, template, "affinity", "nodeAffinity", _REQUIRED):
        return
    terms = (required or {}).get("nodeSelectorTerms") or []
    for index, term in enumerate(terms):
        wanted = [
            (key, place)
            for key in ("matchExpressions", "matchFields")
            for place in range(len(term.get(key) or ()))
        ]
        for key, place in wanted if len(wanted) > 1 else ():

            def change(spec: Spec, index: int = index, key: str = key, place: int = place) -> None:
                del spec["affinity"]["nodeAffinity"][_REQUIRED]["nodeSelectorTerms"][index][key][place]

            words = requirement_words(term[key][place])
            yield _variant(
                pod,
                edits.DROP_REQUIREMENT,
                f"Drop the requirement {words}" + (f" of term {index + 1}" if len(terms) > 1 else ""),
                "",
                change,
                removed=[f"nodeAffinity: {words}"],
                price="1 requirement",
                size=0.6,
            )
    if required:

        def drop(spec: Spec) -> None:
            del spec["affinity"]["nodeAffinity"][_REQUIRED]

        yield _variant(
            pod,
            edits.DROP_NODE_AFFINITY,
            "Drop the required node affinity",
            "What it prefers stays" if _preferred(_spec(pod)) else "",
            drop,
            removed=[
                "nodeAffinity: " + " or ".join(
                    " and ".join(
                        requirement_words(item)
                        for key in ("matchExpressions", "matchFields")
                        for item in term.get(key) or ()
                    )
                    for term in terms
                )
            ],
            price="all its node affinity",
            size=0.8,
        )  # fmt: skip


def without_affinity_terms(pod: Pod, template: Spec | None = None) -> Iterator[Variant]:
    """The pod without one required pod affinity or anti-affinity term."""
    for key, kind, words, size in (
        ("podAntiAffinity", edits.DROP_ANTI_AFFINITY_TERM, "pod anti-affinity", 0.7),
        ("podAffinity", edits.DROP_AFFINITY_TERM, "pod affinity", 0.7),
    ):
        for index, term in enumerate(_at(_spec(pod), "affinity", key, _REQUIRED) or ()):
            if not is_of_template(pod, template, "affinity", key, _REQUIRED, index):
                continue

            def change(spec: Spec, key: str = key, index: int = index) -> None:
                del spec["affinity"][key][_REQUIRED][index]

            about = f"{selector_words(term.get('labelSelector'))} by {term.get('topologyKey')}"
            yield _variant(
                pod,
                kind,
                f"Drop the required {words} to {about}",
                "",
                change,
                removed=[f"{key}: {about}"],
                price="1 rule",
                size=size,
            )


def without_host_ports(pod: Pod) -> Iterator[Variant]:
    """The pod without one of its host ports."""
    for key in ("initContainers", "containers"):
        for index, container in enumerate(_spec(pod).get(key) or ()):
            for place, port in enumerate(container.get("ports") or ()):
                if not port.get("hostPort"):
                    continue

                def change(spec: Spec, key: str = key, index: int = index, place: int = place) -> None:
                    del spec[key][index]["ports"][place]["hostPort"]

                shown = f"{port['hostPort']}/{port.get('protocol') or 'TCP'}"
                yield _variant(
                    pod,
                    edits.DROP_HOST_PORT,
                    f"Drop the host port {shown}",
                    "The container keeps its own port",
                    change,
                    removed=[f"hostPort: {port['hostPort']}"],
                    price="1 host port",
                    size=0.65,
                )


def hard_spread(pod: Pod, template: Spec | None = None) -> Iterator[tuple[int, int]]:
    """(place, maxSkew) of each DoNotSchedule constraint that the pod's owner wrote."""
    for index, item in enumerate(_spec(pod).get("topologySpreadConstraints") or ()):
        is_own = is_of_template(pod, template, "topologySpreadConstraints", index)
        if is_own and item.get("whenUnsatisfiable") == "DoNotSchedule":
            yield index, int(item.get("maxSkew") or 0)


def honoring(pod: Pod, index: int) -> Variant | None:
    """The pod with a spread constraint that counts only nodes it may go to; None where it does already."""
    item = _spec(pod)["topologySpreadConstraints"][index]
    # What is not written is Honor for affinity and Ignore for taints.
    asked = {"nodeTaintsPolicy": "Ignore", "nodeAffinityPolicy": "Honor"}
    fields = [name for name, default in asked.items() if (item.get(name) or default) != "Honor"]
    if not fields:
        return None

    def change(spec: Spec) -> None:
        for name in fields:
            spec["topologySpreadConstraints"][index][name] = "Honor"

    return _variant(
        pod,
        edits.HONOR_POLICY,
        f"Set {' and '.join(f'{name}: Honor' for name in fields)} in the spread over {item.get('topologyKey')}",
        "It then counts only nodes that the pod may go to",
        change,
        removed=[f"{name}: {item[name]}" for name in fields if item.get(name)],
        added=[f"{name}: Honor" for name in fields],
        price="nothing",
        size=0.05,
        standing=edits.TRUE,
    )


def with_max_skew(pod: Pod, index: int, max_skew: int) -> Variant:
    """The pod with a laxer spread constraint."""
    item = _spec(pod)["topologySpreadConstraints"][index]
    before = int(item.get("maxSkew") or 0)

    def change(spec: Spec) -> None:
        spec["topologySpreadConstraints"][index]["maxSkew"] = max_skew

    return _variant(
        pod,
        edits.RELAX_SPREAD,
        f"Relax maxSkew over {item.get('topologyKey')} from {before} to {max_skew}",
        "",
        change,
        removed=[f"maxSkew: {before}"],
        added=[f"maxSkew: {max_skew}"],
        price=f"a skew of {max_skew}",
        size=1 - before / max_skew if max_skew else 0.0,
    )


def without_spread(pod: Pod, index: int) -> Variant:
    """The pod with one hard constraint made a wish."""
    item = _spec(pod)["topologySpreadConstraints"][index]

    def change(spec: Spec) -> None:
        spec["topologySpreadConstraints"][index]["whenUnsatisfiable"] = "ScheduleAnyway"

    return _variant(
        pod,
        edits.DROP_SPREAD,
        f"Only prefer to spread over {item.get('topologyKey')}",
        "",
        change,
        removed=["whenUnsatisfiable: DoNotSchedule"],
        added=["whenUnsatisfiable: ScheduleAnyway"],
        price="1 constraint",
        size=0.7,
    )


def with_request(pod: Pod, resource: str, amount: int) -> Variant | None:
    """The pod asking for `amount` (whole units) of a resource in all; None where its overhead alone is more.

    The largest containers give way first.
    """
    before = pod.requests[resource]

    def change(spec: Spec) -> None:
        _lower(spec, resource, amount)

    short = resource if "/" not in resource else resource.rsplit("/", 1)[1]
    result = _variant(
        pod,
        edits.LOWER_REQUEST,
        f"Lower the {short} request from {amount_text(resource, before)} to {amount_text(resource, amount)}",
        "The pod gets less than it asked for" if amount else "The pod asks for none",
        change,
        removed=[f"{resource}: {written(resource, before)}"],
        added=[f"{resource}: {written(resource, amount)}"],
        price=amount_words(resource, before - amount),
        size=(before - amount) / before,
    )
    return result if result.pod.requests.get(resource, 0) <= amount else None


def with_priority(pod: Pod, to: PriorityClass, *, is_new: bool = False) -> Variant:
    """The pod in a higher priority class, which `is_new` makes first; of a DaemonSet that is what it means anyway."""
    before = str(_spec(pod).get("priorityClassName") or "")

    def change(spec: Spec) -> None:
        spec["priorityClassName"] = to.name
        spec["priority"] = to.value
        spec["preemptionPolicy"] = to.preemption_policy

    made = _variant(
        pod,
        edits.RAISE_PRIORITY,
        f"Create the priority class {to.name} ({to.value:,}) and use it"
        if is_new
        else f"Raise to the priority class {to.name}",
        f"From priority {pod.priority} to {to.value}",
        change,
        removed=[f"priorityClassName: {before}"] if before else [f"priority: {pod.priority}"],
        added=[f"priorityClassName: {to.name}"],
        price="others give way",
        size=0.5,
        cost=COST_QUEUE,
        standing=edits.TRUE if is_daemon(pod) else edits.CHANGES,
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


def _at(document: Mapping[str, Any], *keys: str) -> Any:
    found: Any = document
    for key in keys:
        found = (found or {}).get(key)
    return found


def _preferred(spec: Mapping[str, Any]) -> bool:
    return bool(_at(spec, "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"))


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
