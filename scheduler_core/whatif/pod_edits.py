"""Edits of the pod itself: each is a changed spec, read again as any manifest is."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from scheduler_core.objects.defaults import PriorityClass
from scheduler_core.objects.meta import object_of
from scheduler_core.objects.node import LABEL_HOSTNAME, TAINT_UNSCHEDULABLE, Taint
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, named, quantity_nano
from scheduler_core.schema.tables import table_beside
from scheduler_core.validation.pods import may_overcommit
from scheduler_core.whatif.fixes import HARMS, KEEPS, OWNER, Fix, apart, draft, written
from scheduler_core.whatif.patches import inline

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
CORDON: Final = Taint(TAINT_UNSCHEDULABLE, "", "NoSchedule")
KEEPS_OFF: Final = ("NoSchedule", "NoExecute")
LIFECYCLE: Final = "node.kubernetes.io/"
STARTING: Final = "/agent-not-ready"
"""Of taints that an agent takes away once it runs on the node: `ebs.csi.aws.com/agent-not-ready`."""
HASH_LABEL: Final = "pod-template-hash"
MOST_LOWERED: Final = 0.2
"""Share of a request above which lowering it is never a headline."""
TAINTS: Final[Mapping[str, Mapping[str, str]]] = table_beside(__package__, "taints.yaml")
"""Taints of nodes that are broken, about to go or kept for the cluster itself."""
RENAMED: Mapping[str, str] = {
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "node-role.kubernetes.io/master": "node-role.kubernetes.io/control-plane",
}
"""Labels that Kubernetes renamed; taints too."""
_PLACES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
)
_MIB = 2**20
_SYNONYMS: Final = (
    ("amd64", "x8664", "x64"),
    ("arm64", "aarch64"),
    ("true", "yes", "on", "enabled"),
    ("false", "no", "off", "disabled"),
)
"""Words for the same, without separators."""
_GONE: Final = object()

Spec = dict[str, Any]
Labels = Mapping[str, Mapping[str, int]]
"""Label key -> its values -> how many nodes or pods carry them."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A changed version of the pod, what the change is, and the change of any spec like it: its owner's template."""

    fix: Fix
    pod: Pod
    edit: Callable[[Spec], None]


def _variant(
    pod: Pod, form: str, words: Mapping[str, Any], edit: Callable[[Spec], None], **more: Any
) -> Variant:
    return Variant(draft(form, words, **more), edited(pod, edit), edit)


def edited(pod: Pod, edit: Callable[[Spec], None]) -> Pod:
    """The pod with a change of its spec, as the API server keeps it: with label keys of a spread in its selector."""
    spec = copied(_spec(pod))
    edit(spec)
    for item in spec.get("topologySpreadConstraints") or ():
        for key in item.get("matchLabelKeys") or ():
            wanted = {"key": key, "operator": "In", "values": [pod.labels.get(key)]}
            selector = item.setdefault("labelSelector", {})
            if key in pod.labels and wanted not in (selector.get("matchExpressions") or ()):
                selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), wanted]
    return pod_from({**pod.manifest, "spec": spec})


def copied(spec: Mapping[str, Any]) -> Spec:
    """A copy that may be edited."""
    return copy.deepcopy(dict(spec))


# ---- what was mistyped


def is_near(one: str, other: str) -> bool:
    """Whether one text may be the other, mistyped.

    That is other case, separators or order of words, a doubled letter, another word for the same, or one slip in four
    letters: left out, swapped or another. Not where only a digit or the last letter differs: those count things.

    Examples
    --------
    >>> is_near("nmve", "nvme"), is_near("disk-type", "diskType"), is_near("eu-1a", "eu-1b"), is_near("ssd", "hdd")
    (True, True, False, False)
    """
    plain, other_plain = (re.sub(r"[-_. ]", "", text).lower() for text in (one, other))
    if plain == other_plain or any(plain in words and other_plain in words for words in _SYNONYMS):
        return one != other
    if sorted(re.split(r"[-_. ]", one.lower())) == sorted(re.split(r"[-_. ]", other.lower())):
        return True
    if min(len(plain), len(other_plain)) > 2 and _without_doubles(plain) == _without_doubles(other_plain):
        return True
    if re.sub(r"\d", "", plain) == re.sub(r"\d", "", other_plain):
        return False
    if len(plain) == len(other_plain) and plain[:-1] == other_plain[:-1]:
        return False
    most = min(2, min(len(plain), len(other_plain)) // 4)
    return 0 < _slips(plain, other_plain) <= most


def _without_doubles(text: str) -> str:
    return re.sub(r"(.)\1+", r"\1", text)


def _slips(one: str, other: str) -> int:
    """Letters to insert, leave out, change or swap with the next (optimal string alignment)."""
    above: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, start=1):
        before, above, row = above, row, [place]
        for column, wanted in enumerate(other, start=1):
            least = min(above[column] + 1, row[-1] + 1, above[column - 1] + (letter != wanted))
            if place > 1 and column > 1 and letter == other[column - 2] and one[place - 2] == wanted:
                least = min(least, before[column - 2] + 1)
            row.append(least)
    return row[-1]


def nearest(name: str, known: Collection[str]) -> str:
    """The one of the names that may have been meant; empty where there is none."""
    found = sorted((_slips(name.lower(), other.lower()), other) for other in known if is_near(name, other))
    return found[0][1] if found else ""


MACHINES: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/os": ("linux", "windows"),
    "kubernetes.io/arch": ("amd64", "arm64", "ppc64le", "s390x"),
}
"""What such labels of a node may say."""


def _meant(key: str, value: str, labels: Labels) -> tuple[str, str] | None:
    """The label that may have been meant by one that nothing carries."""
    if value in labels.get(key, {}):
        return None
    for other in [*([RENAMED[key]] if key in RENAMED else []), *_keys_near(key, labels)]:
        if value in labels.get(other, {}):
            return other, value
    known = labels.get(key, {})
    there = nearest(value, known)
    if key == LABEL_HOSTNAME and not there:  # by its full name, or without its domain
        there = next((one for one in known if one.split(".")[0] == value.split(".")[0]), "")
    return (key, there) if there else None


def corrected_selectors(pod: Pod, nodes: Labels, template: Spec | None = None) -> Iterator[Variant]:
    """The pod with a node selector, or a value that node affinity requires, as a node's label spells it."""
    for key, value in dict(_spec(pod).get("nodeSelector") or {}).items():
        found = _meant(key, str(value), nodes)
        if found is None or not is_of_template(pod, template, "nodeSelector", key):
            continue
        to, spelt = found
        words = {"was": f"{key}={value}", "to": f"{to}={spelt}", "have": _n_nodes(nodes[to][spelt])}
        yield _variant(pod, "correct-selector", words, _renaming(("nodeSelector",), key, to, spelt))
    required = ("affinity", "nodeAffinity", REQUIRED)
    terms = (at(_spec(pod), *required) or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms if is_of_template(pod, template, *required) else ()):
        for place, item in enumerate(term.get("matchExpressions") or ()):
            for value in item.get("values") or () if item.get("operator") == "In" else ():
                key, there = item["key"], nodes.get(item["key"], {})
                if any(one in there for one in item["values"]):
                    continue
                found = _meant(key, str(value), nodes)
                # A place that has no node: others of its kind have.
                like = [one for one in there if one[:-1] == str(value)[:-1]] if key in _PLACES else []
                if found is None and not like:
                    continue
                to, spelt = found or (key, like[0])
                wanted = {"key": to, "operator": "In", "values": [spelt] if found else sorted(like)}
                where = (*required, "nodeSelectorTerms", index, "matchExpressions", place)
                words = {"was": f"{key}={value}", "to": f"{to}={spelt}", "have": _n_nodes(nodes[to][spelt])}
                words["all"] = f"{to}={', '.join(wanted['values'])}"
                yield _variant(pod, "correct-selector/required", words, setting({where: wanted}))


def corrected_places(pod: Pod, tied: Iterable[tuple[str, Sequence[Mapping[str, str]]]]) -> Iterator[Variant]:
    """The pod with a node selector for another place than that of its volume.

    Parameters
    ----------
    tied : iterable of (str, sequence of mapping)
        What ties the pod to places, and the labels that a node needs, any of them.
    """
    for words, options in tied:
        for key, value in dict(_spec(pod).get("nodeSelector") or {}).items():
            there = dict.fromkeys(option[key] for option in options if key in option)
            if there and str(value) not in there:
                to = next(iter(there))
                named = {"was": f"{key}={value}", "to": f"{key}={to}", "tied": words}
                edit = _renaming(("nodeSelector",), key, key, to)
                yield _variant(pod, "correct-selector/place", named, edit)


def _renaming(path: tuple[str | int, ...], key: str, to: str, value: str) -> Callable[[Spec], None]:
    """A change of a spec: another key, or value, in the mapping at a path."""

    def edit(spec: Spec) -> None:
        change(spec, {(*path, key): _GONE})
        change(spec, {(*path, to): value})

    return edit


def _n_nodes(number: int) -> str:
    return f"{number:,} node has" if number == 1 else f"{number:,} nodes have"


def corrected_amounts(pod: Pod, largest: Mapping[str, int]) -> Iterator[Variant]:
    """The pod with an amount that is far above all nodes in the unit that may have been meant: `500m` for `500`.

    Parameters
    ----------
    largest : mapping of str to int
        The most that any node has of each resource, in whole units.
    """
    for resource, (unit, factor, least) in _UNITS.items():
        amount, most = pod.requests.get(resource, 0), largest.get(resource, 0)
        if written(resource, amount).endswith(("G", "M")):
            factor = 1000
        if not most or amount <= 4 * most or amount // factor < least:
            continue

        def edit(spec: Spec, resource: str = resource, size: int = unit * factor, least: int = least) -> None:
            for container in _containers(spec):
                for amounts in (container.get("resources") or {}).values():
                    if isinstance(amounts, dict) and _nano(amounts, resource) > least * size:
                        amounts[resource] = written(resource, _nano(amounts, resource) // size)

        was, to = written(resource, amount), written(resource, amount // factor)
        yield _variant(pod, "correct-request", {"resource": resource, "was": was, "to": to}, edit)


_UNITS: Mapping[str, tuple[int, int, int]] = {
    CPU: (10**6, 1000, 50),
    MEMORY: (10**9, 1024, 16 * 2**20),
    EPHEMERAL_STORAGE: (10**9, 1024, 16 * 2**20),
}
"""Resource -> billionths in its whole unit, how far apart the units are that are mistaken, the least that is usual."""


def corrected_resources(pod: Pod, known: Collection[str]) -> Iterator[Variant]:
    """The pod with a resource that no node has under the name that nodes have."""
    for name in pod.requests:
        to = nearest(name, known) if "/" in name and name not in known else ""
        if not to:
            continue

        def edit(spec: Spec, name: str = name, to: str = to) -> None:
            for container in _containers(spec):
                for amounts in (container.get("resources") or {}).values():
                    if isinstance(amounts, dict) and name in amounts:
                        amounts[to] = amounts.pop(name)

        yield _variant(pod, "correct-resource", {"name": name, "to": to}, edit)


def corrected_topology(pod: Pod, nodes: Labels) -> Iterator[Variant]:
    """The pod with a hard spread, or a required pod affinity, over a label that no node has as nodes spell it."""
    spread = _spec(pod).get("topologySpreadConstraints") or ()
    paths: list[tuple[str | int, ...]] = [
        ("topologySpreadConstraints", index)
        for index, item in enumerate(spread)
        if item.get("whenUnsatisfiable") == "DoNotSchedule"
    ]
    affinity = ("affinity", "podAffinity", REQUIRED)
    paths += [(*affinity, index) for index in range(len(at(_spec(pod), *affinity) or ()))]
    for path in paths:
        key = str(_found(_spec(pod), path).get("topologyKey"))
        to = RENAMED.get(key) or next(iter(_keys_near(key, nodes)), "")
        if key not in nodes and to in nodes:
            edit = setting({(*path, "topologyKey"): to})
            yield _variant(pod, "correct-spread", {"key": key, "to": to}, edit)


def _keys_near(key: str, labels: Labels) -> list[str]:
    """Label keys that may have been meant by one, the likeliest first."""
    last = key.rsplit("/", 1)[-1]
    found = [other for other in labels if is_near(last, other.rsplit("/", 1)[-1])]
    return found + [other for other in labels if other != key and other.rsplit("/", 1)[-1] == last]


def corrected_affinity(pod: Pod, running: Sequence[Pod]) -> Iterator[Variant]:
    """The pod with a label, or the namespace, that its required pod affinity asks for as that of pods that run."""
    labels = labels_of(one.labels for one in running if one.namespace == pod.namespace)
    for index, term in enumerate(at(_spec(pod), "affinity", "podAffinity", REQUIRED) or ()):
        path = ("affinity", "podAffinity", REQUIRED, index)
        wanted = (term.get("labelSelector") or {}).get("matchLabels") or {}
        for key, value in wanted.items():
            found = _meant(key, str(value), labels)
            if found is not None:
                edit = _renaming((*path, "labelSelector", "matchLabels"), key, *found)
                words = {"was": f"{key}={value}", "to": "=".join(found)}
                yield _variant(pod, "correct-affinity", words, edit)
        if term.get("namespaces") or "namespaceSelector" in term or not wanted:
            continue
        spaces = {one.namespace for one in running if wanted.items() <= one.labels.items()}
        if spaces and pod.namespace not in spaces:
            words = {"namespaces": ", ".join(sorted(spaces)), "own": pod.namespace}
            edit = setting({(*path, "namespaces"): sorted(spaces)})
            yield _variant(pod, "correct-affinity/namespaces", words, edit)


def labels_of(items: Iterable[Mapping[str, str]]) -> dict[str, dict[str, int]]:
    """Label key -> its values -> how many carry them."""
    found: dict[str, dict[str, int]] = {}
    for labels in items:
        for key, value in labels.items():
            values = found.setdefault(key, {})
            values[value] = values.get(value, 0) + 1
    return found


def corrected_tolerations(pod: Pod, taints: Sequence[Taint]) -> Iterator[Variant]:
    """The pod with a toleration that misses a taint by its spelling, value, operator or effect, as the taint is."""
    for taint in taints:
        for place, item in enumerate(_spec(pod).get("tolerations") or ()):
            key = str(item.get("key") or "")
            meant = key == taint.key or is_near(key, taint.key) or RENAMED.get(key) == taint.key
            if not key or not meant or (taint.key.startswith(LIFECYCLE) and key == taint.key):
                continue
            toleration = _toleration(taint)

            def edit(spec: Spec, item: Any = item, toleration: Any = toleration, place: int = place) -> None:
                here = spec.get("tolerations") or []
                at_place = here.index(item) if item in here else place
                spec["tolerations"] = [*here[:at_place], toleration, *here[at_place + 1 :]]

            words = {"key": key, "taint": taint, "toleration": inline(item)}
            yield _variant(pod, "correct-toleration", words, edit)


def corrected_claim(pod: Pod, name: str, to: str, key: str = "claimName") -> Variant:
    """The pod with a claim that is there in place of one that is not.

    Parameters
    ----------
    key : str
        The field: `claimName`, `resourceClaimName` or `resourceClaimTemplateName`.
    """

    def edit(spec: Spec) -> None:
        volumes = (volume.get("persistentVolumeClaim") or {} for volume in spec.get("volumes") or ())
        for source in (*volumes, *(spec.get("resourceClaims") or ())):
            if source.get(key) == name:
                source[key] = to

    return _variant(pod, "correct-claim", {"name": name, "to": to, "namespace": pod.namespace}, edit)


def with_class_of_volume(pod: Pod, fix: Fix, claims: Iterable[Mapping[str, Any]]) -> Variant | None:
    """The pod whose ephemeral volumes have the classes of these claims; None where the claims are of no such volume."""
    classes = {
        one["metadata"]["name"]: one["spec"].get("storageClassName") for one in claims if "spec" in one
    }
    names = [volume["name"] for volume in pod.volumes if volume.get("ephemeral")]
    wanted = {name: classes[f"{pod.name}-{name}"] for name in names if f"{pod.name}-{name}" in classes}

    def edit(spec: Spec) -> None:
        for volume in spec["volumes"]:
            if volume["name"] in wanted:
                volume["ephemeral"]["volumeClaimTemplate"]["spec"]["storageClassName"] = wanted[
                    volume["name"]
                ]

    return Variant(fix, edited(pod, edit), edit) if wanted else None


def unasked(pod: Pod, profiles: Sequence[str]) -> tuple[str, Variant | None] | None:
    """Why no scheduler here decides about a pod, and what mends that; None where one does.

    Parameters
    ----------
    profiles : sequence of str
        Names of the schedulers that are here.
    """
    if pod.node_name:
        headline = (
            f"{pod.name} is on {pod.node_name} by nodeName: no scheduler binds the claims it waits for."
        )
        return headline, _without_node_name(pod)
    if pod.scheduling_gates:
        gates = ", ".join(pod.scheduling_gates)
        words = {"gates": gates, "pod": pod.name, "namespace": pod.namespace}
        variant = _variant(pod, "wait/gates", words, setting({("schedulingGates",): []}))
        return f"{pod.name} is held back by its scheduling gates: {gates}.", variant
    name = pod.scheduler_name
    if name in profiles:
        return None
    headline = f"{pod.name} waits for the scheduler {name}, and no profile here has this name."
    to = nearest(name, profiles) or (profiles[0] if len(profiles) == 1 else "")
    words, edit = {"name": name, "to": to}, setting({("schedulerName",): to})
    return headline, _variant(pod, "correct-scheduler", words, edit) if to else None


def _without_node_name(pod: Pod) -> Variant:
    """The pod left to the scheduler, for the same node: `nodeName` passes it by, and nothing binds its claims."""
    name = pod.node_name

    def edit(spec: Spec) -> None:
        spec.pop("nodeName", None)
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), LABEL_HOSTNAME: name}

    return _variant(pod, "correct-node-name", {"name": name}, edit)


def matching_label_keys(pod: Pod, index: int) -> Variant | None:
    """The pod with a spread that counts only pods of its revision; None where it does so already."""
    item = _spec(pod)["topologySpreadConstraints"][index]
    keys = list(item.get("matchLabelKeys") or ())
    if HASH_LABEL not in pod.labels or HASH_LABEL in keys:
        return None
    return _with_constraint(pod, index, "match-label-keys", {"matchLabelKeys": [*keys, HASH_LABEL]})


# ---- taints


def tolerations(pod: Pod, taints: Sequence[Taint]) -> Iterator[Variant]:
    """One toleration for each taint that keeps the pod off: no headline, but where it asks for such nodes."""
    for taint in taints:
        toleration = _toleration(taint)

        def edit(spec: Spec, toleration: Any = toleration) -> None:
            spec["tolerations"] = [*(spec.get("tolerations") or ()), toleration]

        words, marks = {"taint": taint, "marks": marked_by(taint)}, marked_by(taint)
        if is_meant_for(pod, taint):
            yield _variant(pod, "tolerate/meant", words, edit, kind=KEEPS)
        elif marks:
            yield _variant(pod, "tolerate/marked", words, edit, size=0.95, headline=False)
        else:
            yield _variant(pod, "tolerate", words, edit, headline=False)


def _toleration(taint: Taint) -> dict[str, str]:
    found = {"key": taint.key, "effect": taint.effect}
    return found | ({"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"})


def is_meant_for(pod: Pod, taint: Taint) -> bool:
    """Whether the pod asks for the nodes that a taint marks: for their device, or by a selector for the same mark."""
    for resource, amount in pod.requests.items():
        device = resource.rsplit("/", 1)[-1]
        if "/" in resource and amount and (taint.key == resource or (device == "gpu" and "gpu" in taint.key)):
            return True
    spec = _spec(pod)
    wanted = [(key, str(value)) for key, value in (spec.get("nodeSelector") or {}).items()]
    terms = list((at(spec, "affinity", "nodeAffinity", REQUIRED) or {}).get("nodeSelectorTerms") or ())
    if len(terms) == 1:
        items = [item for item in _requirements(terms[0]) if item.get("operator") in ("In", "Exists")]
        wanted += [(item["key"], str(value)) for item in items for value in item.get("values") or ("",)]
    says_little = ("", "true", "yes", "on")
    return any(
        (key == taint.key and value in (taint.value, "", "true"))
        or (value == taint.value and value.lower() not in says_little)
        for key, value in wanted
    )


def marked_by(taint: Taint) -> str:
    """What nodes with a taint are, where it keeps off pods that are not meant for such nodes; else empty."""
    if taint.key.endswith(STARTING):
        return "nodes that are not set up yet"
    return TAINTS.get(taint.key, {}).get("marks") or (
        "nodes that are not well or not in use" if LIFECYCLE in taint.key else ""
    )


def is_passing(key: str) -> bool:
    """Whether a taint of this key says how a node is now, which a new node of its kind would not be."""
    marks = key.startswith(LIFECYCLE) or key.endswith(STARTING) or key in TAINTS
    return marks and not key.startswith("node-role.kubernetes.io/")


def is_of_template(pod: Pod, template: Spec | None, *path: str | int) -> bool:
    """Whether a field of the pod's spec is its owner's own; else a controller or an admission plugin set it.

    Source: pkg/controller/daemon/util/daemonset_util.go ReplaceDaemonSetPodNodeNameNodeAffinity, v1.34: it takes the
    place of all required node affinity.

    Parameters
    ----------
    template : mapping or None
        The spec of the owner's pod template; None where it is not known, and without an owner.
    """
    if path[:2] == ("affinity", "nodeAffinity") and pod.is_of_daemon_set:
        return False
    found: Any = template
    for key in path if template is not None else ():
        there = isinstance(key, int) and key < len(found) if isinstance(found, list) else key in (found or {})
        if not there:
            return False
        found = found[key]
    return True


def without_selectors(pod: Pod, template: Spec | None = None) -> Iterator[Variant]:
    """The pod without one key of its nodeSelector."""
    for key, value in dict(_spec(pod).get("nodeSelector") or {}).items():
        if is_of_template(pod, template, "nodeSelector", key):
            words, edit = {"key": key, "value": value}, setting({("nodeSelector", key): _GONE})
            # Images are built for one architecture and one system.
            yield _variant(pod, "drop-selector", words, edit, headline=key not in MACHINES)


def without_node_affinity(pod: Pod, template: Spec | None = None) -> Iterator[Variant]:
    """The pod without one requirement of a required term, and without any required term.

    Terms are alternatives: a requirement is dropped only where others remain, since an empty term matches nothing.
    """
    path = ("affinity", "nodeAffinity", REQUIRED)
    required = at(_spec(pod), *path)
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
            of = f" of term {index + 1}" if len(terms) > 1 else ""
            edit = setting({(*path, "nodeSelectorTerms", index, key, place): _GONE})
            yield _variant(pod, "drop-requirement", {"requirement": words, "of": of}, edit)
    preferred = at(_spec(pod), "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
    form = "drop-node-affinity/preferred" if preferred else "drop-node-affinity"
    yield _variant(pod, form, {}, setting({path: _GONE}))


def _requirements(term: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [item for key in ("matchExpressions", "matchFields") for item in term.get(key) or ()]


def without_affinity_terms(pod: Pod, template: Spec | None = None) -> Iterator[Variant]:
    """The pod without one required pod affinity or anti-affinity term."""
    for key, form in (
        ("podAntiAffinity", "drop-anti-affinity-term"),
        ("podAffinity", "drop-affinity-term"),
    ):
        for index, term in enumerate(at(_spec(pod), "affinity", key, REQUIRED) or ()):
            path = ("affinity", key, REQUIRED, index)
            if is_of_template(pod, template, *path):
                words = {"pods": selector_words(term.get("labelSelector")), "key": term.get("topologyKey")}
                yield _variant(pod, form, words, setting({path: _GONE}))


def without_host_ports(pod: Pod) -> Iterator[Variant]:
    """The pod without one of its host ports."""
    for key in ("initContainers", "containers"):
        for index, container in enumerate(_spec(pod).get(key) or ()):
            for place, port in enumerate(container.get("ports") or ()):
                if not port.get("hostPort"):
                    continue
                words = {"port": port["hostPort"], "protocol": port.get("protocol") or "TCP"}
                edit = setting({(key, index, "ports", place, "hostPort"): _GONE})
                yield _variant(pod, "drop-host-port", words, edit)


def hard_spread(pod: Pod, template: Spec | None = None) -> Iterator[tuple[int, int]]:
    """(place, maxSkew) of each DoNotSchedule constraint that the pod's owner wrote."""
    for index, item in enumerate(_spec(pod).get("topologySpreadConstraints") or ()):
        is_own = is_of_template(pod, template, "topologySpreadConstraints", index)
        if is_own and item.get("whenUnsatisfiable") == "DoNotSchedule":
            yield index, int(item.get("maxSkew") or 0)


def _with_constraint(pod: Pod, index: int, form: str, fields: Mapping[str, Any], **more: Any) -> Variant:
    """The pod with other fields in a spread constraint."""
    item = _spec(pod)["topologySpreadConstraints"][index]
    edit = setting({("topologySpreadConstraints", index, name): value for name, value in fields.items()})
    words = {"key": item.get("topologyKey"), "before": {"maxSkew": None, **item}, **fields}
    return _variant(pod, form, words, edit, **more)


def honoring(pod: Pod, *indexes: int) -> Variant | None:
    """The pod with spread constraints that count only nodes it may go to; None where one of them does already."""
    # What is not written is Honor for affinity and Ignore for taints.
    asked = {"nodeTaintsPolicy": "Ignore", "nodeAffinityPolicy": "Honor"}
    changes: dict[tuple[str | int, ...], str] = {}
    for index in indexes:
        item = _spec(pod)["topologySpreadConstraints"][index]
        names = [name for name, default in asked.items() if (item.get(name) or default) != "Honor"]
        changes |= {("topologySpreadConstraints", index, name): "Honor" for name in names}
        if not names:
            return None
    fields = dict.fromkeys(f"{path[-1]}: Honor" for path in changes)
    keys = [_spec(pod)["topologySpreadConstraints"][index].get("topologyKey") for index in indexes]
    words = {"fields": " and ".join(fields), "keys": " and ".join(keys)}
    return _variant(pod, "honor-policy", words, setting(changes))


def with_max_skew(pod: Pod, index: int, max_skew: int) -> Variant:
    """The pod with a laxer spread constraint."""
    before = int(_spec(pod)["topologySpreadConstraints"][index].get("maxSkew") or 0)
    size = 1 - before / max_skew if max_skew else 0.0
    return _with_constraint(pod, index, "relax-spread", {"maxSkew": max_skew}, size=size)


def without_spread(pod: Pod, index: int) -> Variant:
    """The pod with one hard constraint made a wish."""
    fields = {"whenUnsatisfiable": "ScheduleAnyway"}
    return _with_constraint(pod, index, "drop-spread", fields)


def with_min_domains(pod: Pod, index: int, most: int) -> Variant | None:
    """The pod content with as many domains as there are; None where it asks for no more."""
    before = int(_spec(pod)["topologySpreadConstraints"][index].get("minDomains") or 1)
    if before <= most or most < 1:
        return None
    fields, size = {"minDomains": most}, 1 - most / before
    return _with_constraint(pod, index, "relax-spread/domains", fields, size=size)


def with_request(pod: Pod, resource: str, amount: int, used: int = 0) -> Variant | None:
    """The pod asking for `amount` (whole units) of a resource in all; None where its overhead alone is more.

    The largest containers give way first.

    Parameters
    ----------
    used : int
        The most that pods like it used, where that is known.
    """
    before = pod.requests[resource]

    def edit(spec: Spec) -> None:
        _lower(spec, resource, amount)

    lowered = edited(pod, edit)
    after = lowered.requests.get(resource, 0)
    if after > amount:
        return None
    was, to = apart(resource, before, after)
    size = (before - after) / before
    words = {"resource": named(resource), "was": was, "to": to, "left": 100 - 100 * size}
    words["used"] = written(resource, used)
    form = "lower-request/none" if not after else "lower-request/used" if used else "lower-request"
    fix = draft(form, words, size=size, headline=size <= MOST_LOWERED)
    return Variant(fix, lowered, edit)


def with_priority(pod: Pod, to: PriorityClass, *, is_new: bool = False) -> Variant:
    """The pod in a higher priority class, which `is_new` makes first; of a DaemonSet that is what it means anyway."""
    fields = {"priorityClassName": to.name, "priority": to.value, "preemptionPolicy": to.preemption_policy}
    form = "raise-priority/new" if is_new else "raise-priority"
    more = {"kind": KEEPS, "decides": OWNER} if pod.is_of_daemon_set else {"kind": HARMS, "headline": False}
    edit = setting({(name,): value for name, value in fields.items()})
    words = {"name": to.name, "value": to.value, "was": pod.priority}
    return _variant(pod, form, words, edit, **more)


def manifest_of_class(to: PriorityClass) -> dict[str, Any]:
    """A priority class that is still to be made."""
    return object_of("scheduling.k8s.io/v1", "PriorityClass", {"name": to.name}, value=to.value)


def pair_of(first: Variant, second: Variant) -> Variant:
    """Two edits of the pod as one; the second was made of what the first left."""

    def edit(spec: Spec) -> None:
        first.edit(spec)
        second.edit(spec)

    one, other = first.fix, second.fix
    both = replace(
        other,
        what="pair",
        kind=one.kind if one.kind == other.kind else draft("pair").kind,
        title=f"{one.title}, and {other.title[0].lower()}{other.title[1:]}",
        note="; ".join(filter(None, (one.note, other.note))),
        size=1 + one.size + other.size,
        headline=one.headline and other.headline,
    )
    return Variant(both, second.pod, edit)


def round_amount(resource: str, amount: int) -> int:
    """The amount as a request is written: rounded down to 10m or 1Mi where it is more than that."""
    step = 10 if resource == CPU else _MIB if resource in (MEMORY, EPHEMERAL_STORAGE) else 1
    return amount // step * step if amount > step else amount


# ---- reading and writing specs


def _spec(pod: Pod) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = pod.manifest.get("spec") or {}
    return spec


def setting(changes: Mapping[tuple[str | int, ...], Any]) -> Callable[[Spec], None]:
    """A change of a spec: these values at these paths; `_GONE` takes away what is there."""
    return lambda spec: change(spec, changes)


def change(spec: Spec, changes: Mapping[tuple[str | int, ...], Any]) -> None:
    """Set values at paths of a spec."""
    for (*way, last), value in changes.items():
        place = _found(spec, way)
        if value is _GONE:
            del place[last]
        else:
            place[last] = value


def _found(document: Any, path: Iterable[str | int]) -> Any:
    for key in path:
        document = document[key]
    return document


def _containers(spec: Mapping[str, Any]) -> list[Spec]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def at(document: Mapping[str, Any], *keys: str) -> Any:
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
    pod_level = at(spec, "resources", "requests")
    if pod_level and resource in pod_level:
        pod_level[resource] = written(resource, round_amount(resource, target // unit))


def _write(container: Spec, resource: str, nano: int, unit: int) -> int:
    """Set a container's request as `round_amount` writes it; returns by how much it went down."""
    before, amount = _requested(container, resource), round_amount(resource, nano // unit)
    container["resources"]["requests"][resource] = written(resource, amount)
    if not may_overcommit(resource):
        container["resources"].setdefault("limits", {})[resource] = written(resource, amount)
    return before - amount * unit


def _requested(container: Mapping[str, Any], resource: str) -> int:
    return _nano(at(container, "resources", "requests") or {}, resource)


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
