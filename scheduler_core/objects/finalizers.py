"""Finalizers: who has to be done with an object before it goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def finalizers_of(manifest: Mapping[str, Any]) -> list[str]:
    """Finalizers of programs that are to take them off; Kubernetes' own are done with at once."""
    names = (manifest.get("metadata") or {}).get("finalizers") or ()
    return [name for name in names if isinstance(name, str) and is_foreign(name)]


def is_foreign(name: str) -> bool:
    """Whether a finalizer is another program's to take off."""
    domain, slash, _ = name.partition("/")
    own = domain == "kubernetes.io" or domain.endswith((".kubernetes.io", ".k8s.io"))
    return bool(slash) and not own
