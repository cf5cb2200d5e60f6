"""JSON columns that are stored small: a version byte, then deflate with a dictionary of what most of them are like.

A log entry repeats a whole manifest; compressed by itself it keeps half of its size, with the dictionary a twelfth.
What deflate cannot make small are uids, most of what is left: from version 2 on each is a mark and its 16 bytes.
Columns written before this was so hold version 1, without that, or plain JSON text; both are read as they are.
"""

import json
import re
import zlib
from binascii import hexlify, unhexlify
from typing import TYPE_CHECKING, Any, Final

from django.db import models

from playground.engine.compressed import from_json, to_json

VERSION: Final = 2

# Part of the stored format (of version 1, too): a change of a single byte needs a new VERSION beside this one.
_DICTIONARY: Final = b"""\
{"manifest":{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web-","namespace":"default",\
"annotations":{"deployment.kubernetes.io/desired-replicas":"1","deployment.kubernetes.io/revision":"1"},\
"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"","controller":true,\
"blockOwnerDeletion":true}]},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"w"}},"template":{"metadata":\
{"labels":{"app":"w"}},"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":\
{"nodeSelectorTerms":[{"matchExpressions":[{"key":"","operator":"In","values":["a"]}]}]}},"podAntiAffinity":{\
"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"labelSelector":{"matchLabels":{\
"app":"a"}},"topologyKey":"kubernetes.io/hostname"}}]}},"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":\
"topology.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"a"}}}]}}},\
"status":{"replicas":1,"fullyLabeledReplicas":1,"observedGeneration":1}},"reason":"status"}
{"read":11,"calls":[["idle",0,1],["idle",0,64]],"cycles":3,"clock_ns":1795363436000000000,"stop":"batch"}
{"manifest":{"apiVersion":"v1","kind":"Node","metadata":{"name":"n0","labels":{"topology.kubernetes.io/zone":"z0",\
"kubernetes.io/hostname":"n0"},"uid":"","creationTimestamp":"2026-11-22T16:03:56Z","resourceVersion":"7"},"spec":{},\
"status":{"allocatable":{"cpu":"32","memory":"128Gi","pods":"110"},"capacity":{"cpu":"32","memory":"128Gi",\
"pods":"110"}}}}
{"manifest":{"apiVersion":"v1","kind":"Event","metadata":{"name":"p0.0000000000000001","namespace":"default",\
"creationTimestamp":"2026-11-22T16:03:56Z","uid":"","resourceVersion":"14"},"involvedObject":{"apiVersion":"v1",\
"kind":"Pod","namespace":"default","name":"p0","uid":""},"type":"Warning","reason":"FailedScheduling","action":\
"Scheduling","message":"0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 \
nodes are available: 2 Preemption is not helpful for scheduling.","type":"Normal","reason":"Scheduled","action":\
"Binding","message":"Successfully assigned default/p0 to n1","firstTimestamp":"2026-11-22T16:03:56Z",\
"lastTimestamp":"2026-11-22T16:03:56Z","eventTime":"2026-11-22T16:03:56.000000Z","count":1,"reportingComponent":\
"default-scheduler","reportingInstance":"default-scheduler","source":{"component":"default-scheduler"}},"reason":""}
{"manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"web-","name":"p0","namespace":"default",\
"labels":{"app":"a0","pod-template-hash":""},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":\
"web-","uid":"","controller":true,"blockOwnerDeletion":true}],"uid":"","creationTimestamp":"2026-11-22T16:03:56Z",\
"generation":1,"resourceVersion":"15"},"spec":{"dnsPolicy":"ClusterFirst","enableServiceLinks":true,"restartPolicy":\
"Always","schedulerName":"default-scheduler","terminationGracePeriodSeconds":30,"containers":[{"imagePullPolicy":\
"Always","terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","name":"c","image":"i",\
"resources":{"requests":{"cpu":"100m","memory":"128Mi"}}}],"securityContext":{},"priority":0,"preemptionPolicy":\
"PreemptLowerPriority","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",\
"tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute",\
"tolerationSeconds":300}],"nodeName":"n1"},"status":{"phase":"Pending","conditions":[{"type":"PodScheduled",\
"status":"True","lastTransitionTime":"2026-11-22T16:03:56Z"}]}},"reason":"bound"}
,"status":{"phase":"Running","conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":\
"2026-11-22T16:03:56Z"},{"type":"Initialized","status":"True","lastTransitionTime":"2026-11-22T16:03:56Z"},{"type":\
"ContainersReady","status":"True","lastTransitionTime":"2026-11-22T16:03:56Z"},{"type":"Ready","status":"True",\
"lastTransitionTime":"2026-11-22T16:03:56Z"}],"startTime":"2026-11-22T16:03:56Z","containerStatuses":[{"name":"c",\
"image":"i","imageID":"","ready":true,"started":true,"restartCount":0,"state":{"running":{"startedAt":\
"2026-11-22T16:03:56Z"}},"lastState":{}}]}},"reason":"started"}
"""

_MARK: Final = bytes([VERSION])
_MARK_OF_1: Final = b"\x01"
_UID: Final = re.compile(rb'"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"')
_UID_MARK: Final = b"\xff"  # in no JSON text: it is in no UTF-8
_SHORT_UID: Final = re.compile(_UID_MARK + rb"(.{16})", re.DOTALL)
_OF_TEXT: Final = (b"{", b"[", b'"', b"n", b"t", b"f")
# A small window, which holds the dictionary and one value: each of the copies below is made of that much memory.
_WINDOW_BITS: Final = -13
_BEGUN: Final = zlib.compressobj(6, zlib.DEFLATED, _WINDOW_BITS, 6, zlib.Z_DEFAULT_STRATEGY, _DICTIONARY)


class Packed(bytes):
    """A JSON value as it is stored already; to be written to the database only."""


def pack(value: Any) -> Packed:
    """A JSON value as it is stored."""
    return pack_text(to_json(value))


def pack_text(text: bytes) -> Packed:
    """The same of JSON text, for values whose text is needed more than once."""
    packing = _BEGUN.copy()
    return Packed(_MARK + packing.compress(_UID.sub(_short, text)) + packing.flush())


def _short(uid: re.Match[bytes]) -> bytes:
    return _UID_MARK + unhexlify(uid[0][1:-1].replace(b"-", b""))


def _long(uid: re.Match[bytes]) -> bytes:
    digits = hexlify(uid[1])
    return b'"%b-%b-%b-%b-%b"' % (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])


def unpack(data: bytes | str) -> Any:
    """What `pack` was given, or what an older site wrote as JSON text.

    Raises
    ------
    ValueError
        The bytes are of another version.
    """
    if isinstance(data, str) or data[:1] in _OF_TEXT:
        return json.loads(data)
    return from_json(text_of(data))


def text_of(data: bytes | str) -> bytes:
    """JSON text of what `pack` was given, which may have escapes where an older site wrote it.

    Raises
    ------
    ValueError
        The bytes are of another version.
    """
    if isinstance(data, str):
        return data.encode()
    if data[:1] in _OF_TEXT:
        return data
    if data[:1] not in (_MARK, _MARK_OF_1):
        raise ValueError(f"a packed column of version {data[0]} cannot be read")
    text = zlib.decompressobj(_WINDOW_BITS, _DICTIONARY).decompress(data[1:])
    return text if data[:1] == _MARK_OF_1 else _SHORT_UID.sub(_long, text)


if TYPE_CHECKING:
    _BytesOfAny = models.BinaryField[Any, Any]
    _BytesOfText = models.BinaryField[str, str]
else:
    _BytesOfAny = _BytesOfText = models.BinaryField  # Django's own fields take no types while they run.


class PackedJSONField(_BytesOfAny):
    """A JSON value that is never searched by the database."""

    # What queries give and take, for the plugin of mypy.
    _pyi_private_get_type: Any
    _pyi_private_set_type: Any

    description = "JSON, stored compressed"
    empty_values = [None]

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        if value is None:
            return None
        return connection.Database.Binary(value if isinstance(value, Packed) else pack(value))

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        if value is None:
            return None
        return unpack(value if isinstance(value, str) else bytes(value))

    def value_to_string(self, obj: models.Model) -> str:
        return json.dumps(self.value_from_object(obj))

    def to_python(self, value: Any) -> Any:
        return value


class HexField(_BytesOfText):
    """Hexadecimal digits, stored as the bytes they are; text, which older sites wrote, is read as it is."""

    _pyi_private_get_type: str  # type: ignore[assignment]  # of bytes, which these are not to those who read them
    _pyi_private_set_type: str

    description = "Hexadecimal digits"

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> str | None:
        return value if value is None or isinstance(value, str) else bytes(value).hex()

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return super().get_db_prep_value(_bytes(value), connection, prepared)

    def value_to_string(self, obj: models.Model) -> str:
        return str(self.value_from_object(obj))

    def to_python(self, value: Any) -> Any:
        return value


def _bytes(value: Any) -> Any:
    return bytes.fromhex(value) if isinstance(value, str) else value
