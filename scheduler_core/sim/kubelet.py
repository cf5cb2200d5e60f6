"""What kubelets do to pods on their nodes: admit them, start them, resize them, end them, report it.

Annotations a pod may carry (all optional, Kubernetes durations or seconds):
`playground.dev/duration` ends the pod that long after it started, whatever its restartPolicy (as what,
`playground.dev/ends-as` says: `Succeeded`, the default, or `Failed`); `playground.dev/start-delay` starts it later.
Pods of Jobs are given a duration where they say none (`controllers/job.py`); `never` is none.

A kubelet is silent while its node's Ready condition is Unknown, and gone with its node: pods there neither start nor
end nor terminate until it is heard of again.

Source: pkg/kubelet/lifecycle/predicate.go, pkg/scheduler/framework (AdmissionCheck),
pkg/kubelet/volumemanager/populator, pkg/kubelet/cm/dra/manager.go,
pkg/kubelet/allocation/allocation_manager.go handlePodResourcesResize, canResizePod, v1.34
Differs: no attempt to make room for critical pods; claims count where no container mounts their volume, too;
containers are resized at once, so none is ever in progress; no swap, no static policies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from scheduler_core.clock import SECOND_NS
from scheduler_core.cluster.node_table import normal_port
from scheduler_core.objects.duration import duration_ns
from scheduler_core.objects.fields import format_seconds
from scheduler_core.objects.meta import condition_of, finalizers_of
from scheduler_core.objects.node import Node
from scheduler_core.objects.pod import HostPort, Pod, pod_from
from scheduler_core.objects.storage import PersistentVolumeClaim
from scheduler_core.sim.timers import Timers
from scheduler_core.sim.world import PodIndex, World, annotations_of, condition, generation_of

DURATION = "playground.dev/duration"
ENDS_AS = "playground.dev/ends-as"
START_DELAY = "playground.dev/start-delay"

NEVER = "never"
STARTS, FINISHES, TERMINATED = "pod-starts", "pod-finishes", "pod-terminated"
TIMER_NAMES = (STARTS, FINISHES, TERMINATED)
DEFAULT_GRACE_S = 30
_MAX_GRACE_S = 1_000_000_000
"""31 years: a pod may say more, and its end would be written in a year of five digits."""


def ready_status(node: Node) -> str:
    """`True`, `False` or `Unknown`; a node that says nothing is ready, as hand-written ones do not."""
    return next((status for type_, status in node.conditions if type_ == "Ready"), "True")


def is_heard_of(node: Node | None) -> bool:
    """Whether a kubelet works there."""
    return node is not None and ready_status(node) != "Unknown"


class Kubelet:
    """All kubelets of the cluster at once."""

    def __init__(self, world: World, timers: Timers, pods: PodIndex) -> None:
        self._world = world
        self._timers = timers
        self._pods = pods
        self._use = NodeUse(pods)
        self._unready: dict[tuple[str, str], Pod] = {}
        """Pods that wait on their nodes for claims."""

    def restored(self) -> None:
        """Know again which pods wait, from a world as a checkpoint had it."""
        for stored in self._world.all("Pod"):
            pod: Pod = stored.typed
            if pod.node_name and pod.phase == "Pending" and waits_on_its_node(stored.manifest):
                self._unready[pod.namespace, pod.name] = pod

    def claim_changed(self, kind: str, meta: Mapping[str, Any]) -> None:
        """A PersistentVolumeClaim or ResourceClaim came, changed or went: pods that wait for it are looked at again."""
        for pod in self._unready.values():
            if pod.namespace == meta.get("namespace") and (kind, meta["name"]) in claims_of(pod):
                self._add(pod, self._world.clock.now_ns, STARTS)

    def _add(self, pod: Pod, at_ns: int, what: str) -> None:
        self._timers.add(at_ns, what, pod.namespace, pod.name, pod.uid)

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        """A node came, changed or went."""
        is_now = is_heard_of(new)
        node = new or old
        if is_heard_of(old) == is_now or node is None:
            return
        on_node = self._pods.on_node(node.name)
        for key in sorted(on_node):
            if is_now:
                self._look_at(on_node[key])
            else:
                self._cancel(on_node[key])

    def _resize(self, old: Pod | None, new: Pod | None) -> None:
        """A running pod may ask for another size; one that ends, or shrinks, may make room for others that do."""
        if old is None or not old.node_name:
            return
        makes_room = new is None or (new.is_terminal and not old.is_terminal) or new.requests != old.requests
        if new is not None and not makes_room and new.manifest["spec"] is old.manifest["spec"]:
            return
        node = self._world.node(old.node_name)
        if node is None or not is_heard_of(node):
            return
        live = None if new is None else self._world.live(new)
        if (
            live is not None
            and live.phase == "Running"
            and not live.is_terminating
            and is_asked_for(old.manifest, live.manifest)
        ):
            resize(self._world, live, old.manifest, node, self._use)
        on_node = self._pods.on_node(node.name) if makes_room else {}
        for other in [on_node[key] for key in sorted(on_node)]:
            if other.uid != old.uid and is_deferred(other):
                resize(self._world, other, other.manifest, node, self._use)

    def _cancel(self, pod: Pod) -> None:
        for what in TIMER_NAMES:
            self._timers.cancel(what, pod.namespace, pod.name, pod.uid)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """A pod came, changed or went."""
        self._use.changed(old, new)
        self._resize(old, new)
        if self._unready and old is not None and (old.namespace, old.name) in self._unready:
            self._unready_changed(old, new)
        if old is not None and (new is None or new.uid != old.uid):
            if old.node_name:
                self._cancel(old)
            old = None
        if new is None or not new.node_name:
            return
        if (
            old is None
            or not old.node_name
            or old.phase != new.phase
            or old.meta.deletion_ns != new.meta.deletion_ns
        ):
            self._look_at(new)

    def _unready_changed(self, old: Pod, new: Pod | None) -> None:
        """A pod that waits for claims changed: its claims may be made by now."""
        key = (old.namespace, old.name)
        if new is None or new.uid != old.uid or new.phase != "Pending" or new.is_terminating:
            del self._unready[key]
            return
        self._unready[key] = new
        if claims_of(new) != claims_of(old):
            self._add(new, self._world.clock.now_ns, STARTS)

    def _look_at(self, pod: Pod) -> None:
        """Set the timer for what happens next to a pod on a node."""
        if not is_heard_of(self._world.node(pod.node_name)):
            return
        now_ns = self._world.clock.now_ns
        subject = (pod.namespace, pod.name, pod.uid)
        # Objects tell whole seconds; what is looked at in the moment it happens keeps its time to the nanosecond.
        fraction_ns = now_ns % SECOND_NS
        if pod.is_terminating:
            self._timers.cancel(STARTS, *subject)
            self._timers.cancel(FINISHES, *subject)
            self._add(pod, max((pod.meta.deletion_ns or 0) + fraction_ns, now_ns), TERMINATED)
        elif pod.is_terminal:
            self._timers.cancel(FINISHES, *subject)
        elif pod.phase in ("", "Pending"):
            self._add(pod, now_ns + _annotated_ns(pod, START_DELAY, 0), STARTS)
        else:
            lasts_ns = _annotated_ns(pod, DURATION, -1)
            deadline_ns = self._deadline_ns(pod)
            if deadline_ns >= 0 and (lasts_ns < 0 or deadline_ns < lasts_ns):
                lasts_ns = deadline_ns
            if lasts_ns >= 0:
                began_ns = now_ns if pod.start_ns is None else pod.start_ns + fraction_ns
                self._add(pod, max(began_ns + lasts_ns, now_ns), FINISHES)

    def _deadline_ns(self, pod: Pod) -> int:
        """How long it may be active on its node; -1 is for ever."""
        written = (pod.manifest.get("spec") or {}).get("activeDeadlineSeconds")
        return -1 if written is None else int(written) * SECOND_NS

    def timer(self, what: str, namespace: str, name: str, uid: str) -> None:
        """A timer of ours has come; a kubelet that is not heard of does nothing, and looks again when it is back."""
        pod = self._world.pod(namespace, name)
        if pod is None or pod.uid != uid or not is_heard_of(self._world.node(pod.node_name)):
            return
        if what == TERMINATED:
            if pod.is_terminating:
                remove_pod(self._world, pod, "terminated")
        elif not pod.is_terminating and not pod.is_terminal:
            if what == STARTS:
                self._start(pod)
            else:
                self._finish(pod)

    def _start(self, pod: Pod) -> None:
        if pod.phase == "Running":
            return
        node = self._world.node(pod.node_name)
        rejected = None if node is None else rejection(pod, node, self._use)
        if rejected is not None:
            made_ns = pod.meta.creation_ns or 0
            if pod.meta.controller is not None and self._world.clock.now_ns < made_ns + SECOND_NS:
                # Its owner makes another one at once: without end, and in no time.
                self._add(pod, made_ns + SECOND_NS, STARTS)
            else:
                self._reject(pod, rejected)
            return
        unready = unready_claims(pod, self._world)
        if unready is not None:
            self._wait(pod, unready)
            return
        now = format_seconds(self._world.clock.now_ns)
        started = [{"type": name, "status": "True"} for name in ("Initialized", "ContainersReady", "Ready")]
        # Starting is what begins a duration: a delay does not count.
        status = self._world.status_with(pod.manifest, *started) | {"phase": "Running", "startTime": now}
        status["containerStatuses"] = [
            {
                "name": container.get("name", ""),
                "image": container.get("image", ""),
                "imageID": "",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now}},
                "lastState": {},
            }
            for container in pod.manifest["spec"].get("containers") or []
        ]
        self._world.patch_status(pod, status, "started")

    def _wait(self, pod: Pod, why: KubeletWait) -> None:
        """Leave a pod Pending, and say why once for each cause (a kubelet repeats its Event)."""
        self._unready[pod.namespace, pod.name] = pod
        if waits_on_its_node(pod.manifest) == why.message:
            return
        self._world.record_event(pod.manifest, "Warning", why.reason, "", why.message, "kubelet")
        names = [str(item.get("name", "")) for item in pod.manifest["spec"].get("containers") or []]
        said = ("ContainersNotReady", f"containers with unready status: [{' '.join(names)}]")
        unready = [condition(type_, False, *said) for type_ in ("ContainersReady", "Ready")]
        status = self._world.status_with(pod.manifest, *unready) | {"phase": "Pending"}
        waiting = {"reason": "ContainerCreating", "message": why.message}
        status["containerStatuses"] = [
            {"name": name, "ready": False, "started": False, "restartCount": 0, "state": {"waiting": waiting}}
            for name in names
        ]
        self._world.patch_status(pod, status, "waits on its node")

    def _reject(self, pod: Pod, why: KubeletRejection) -> None:
        """Source: pkg/kubelet/kubelet.go rejectPod, v1.34."""
        self._world.record_event(pod.manifest, "Warning", why.reason, "", why.message, "kubelet")
        kept = {
            name: value
            for name, value in (pod.manifest.get("status") or {}).items()
            if name in ("qosClass", "conditions")
        }
        status = {
            **kept,
            "phase": "Failed",
            "reason": why.reason,
            "message": f"Pod was rejected: {why.message}",
            "startTime": format_seconds(self._world.clock.now_ns),
        }
        self._world.patch_status(pod, status, "rejected by its kubelet")

    def _finish(self, pod: Pod) -> None:
        status: dict[str, Any] = dict(pod.manifest.get("status") or {})
        deadline_ns, lasts_ns = self._deadline_ns(pod), _annotated_ns(pod, DURATION, -1)
        too_long = deadline_ns >= 0 and (lasts_ns < 0 or deadline_ns < lasts_ns)
        if too_long:
            # Source: pkg/kubelet/active_deadline.go, v1.34
            said = "Pod was active on the node longer than the specified deadline"
            self._world.record_event(pod.manifest, "Normal", "DeadlineExceeded", "", said, "kubelet")
            status |= {"reason": "DeadlineExceeded", "message": said}
        failed = too_long or annotations_of(pod.manifest).get(ENDS_AS) == "Failed"
        self._world.patch_status(pod, _ended(self._world, status, failed), "finished")


def waits_on_its_node(manifest: Mapping[str, Any]) -> str:
    """What a pod's kubelet waits for before it starts the pod; empty where it does not.

    A real kubelet says it in Events alone; ours writes it into the waiting containers' statuses, too.
    """
    status = manifest.get("status") or {}
    if status.get("phase") != "Pending":
        return ""
    for item in status.get("containerStatuses") or ():
        waiting = (item.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") == "ContainerCreating":
            return str(waiting.get("message") or "")
    return ""


def grace_seconds(manifest: Mapping[str, Any], given: int | None) -> int:
    """How long a pod may take to end: as its deletion says, or else itself."""
    own = (manifest.get("spec") or {}).get("terminationGracePeriodSeconds") if given is None else given
    return DEFAULT_GRACE_S if own is None else min(int(own), _MAX_GRACE_S)


def delete_pod(world: World, pod: Pod, grace_period_s: int | None, reason: str | None) -> None:
    """Delete a pod as the API server does: at once where no kubelet is concerned, gracefully otherwise."""
    grace_s = grace_seconds(pod.manifest, grace_period_s)
    if not pod.node_name or pod.is_terminal or grace_s <= 0:
        remove_pod(world, pod, reason)
        return
    ends_ns = world.clock.now_ns + grace_s * SECOND_NS
    if pod.meta.deletion_ns is not None and pod.meta.deletion_ns <= ends_ns:
        return
    meta = {
        **pod.manifest["metadata"],
        "deletionTimestamp": format_seconds(ends_ns),
        "deletionGracePeriodSeconds": grace_s,
    }
    world.put_pod(pod, {**pod.manifest, "metadata": meta}, reason)


def remove_pod(world: World, pod: Pod, reason: str | None) -> None:
    """Remove a pod that has no more to wait for but its finalizers: where programs hold it, it ends and stays, marked.

    It is theirs to take the last one off, and that write deletes it. Its containers end as ones that heed the signal.
    """
    if not finalizers_of(pod.manifest):
        world.remove("Pod", pod.namespace, pod.name, reason)
        return
    now = format_seconds(world.clock.now_ns)
    meta, status = pod.manifest["metadata"], pod.manifest.get("status") or {}
    if not meta.get("deletionTimestamp") or meta.get("deletionGracePeriodSeconds"):
        meta = {**meta, "deletionTimestamp": now, "deletionGracePeriodSeconds": 0}
    if pod.node_name and not pod.is_terminal:
        status = _ended(world, status, False)
    marked = {**pod.manifest, "metadata": meta, **({"status": status} if status else {})}
    if marked != pod.manifest:
        world.put_pod(pod, marked, reason)


def _ended(world: World, status: Mapping[str, Any], failed: bool) -> dict[str, Any]:
    """A pod's status once its containers have ended."""
    ended = {
        "exitCode": 1 if failed else 0,
        "reason": "Error" if failed else "Completed",
        "finishedAt": format_seconds(world.clock.now_ns),
    }
    reason = "PodFailed" if failed else "PodCompleted"
    unready = [condition(type_, False, reason) for type_ in ("ContainersReady", "Ready")]
    return {
        **world.status_with({"status": status}, *unready),
        "phase": "Failed" if failed else "Succeeded",
        "containerStatuses": [
            {**item, "ready": False, "started": False, "state": {"terminated": ended}}
            for item in status.get("containerStatuses") or ()
        ],
    }


def _annotated_ns(pod: Pod, annotation: str, default_ns: int) -> int:
    said = annotations_of(pod.manifest).get(annotation)
    if said is None:
        return default_ns
    try:
        return duration_ns(str(said))
    except ValueError:
        # `never`; or something admission refuses, which is treated as if nothing were said.
        return default_ns


# ---- What a kubelet looks at before it starts a pod that was put on its node by whomever

ALL_ADDRESSES = "0.0.0.0"
NATIVE = ("pods", "cpu", "memory", "ephemeral-storage")


class KubeletRejection(NamedTuple):
    """Why a kubelet does not start a pod: as the pod's status says it."""

    reason: str
    message: str


class NodeUse:
    """What started pods use of each node, counted as they come and go; of a node first asked about, from the objects.

    Everything in it follows from the pods there are.
    """

    def __init__(self, pods: PodIndex) -> None:
        self._pods = pods
        self._used: dict[str, dict[str, int]] = {}

    def changed(self, old: Pod | None, new: Pod | None) -> None:
        """A pod changed."""
        if old is not None and _is_started(old):
            self._count(old, -1)
        if new is not None and _is_started(new):
            self._count(new, 1)

    def _count(self, pod: Pod, sign: int) -> None:
        used = self._used.get(pod.node_name)
        if used is not None:
            _count(used, pod, sign)

    def of(self, node_name: str) -> dict[str, int]:
        """Amounts by resource, and `pods`."""
        used = self._used.get(node_name)
        if used is None:
            used = self._used[node_name] = {}
            for pod in self._pods.on_node(node_name).values():
                if _is_started(pod):
                    _count(used, pod, 1)
        return used

    def started(self, node_name: str) -> list[Pod]:
        """Pods that were admitted and have not ended."""
        return [pod for pod in self._pods.on_node(node_name).values() if _is_started(pod)]


def _is_started(pod: Pod) -> bool:
    return pod.phase == "Running" and bool(pod.node_name)


def _count(used: dict[str, int], pod: Pod, sign: int) -> None:
    used["pods"] = used.get("pods", 0) + sign
    for name, amount in pod.requests.items():
        used[name] = used.get(name, 0) + sign * amount


def rejection(pod: Pod, node: Node, use: NodeUse) -> KubeletRejection | None:
    """Why the node's kubelet rejects the pod; the first reason of several, as upstream. None: it starts."""
    used, capacity, wanted = use.of(node.name), node.allocatable, {"pods": 1, **pod.requests}
    # A device that the node does not say it has is the scheduler's business alone.
    short = [
        name
        for name, amount in wanted.items()
        if amount
        and used.get(name, 0) + amount > capacity.get(name, 0)
        and (name in capacity or name in NATIVE)
    ]
    if short:
        name = min(short, key=lambda name: NATIVE.index(name) if name in NATIVE else len(NATIVE))
        said = f"requested: {wanted[name]}, used: {used.get(name, 0)}, capacity: {capacity.get(name, 0)}"
        return KubeletRejection(f"OutOf{name}", f"Node didn't have enough resource: {name}, {said}")
    failed = _failed_predicate(pod, node, use)
    return (
        None if failed is None else KubeletRejection(failed[0], f"Predicate {failed[0]} failed: {failed[1]}")
    )


class KubeletWait(NamedTuple):
    """Why a kubelet does not start a pod yet: the Event that says it."""

    reason: str
    message: str


def claims_of(pod: Pod) -> set[tuple[str, str]]:
    """(kind, name) of the claims the pod waits for on its node, those of templates as far as they are made."""
    names = {("PersistentVolumeClaim", claim) for _, claim in _volume_claims(pod)}
    return names | {("ResourceClaim", name) for _, name in _device_claims(pod) if name}


def unready_claims(pod: Pod, world: World) -> KubeletWait | None:
    """What the pod's volumes or devices lack; `spec.nodeName` passes by the scheduler, which would have seen to it."""
    if not pod.volumes and not pod.resource_claims:
        return None
    problems = [
        (volume, f"error processing PVC {pod.namespace}/{claim}: {problem}")
        for volume, claim in _volume_claims(pod)
        if (problem := _volume_problem(world, pod.namespace, claim))
    ]
    if problems:
        names = " ".join(sorted(volume for volume, _ in problems))
        said = "; ".join(problem for _, problem in problems)
        return KubeletWait(
            "FailedMount",
            f"Unable to attach or mount volumes: unmounted volumes=[{names}], unattached volumes=[], "
            f"failed to process volumes=[{names}]: {said}",
        )
    if world.release.gate("DynamicResourceAllocation"):
        for _, name in _device_claims(pod):
            problem = _device_problem(world, pod, name)
            if problem:
                said = f"Failed to prepare dynamic resources: prepare dynamic resources: {problem}"
                return KubeletWait("FailedPrepareDynamicResources", said)
    return None


def _volume_claims(pod: Pod) -> Iterator[tuple[str, str]]:
    for volume in pod.volumes:
        name = str(volume.get("name", ""))
        if volume.get("persistentVolumeClaim") is not None:
            yield name, str(volume["persistentVolumeClaim"].get("claimName", ""))
        elif volume.get("ephemeral") is not None:
            yield name, f"{pod.name}-{name}"


def _device_claims(pod: Pod) -> Iterator[tuple[str, str | None]]:
    """Reference and claim; "" where it is not made yet, None where none is needed."""
    made: dict[Any, str | None] = {}
    if pod.resource_claims:
        statuses = (pod.manifest.get("status") or {}).get("resourceClaimStatuses") or ()
        made = {status.get("name"): status.get("resourceClaimName") for status in statuses}
    for reference in pod.resource_claims:
        name = reference.get("resourceClaimName")
        yield str(reference.get("name")), name if name else made.get(reference.get("name"), "")


def _volume_problem(world: World, namespace: str, name: str) -> str:
    stored = world.get("PersistentVolumeClaim", namespace, name)
    if stored is None:
        return f'failed to fetch PVC from API server: persistentvolumeclaims "{name}" not found'
    claim: PersistentVolumeClaim = stored.typed
    return "" if claim.phase == "Bound" and claim.volume_name else "PVC is not bound"


def _device_problem(world: World, pod: Pod, name: str | None) -> str:
    if name is None:
        return ""
    if not name:
        return f'pod "{pod.namespace}/{pod.name}": ResourceClaim not created yet'
    stored = world.get("ResourceClaim", pod.namespace, name)
    if stored is None:
        return f'fetch ResourceClaim {name}: resourceclaims.resource.k8s.io "{name}" not found'
    status = stored.manifest.get("status") or {}
    if any(user.get("uid") == pod.uid for user in status.get("reservedFor") or ()):
        return ""
    uid = stored.manifest["metadata"].get("uid", "")
    return f"pod {pod.name} ({pod.uid}) is not allowed to use ResourceClaim {name} ({uid})"


def _failed_predicate(pod: Pod, node: Node, use: NodeUse) -> tuple[str, str] | None:
    if not pod.required_node_affinity.match(node.meta.labels, node.name):
        return "NodeAffinity", "node(s) didn't match Pod's node affinity/selector"
    if pod.host_ports and _takes(pod.host_ports, use.started(node.name)):
        return "NodePorts", "node(s) didn't have free ports for the requested pod ports"
    if any(taint.effect == "NoExecute" and not pod.tolerates(taint) for taint in node.taints):
        return "TaintToleration", "node(s) had taints that the pod didn't tolerate"
    return None


def _takes(ports: tuple[HostPort, ...], others: list[Pod]) -> bool:
    """Whether one of the ports is in use; an address of all of them meets every other."""
    for port in map(normal_port, ports):
        for taken in (normal_port(item) for pod in others for item in pod.host_ports):
            if (port.protocol, port.port) == (taken.protocol, taken.port) and (
                port.ip == taken.ip or ALL_ADDRESSES in (port.ip, taken.ip)
            ):
                return True
    return False


# ---- Resizing a pod in place: what is allocated when the resources of a running pod's containers change

PENDING = "PodResizePending"
RESIZED = ("cpu", "memory")
Manifest = Mapping[str, Any]


def resources_of(manifest: Manifest) -> dict[str, Any]:
    """Container -> its resources, as the spec has them."""
    return {
        str(item.get("name", "")): item.get("resources") or {}
        for item in (manifest.get("spec") or {}).get("containers") or ()
    }


def allocated_of(manifest: Manifest) -> dict[str, Any] | None:
    """Container -> the resources its kubelet gave it; None where its spec says that."""
    found = {
        str(item.get("name", "")): item["resources"]
        for item in (manifest.get("status") or {}).get("containerStatuses") or ()
        if item.get("resources") is not None
    }
    return found or None


def is_asked_for(old: Manifest, new: Manifest) -> bool:
    """Whether a running pod is asked to be of another size."""
    return old["spec"] is not new["spec"] and resources_of(old) != resources_of(new)


def is_deferred(pod: Pod) -> bool:
    """Whether a resize waits for room on the node."""
    condition = condition_of(pod.manifest, PENDING)
    return condition is not None and condition.get("reason") == "Deferred"


def resize(world: World, pod: Pod, before: Manifest, node: Node, use: NodeUse) -> None:
    """Give a pod what it asks for now, or say why not.

    Parameters
    ----------
    before : mapping
        Its manifest with what it has.
    """
    manifest = pod.manifest
    had = allocated_of(before) or resources_of(before)
    wanted = resources_of(manifest)
    why = _why_not(pod, had, node, use)
    status = dict(manifest.get("status") or {})
    conditions = [item for item in status.get("conditions") or () if item.get("type") != PENDING]
    status["conditions"] = conditions
    given = wanted if why is None else had
    if why is not None:
        pending = {**condition(PENDING, True, *why), "observedGeneration": generation_of(manifest)}
        earlier = condition_of(manifest, PENDING)
        status["conditions"] = conditions if earlier is None else [*conditions, earlier]
        status = world.status_with({"status": status}, pending)
    status["containerStatuses"] = [
        _with_resources(item, manifest, had, given) for item in status.get("containerStatuses") or ()
    ]
    if status != manifest.get("status"):
        world.put({**manifest, "status": status}, "resized" if why is None else "resize is pending")


def _why_not(pod: Pod, had: Mapping[str, Any], node: Node, use: NodeUse) -> tuple[str, str] | None:
    """(reason, message) of the refusal."""
    requests = _requests(pod.manifest, resources_of(pod.manifest))
    held = _requests(pod.manifest, had)
    used = use.of(node.name)
    for name in RESIZED:
        amount, capacity = requests.get(name, 0), node.allocatable.get(name, 0)
        if amount <= held.get(name, 0):
            continue
        if amount > capacity:
            said = f"Node didn't have enough capacity: {name}, requested: {amount}, capacity: {capacity}"
            return "Infeasible", said
        others = used.get(name, 0) - pod.requests.get(name, 0)
        if others + amount > capacity:
            said = f"requested: {amount}, used: {others}, capacity: {capacity}"
            return "Deferred", f"Node didn't have enough resource: {name}, {said}"
    return None


def _requests(manifest: Manifest, resources: Mapping[str, Any]) -> Mapping[str, int]:
    """What a pod of these resources requests, whatever its status says."""
    spec = manifest["spec"]
    containers = [
        {**item, "resources": resources.get(str(item.get("name", "")), {})}
        for item in spec.get("containers") or ()
    ]
    return pod_from({**manifest, "spec": {**spec, "containers": containers}, "status": {}}).requests


def _with_resources(
    item: Manifest, manifest: Manifest, had: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """A container's status with what it has from now on; one whose policy says so is started anew for that."""
    name = str(item.get("name", ""))
    result = {**item, "resources": given.get(name, {})}
    if requests := (given.get(name) or {}).get("requests"):
        result["allocatedResources"] = dict(requests)
    if given.get(name) != had.get(name) and _restarts(
        manifest, name, had.get(name) or {}, given.get(name) or {}
    ):
        result["restartCount"] = int(item.get("restartCount") or 0) + 1
    return result


def _restarts(manifest: Manifest, name: str, had: Manifest, given: Manifest) -> bool:
    container = next(item for item in manifest["spec"]["containers"] if item.get("name") == name)
    for policy in container.get("resizePolicy") or ():
        resource = policy.get("resourceName")
        changed = any(
            (had.get(key) or {}).get(resource) != (given.get(key) or {}).get(resource)
            for key in ("requests", "limits")
        )
        if changed and policy.get("restartPolicy") == "RestartContainer":
            return True
    return False
