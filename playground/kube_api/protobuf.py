"""Protobuf bodies: kubectl from 1.32 on sends a few commands so, and does not fall back to JSON.

Only what those commands send is decoded: the messages below, by their field numbers. A field we do not know is
refused rather than dropped.

Source: generated.proto of k8s.io/api and k8s.io/apimachinery, v1.34; the envelope:
staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf/protobuf.go
"""

from __future__ import annotations

import base64
import datetime
from collections.abc import Iterator, Mapping
from typing import Any, Final

from playground.kube_api.status import Refusal

MAGIC: Final = b"k8s\x00"
MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAX_DEPTH: Final = 64

# Message -> field number -> (name, type). "[]" = repeated; "{}" = a map from string.
MESSAGES: Final[Mapping[str, Mapping[int, tuple[str, str]]]] = {
    "ObjectMeta": {
        1: ("name", "string"),
        2: ("generateName", "string"),
        3: ("namespace", "string"),
        4: ("selfLink", "string"),
        5: ("uid", "string"),
        6: ("resourceVersion", "string"),
        7: ("generation", "int"),
        8: ("creationTimestamp", "Time"),
        9: ("deletionTimestamp", "Time"),
        10: ("deletionGracePeriodSeconds", "int"),
        11: ("labels", "{}string"),
        12: ("annotations", "{}string"),
        13: ("ownerReferences", "[]OwnerReference"),
        14: ("finalizers", "[]string"),
    },
    "OwnerReference": {
        1: ("kind", "string"),
        3: ("name", "string"),
        4: ("uid", "string"),
        5: ("apiVersion", "string"),
        6: ("controller", "bool"),
        7: ("blockOwnerDeletion", "bool"),
    },
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "int"),
        2: ("preconditions", "Preconditions"),
        3: ("orphanDependents", "bool"),
        4: ("propagationPolicy", "string"),
        5: ("dryRun", "[]string"),
    },
    "Preconditions": {1: ("uid", "string"), 2: ("resourceVersion", "string")},
    "LabelSelector": {1: ("matchLabels", "{}string"), 2: ("matchExpressions", "[]LabelSelectorRequirement")},
    "LabelSelectorRequirement": {1: ("key", "string"), 2: ("operator", "string"), 3: ("values", "[]string")},
    "Namespace": {
        1: ("metadata", "ObjectMeta"),
        2: ("spec", "NamespaceSpec"),
        3: ("status", "NamespaceStatus"),
    },
    "NamespaceSpec": {1: ("finalizers", "[]string")},
    "NamespaceStatus": {1: ("phase", "string")},
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{}string"),
        3: ("binaryData", "{}bytes"),
        4: ("immutable", "bool"),
    },
    "Secret": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{}bytes"),
        3: ("type", "string"),
        4: ("stringData", "{}string"),
        5: ("immutable", "bool"),
    },
    "ServiceAccount": {
        1: ("metadata", "ObjectMeta"),
        2: ("secrets", "[]ObjectReference"),
        3: ("imagePullSecrets", "[]LocalObjectReference"),
        4: ("automountServiceAccountToken", "bool"),
    },
    "ObjectReference": {
        1: ("kind", "string"),
        2: ("namespace", "string"),
        3: ("name", "string"),
        4: ("uid", "string"),
        5: ("apiVersion", "string"),
        6: ("resourceVersion", "string"),
        7: ("fieldPath", "string"),
    },
    "LocalObjectReference": {1: ("name", "string")},
    "PriorityClass": {
        1: ("metadata", "ObjectMeta"),
        2: ("value", "int"),
        3: ("globalDefault", "bool"),
        4: ("description", "string"),
        5: ("preemptionPolicy", "string"),
    },
    "PodDisruptionBudget": {
        1: ("metadata", "ObjectMeta"),
        2: ("spec", "PodDisruptionBudgetSpec"),
        3: ("status", "Ignored"),
    },
    "PodDisruptionBudgetSpec": {
        1: ("minAvailable", "IntOrString"),
        2: ("selector", "LabelSelector"),
        3: ("maxUnavailable", "IntOrString"),
        4: ("unhealthyPodEvictionPolicy", "string"),
    },
    "Eviction": {1: ("metadata", "ObjectMeta"), 2: ("deleteOptions", "DeleteOptions")},
    "Binding": {1: ("metadata", "ObjectMeta"), 2: ("target", "ObjectReference")},
    "Scale": {1: ("metadata", "ObjectMeta"), 2: ("spec", "ScaleSpec"), 3: ("status", "Ignored")},
    "ScaleSpec": {1: ("replicas", "int")},
    "Service": {1: ("metadata", "ObjectMeta"), 2: ("spec", "ServiceSpec"), 3: ("status", "Ignored")},
    "ServiceSpec": {
        1: ("ports", "[]ServicePort"),
        2: ("selector", "{}string"),
        3: ("clusterIP", "string"),
        4: ("type", "string"),
        5: ("externalIPs", "[]string"),
        7: ("sessionAffinity", "string"),
        10: ("externalName", "string"),
        13: ("publishNotReadyAddresses", "bool"),
        18: ("clusterIPs", "[]string"),
        19: ("ipFamilies", "[]string"),
    },
    "ServicePort": {
        1: ("name", "string"),
        2: ("protocol", "string"),
        3: ("port", "int"),
        4: ("targetPort", "IntOrString"),
        5: ("nodePort", "int"),
        6: ("appProtocol", "string"),
    },
    "Deployment": {1: ("metadata", "ObjectMeta"), 2: ("spec", "DeploymentSpec"), 3: ("status", "Ignored")},
    "DeploymentSpec": {
        1: ("replicas", "int"),
        2: ("selector", "LabelSelector"),
        3: ("template", "PodTemplateSpec"),
        4: ("strategy", "DeploymentStrategy"),
        5: ("minReadySeconds", "int"),
        6: ("revisionHistoryLimit", "int"),
        7: ("paused", "bool"),
        9: ("progressDeadlineSeconds", "int"),
    },
    "DeploymentStrategy": {1: ("type", "string"), 2: ("rollingUpdate", "RollingUpdate")},
    "RollingUpdate": {1: ("maxUnavailable", "IntOrString"), 2: ("maxSurge", "IntOrString")},
    "Job": {1: ("metadata", "ObjectMeta"), 2: ("spec", "JobSpec"), 3: ("status", "Ignored")},
    "JobSpec": {
        1: ("parallelism", "int"),
        2: ("completions", "int"),
        3: ("activeDeadlineSeconds", "int"),
        4: ("selector", "LabelSelector"),
        5: ("manualSelector", "bool"),
        6: ("template", "PodTemplateSpec"),
        7: ("backoffLimit", "int"),
        8: ("ttlSecondsAfterFinished", "int"),
        9: ("completionMode", "string"),
        10: ("suspend", "bool"),
    },
    "PodTemplateSpec": {1: ("metadata", "ObjectMeta"), 2: ("spec", "PodSpec")},
    "PodSpec": {
        2: ("containers", "[]Container"),
        3: ("restartPolicy", "string"),
        4: ("terminationGracePeriodSeconds", "int"),
        5: ("activeDeadlineSeconds", "int"),
        6: ("dnsPolicy", "string"),
        7: ("nodeSelector", "{}string"),
        8: ("serviceAccountName", "string"),
        9: ("serviceAccount", "string"),
        10: ("nodeName", "string"),
        11: ("hostNetwork", "bool"),
        12: ("hostPID", "bool"),
        13: ("hostIPC", "bool"),
        14: ("securityContext", "Empty"),
        16: ("hostname", "string"),
        17: ("subdomain", "string"),
        19: ("schedulerName", "string"),
        20: ("initContainers", "[]Container"),
        24: ("priorityClassName", "string"),
        25: ("priority", "int"),
    },
    "Container": {
        1: ("name", "string"),
        2: ("image", "string"),
        3: ("command", "[]string"),
        4: ("args", "[]string"),
        5: ("workingDir", "string"),
        6: ("ports", "[]ContainerPort"),
        7: ("env", "[]EnvVar"),
        8: ("resources", "ResourceRequirements"),
        13: ("terminationMessagePath", "string"),
        14: ("imagePullPolicy", "string"),
        16: ("stdin", "bool"),
        17: ("stdinOnce", "bool"),
        18: ("tty", "bool"),
        20: ("terminationMessagePolicy", "string"),
    },
    "ContainerPort": {
        1: ("name", "string"),
        2: ("hostPort", "int"),
        3: ("containerPort", "int"),
        4: ("protocol", "string"),
        5: ("hostIP", "string"),
    },
    "EnvVar": {1: ("name", "string"), 2: ("value", "string")},
    "ResourceRequirements": {1: ("limits", "{}Quantity"), 2: ("requests", "{}Quantity")},
    "SelfSubjectAccessReview": {
        1: ("metadata", "ObjectMeta"),
        2: ("spec", "SelfSubjectAccessReviewSpec"),
        3: ("status", "Ignored"),
    },
    "SelfSubjectAccessReviewSpec": {
        1: ("resourceAttributes", "ResourceAttributes"),
        2: ("nonResourceAttributes", "NonResourceAttributes"),
    },
    "ResourceAttributes": {
        1: ("namespace", "string"),
        2: ("verb", "string"),
        3: ("group", "string"),
        4: ("version", "string"),
        5: ("resource", "string"),
        6: ("subresource", "string"),
        7: ("name", "string"),
    },
    "NonResourceAttributes": {1: ("path", "string"), 2: ("verb", "string")},
    "SelfSubjectRulesReview": {
        1: ("metadata", "ObjectMeta"),
        2: ("spec", "SelfSubjectRulesReviewSpec"),
        3: ("status", "Ignored"),
    },
    "SelfSubjectRulesReviewSpec": {1: ("namespace", "string")},
    "SelfSubjectReview": {1: ("metadata", "ObjectMeta"), 2: ("status", "Ignored")},
    "Ignored": {},
    "Empty": {},
}
_MEANT_WHEN_EMPTY: Final = ("LabelSelector",)
# Go writes these when they are zero, too; in JSON they are left out then.
_NOT_MEANT_WHEN_ZERO: Final = frozenset(
    (
        "generation",
        "globalDefault",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostPort",
        "minReadySeconds",
        "nodePort",
        "paused",
        "publishNotReadyAddresses",
        "stdin",
        "stdinOnce",
        "tty",
    )
)


def is_protobuf(body: bytes) -> bool:
    """Whether a body says that it is one."""
    return body.startswith(MAGIC)


def decode(body: bytes) -> dict[str, Any]:
    """An object of an envelope: magic, then Unknown {typeMeta, raw}.

    Raises
    ------
    Refusal
        BadRequest (not readable) or UnsupportedMediaType (a kind or field nobody needed so far).
    """
    if not is_protobuf(body):
        raise Refusal("BadRequest", "the body does not begin as a Kubernetes protobuf does")
    api_version = kind = ""
    raw = b""
    for number, value in _fields(body[len(MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            for inner, text in _fields(value):
                if inner == 1 and isinstance(text, bytes):
                    api_version = _text(text)
                elif inner == 2 and isinstance(text, bytes):
                    kind = _text(text)
        elif number == 2 and isinstance(value, bytes):
            raw = value
    if kind not in MESSAGES:
        raise Refusal(
            "UnsupportedMediaType",
            f'a {kind or "nameless kind"} in protobuf cannot be read here: use "kubectl create -f" or'
            ' "kubectl apply -f", which send JSON',
        )
    return {"apiVersion": api_version, "kind": kind} | _message(kind, raw, kind, 0)


def _message(name: str, data: bytes, path: str, depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise Refusal("BadRequest", f"{path}: nested deeper than {MAX_DEPTH} levels")
    known = MESSAGES[name]
    result: dict[str, Any] = {}
    for number, value in _fields(data):
        if number not in known:
            if value in (b"", 0) or name == "Ignored":
                continue
            raise Refusal(
                "UnsupportedMediaType",
                f"{path}: field {number} of {name} in protobuf cannot be read here; send JSON",
            )
        key, kind = known[number]
        here = f"{path}.{key}"
        if kind.startswith("[]"):
            result.setdefault(key, []).append(_value(kind[2:], value, here, depth))
        elif kind.startswith("{}"):
            entry = dict(_fields(_bytes(value, here)))
            result.setdefault(key, {})[_text(_bytes(entry.get(1, b""), here))] = _value(
                kind[2:], entry.get(2, b""), here, depth
            )
        else:
            result[key] = _value(kind, value, here, depth)
    kinds = dict(known.values())
    return {key: value for key, value in result.items() if _is_meant(key, kinds[key], value)}


def _is_meant(key: str, kind: str, value: Any) -> bool:
    """Whether somebody said this, or Go wrote a field that nobody set."""
    if value in ("", None) or (value == {} and kind not in _MEANT_WHEN_EMPTY):
        return False
    return bool(value) or isinstance(value, dict) or key not in _NOT_MEANT_WHEN_ZERO


def _value(kind: str, value: int | bytes, path: str, depth: int) -> Any:
    match kind:
        case "string":
            return _text(_bytes(value, path))
        case "bytes":
            return base64.b64encode(_bytes(value, path)).decode()
        case "int":
            return _signed(_number(value, path))
        case "bool":
            return bool(_number(value, path))
        case "Quantity":
            return _text(_bytes(dict(_fields(_bytes(value, path))).get(1, b""), path))
        case "Time":
            fields = dict(_fields(_bytes(value, path)))
            return _time(_signed(_number(fields[1], path))) if 1 in fields else None
        case "IntOrString":
            fields = dict(_fields(_bytes(value, path)))
            if fields.get(1):
                return _text(_bytes(fields.get(3, b""), path))
            return _signed(_number(fields.get(2, 0), path))
    return _message(kind, _bytes(value, path), path, depth + 1)


def _time(seconds: int) -> str | None:
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, OSError, ValueError):
        return None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and raw value of each field: an int of a varint, the bytes of everything else."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire == 2:
            size, position = _varint(data, position)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise Refusal("BadRequest", "the protobuf body cannot be read")
        if position + size > len(data):
            raise Refusal("BadRequest", "the protobuf body ends in the middle of a field")
        yield number, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        result |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if not byte & 0x80:
            return result & (2**64 - 1), position
    raise Refusal("BadRequest", "the protobuf body ends in the middle of a number")


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _number(value: int | bytes, path: str) -> int:
    if not isinstance(value, int):
        raise Refusal("BadRequest", f"{path}: a number was expected in the protobuf body")
    return value


def _bytes(value: int | bytes, path: str) -> bytes:
    if not isinstance(value, bytes):
        raise Refusal("BadRequest", f"{path}: text was expected in the protobuf body")
    return value


def _text(value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise Refusal("BadRequest", "the protobuf body holds text that is not UTF-8") from None
    if "\0" in text:
        raise Refusal("BadRequest", "the protobuf body holds text with the character U+0000")
    return text
