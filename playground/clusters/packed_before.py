"""Packed columns (`packed`) as sites before version 3 of them wrote them: deflate with a dictionary.

What deflate cannot make small are uids: in version 2 each is a mark and its 16 bytes.
"""

import re
import zlib
from binascii import hexlify
from typing import Final

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

_MARK_OF_1: Final = b"\x01"
_MARK_OF_2: Final = b"\x02"
_SHORT_UID: Final = re.compile(rb"\xff(.{16})", re.DOTALL)  # that byte is in no UTF-8
_WINDOW_BITS: Final = -13


def text_of(data: bytes) -> bytes:
    """The JSON text.

    Raises
    ------
    ValueError
        The bytes are of another version.
    """
    if data[:1] not in (_MARK_OF_1, _MARK_OF_2):
        raise ValueError(f"a packed column of version {data[0]} cannot be read")
    text = zlib.decompressobj(_WINDOW_BITS, _DICTIONARY).decompress(data[1:])
    return text if data[:1] == _MARK_OF_1 else _SHORT_UID.sub(_long, text)


def _long(uid: re.Match[bytes]) -> bytes:
    digits = hexlify(uid[1])
    return b'"%b-%b-%b-%b-%b"' % (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
