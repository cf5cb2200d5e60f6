"""Checkpoints and log entries of which little is read: the rest stays JSON text."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from playground.engine.compressed import decompress, from_json
from playground.engine.drive import CHECKPOINT_FORMAT, CheckpointError, checkpoint_document
from scheduler_core.cluster.pod_table import NO_START_NS
from scheduler_core.objects.fields import parse_time_ns
from scheduler_core.objects.pod import TERMINAL_PHASES, Pod
from scheduler_core.sim.manifests import TextColumn, Texts
from scheduler_core.sim.past import PodThen, like_of, waiting


class _Objects(msgspec.Struct):
    form: list[int]
    metadata: list[int | None]
    spec: list[int | None]
    status: list[int | None]
    nodeName: list[str | None]
    name: list[str | None]
    uid: list[str | None]
    creationTimestamp: msgspec.Raw
    resourceVersion: msgspec.Raw


class _Manifests(msgspec.Struct):
    forms: list[msgspec.Raw]
    metadata: list[msgspec.Raw]
    specs: list[msgspec.Raw]
    statuses: list[msgspec.Raw]
    objects: _Objects


class _World(msgspec.Struct):
    manifests: _Manifests


class _Simulation(msgspec.Struct):
    """What `Past` reads of one."""

    version: int
    nowNs: int
    config: Any
    options: dict[str, Any]
    randomness: dict[str, Any]
    world: _World
    cycle: int
    startIndex: int
    nodeOrder: list[str]
    podOrder: list[int | str]
    plugins: dict[str, Any]
    release: Any = None
    assumed: Any = None
    awaited: Any = None
    expired: Any = None
    heldPods: Any = None
    nominations: Any = None
    preemptions: Any = None
    waiting: Any = None
    bindings: Any = None
    untold: Any = None


class _Checkpoint(msgspec.Struct):
    format: int
    readSeq: int
    simulation: _Simulation


class _Metadata(msgspec.Struct, gc=False):
    uid: str
    labels: dict[str, str] = {}
    deletionTimestamp: str | None = None


class _ContainerStatus(msgspec.Struct, gc=False):
    name: str = ""
    resources: Any = msgspec.UNSET


class _Status(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""
    startTime: str | None = None
    containerStatuses: list[_ContainerStatus] | None = None
    initContainerStatuses: list[_ContainerStatus] | None = None

    @property
    def says_nothing_of_requests(self) -> bool:
        """As `scheduler_core.objects.pod.says_nothing_of_requests`."""
        told = (*(self.containerStatuses or ()), *(self.initContainerStatuses or ()))
        return all(container.resources is msgspec.UNSET for container in told)


class _Spec(msgspec.Struct, gc=False):
    nodeName: str


class _Deletion(msgspec.Struct):
    gone: bool = True


class _Pod(msgspec.Struct, gc=False):
    metadata: _Metadata
    spec: msgspec.Raw
    status: _Status = _Status()


class _Write(msgspec.Struct, gc=False):
    manifest: _Pod


_PARTS: Final = ("forms", "metadata", "specs", "statuses")
_CHECKPOINT: Final = msgspec.json.Decoder(_Checkpoint)
_WRITE: Final = msgspec.json.Decoder(_Write)
_SPEC: Final = msgspec.json.Decoder(_Spec)
_DELETION: Final = msgspec.json.Decoder(_Deletion)


def past_document(data: bytes) -> tuple[int, dict[str, Any]]:
    """Of what `Engine.checkpoint` wrote: ``readSeq``, and ``simulation`` with the parts of its objects as texts.

    Raises
    ------
    CheckpointError
        If the format is another one.
    """
    try:
        document = _CHECKPOINT.decode(decompress(data))
    except (msgspec.DecodeError, UnicodeDecodeError):  # half of a surrogate pair
        whole = checkpoint_document(data)
        return whole["readSeq"], whole["simulation"]
    if document.format != CHECKPOINT_FORMAT:
        raise CheckpointError(f"checkpoint format {document.format!r} is not {CHECKPOINT_FORMAT}")
    simulation = msgspec.structs.asdict(document.simulation)
    packed = document.simulation.world.manifests
    parts = {part: Texts([bytes(text) for text in getattr(packed, part)], from_json) for part in _PARTS}
    objects = {
        name: TextColumn(bytes(column), from_json) if isinstance(column, msgspec.Raw) else column
        for name, column in msgspec.structs.asdict(packed.objects).items()
    }
    simulation["world"] = {"manifests": {**parts, "objects": objects}}
    return document.readSeq, simulation


def is_gone(text: bytes) -> bool:
    """Whether the object of a deletion is gone; a pod that still terminates is not."""
    try:
        return _DELETION.decode(text).gone
    except (msgspec.DecodeError, UnicodeDecodeError):  # half of a surrogate pair, escaped
        return bool(from_json(text).get("gone", True))


def pod_then(text: bytes, namespace: str, name: str, read: Callable[[], Pod]) -> PodThen | None:
    """The pod a log entry tells of; None where its manifest has to be read for that.

    Parameters
    ----------
    text
        The entry's payload.
    namespace, name
        The pod's.
    read
        Reads the manifest.
    """
    # Of groups more matters than their pods; a nominated pod counts where it does not stand.
    if b'"schedulingGroup"' in text:
        return None
    if b'"nodeName"' not in text:
        return None if b'"nominatedNodeName"' in text else waiting(namespace, name, read)
    try:
        pod = _WRITE.decode(text).manifest
        node_name = _SPEC.decode(pod.spec).nodeName
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    spec, meta, status = bytes(pod.spec), pod.metadata, pod.status
    before, standing, after = spec.partition(b'"nodeName":"%b"' % node_name.encode())
    # A pod that is being resized has its requests from its status.
    if not node_name or not standing or b'"nodeName"' in after or not status.says_nothing_of_requests:
        return None
    return PodThen(
        namespace,
        name,
        meta.uid,
        node_name,
        like_of(namespace, b'%b"nodeName":null%b' % (before, after)),
        tuple(sorted(meta.labels.items())),
        NO_START_NS if status.startTime is None else parse_time_ns(status.startTime),
        meta.deletionTimestamp is not None,
        status.phase in TERMINAL_PHASES,
        read,
    )
