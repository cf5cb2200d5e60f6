"""How lists of the kinds we hold merge: by which key, as a set, or as a whole.

Two rules read this table. Strategic merge knows one key a list, server-side apply may need several (a container
port is its number and protocol). Lists that are not here are replaced as a whole, tolerations and taints too.

Source: the patchMergeKey, patchStrategy and listMapKey tags in staging/src/k8s.io/api, v1.34
"""

from __future__ import annotations

from typing import Final

_KEYED: Final[dict[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "schedulingGates": ("name",),
    "resourceClaims": ("name",),
    "env": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "conditions": ("type",),
    "addresses": ("type",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "hostIPs": ("ip",),
    "secrets": ("name",),
    "drivers": ("name",),
    "resourceClaimStatuses": ("name",),
    "reservedFor": ("uid",),
    "podGroupTemplates": ("name",),
}
_PORTS: Final = {True: ("port", "protocol"), False: ("containerPort", "protocol")}
_SETS: Final = ("finalizers", "podCIDRs")
DEFAULTS: Final = {"protocol": "TCP", "name": ""}
"""What a key of an item is when the item does not say."""


def keys_of(path: tuple[str, ...]) -> tuple[str, ...]:
    """The keys by which items of the list at a path are the same item; empty = no such keys.

    Parameters
    ----------
    path
        Field names from the root of the object, list positions left out.
    """
    if not path:
        return ()
    if path[-1] == "ports":
        return _PORTS[path == ("spec", "ports")]
    return _KEYED.get(path[-1], ())


def merge_key_of(path: tuple[str, ...]) -> str:
    """The one key of strategic merge; empty = the list is replaced."""
    keys = keys_of(path)
    return keys[0] if keys else ""


def is_set(path: tuple[str, ...]) -> bool:
    """Whether a list of plain values merges as a set."""
    return bool(path) and path[-1] in _SETS
