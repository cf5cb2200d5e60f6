"""Kinds Kubernetes has in versions that are not served here, and what to say of names that are no kind's."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

from playground.clusters import kinds

_REMOVED: Final[dict[str, tuple[str, ...]]] = {
    # Gone since v1.16, and what only stands in requests.
    "authentication.k8s.io": ("TokenRequest",),
    "autoscaling": ("Scale",),
    "extensions": ("DaemonSet", "Deployment", "Ingress", "NetworkPolicy", "PodSecurityPolicy", "ReplicaSet"),
    "policy": ("Eviction", "PodSecurityPolicy"),
}
GROUPS: Final = tuple(dict.fromkeys(("", *kinds.BUILT_IN.groups(), *kinds.UPSTREAM_GROUPS, *_REMOVED)))
"""Every group of Kubernetes' own."""

_VERSION: Final = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
_CLOSE: Final = 0.75


def why_unknown(api_version: str, kind: str) -> tuple[str, str] | None:
    """What is wrong with the type of an object the playground does not hold.

    Returns
    -------
    (str, str) or None
        Field (``apiVersion``, ``kind`` or ``items``) and a sentence that follows its value; None for a kind of
        Kubernetes that plays no part here, and for everybody's own kinds (custom resources).
    """
    group, _, version = api_version.rpartition("/")
    if group not in GROUPS:
        return _of_no_group(group)
    here = kinds_of(group)
    held = kinds.by_kind(kind)
    if kind in here:
        served = [
            each.api_version for each in kinds.BUILT_IN.served if (each.group, each.kind) == (group, kind)
        ]
        if served:
            return "apiVersion", f"is not served here: {kind} is {' or '.join(served)}"
        if _VERSION.fullmatch(version):
            return None
        return "apiVersion", "has no version of Kubernetes' form, like v1 or v1beta1"
    if kind.endswith("List") and kind.removesuffix("List") in ("", *here):
        return "items", "is required and must be a list"
    if held is not None:
        return "kind", f"is no kind of {api_version}: {kind} is served as {held.api_version}"
    elsewhere = [name for name in GROUPS if kind in kinds_of(name)]
    if elsewhere:
        return "kind", f"is no kind of {api_version}, but of the group {elsewhere[0] or 'v1'}"
    every = [name for each in (group, *GROUPS) for name in kinds_of(each)]
    close = _closest(kind, here) or _closest(kind, every)
    return "kind", f"is no kind of {api_version}" + (f"; did you mean {close}?" if close else "")


def kinds_of(group: str) -> tuple[str, ...]:
    """Every kind of one of Kubernetes' groups, held here or not."""
    return (*kinds.UPSTREAM_GROUPS.get(group, ()), *_REMOVED.get(group, ()))


def _of_no_group(group: str) -> tuple[str, str] | None:
    close = _closest(group, [name for name in GROUPS if name])
    # A group of custom resources is a domain: it has a dot.
    if "." in group and not close:
        return None
    return "apiVersion", "is of no API group" + (f"; did you mean {close}?" if close else "")


def _closest(name: str, among: Iterable[str]) -> str:
    by_lower = {each.lower(): each for each in among}
    lower = name.lower()
    if lower.removesuffix("s") in by_lower:
        return by_lower[lower.removesuffix("s")]
    found = difflib.get_close_matches(lower, by_lower, n=1, cutoff=0.9 if "." in lower else _CLOSE)
    return by_lower[found[0]] if found else ""
