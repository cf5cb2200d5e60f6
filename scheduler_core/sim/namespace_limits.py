"""LimitRanges and ResourceQuotas at work on what controllers make; what people write is admitted before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scheduler_core.errors import ForbiddenObject
from scheduler_core.objects.quantity import QuantityError
from scheduler_core.sim.limit_ranges import Amounts, check_limit_ranges, with_limit_range_defaults
from scheduler_core.sim.quotas import check_quota, matches, usage_of, used_of

Manifest = Mapping[str, Any]
LIMITING = ("LimitRange", "ResourceQuota")


class RefusedObject(ForbiddenObject):
    """A namespace's limits do not allow an object.

    Attributes
    ----------
    name : str
        What it would have been called.
    """

    def __init__(self, error: ForbiddenObject, name: str) -> None:
        super().__init__(error.path, error.value, error.reason)
        self.name = name


class NamespaceLimits:
    """What holds in each namespace, counted as objects come and go; all of it follows from the objects there are.

    Parameters
    ----------
    all_of : callable
        Manifests of a kind.
    everything : callable
        Manifests of all kinds.
    """

    def __init__(
        self, all_of: Callable[[str], Iterable[Manifest]], everything: Callable[[], Iterable[Manifest]]
    ) -> None:
        self._all_of = all_of
        self._everything = everything
        self._namespaces: set[str] | None = None
        self._quotas: dict[str, list[tuple[Manifest, Amounts]]] = {}

    def changed(self, kind: str, old: Manifest | None, new: Manifest | None) -> None:
        """An object came, changed or went."""
        if kind in LIMITING:
            self._namespaces = None
            self._quotas.clear()
            return
        if not self._quotas:
            return
        for manifest, is_new in ((old, False), (new, True)):
            if manifest is None:
                continue
            for quota, used in self._quotas.get(_namespace(manifest), ()):
                if not matches(quota, manifest):
                    continue
                for name, amount in _usage(manifest).items():
                    if name in used:
                        used[name] = used[name].add(amount) if is_new else used[name].sub(amount)

    def limit(self, namespace: str) -> bool:
        """Whether anything is limited there."""
        if self._namespaces is None:
            self._namespaces = {_namespace(item) for kind in LIMITING for item in self._all_of(kind)}
        return namespace in self._namespaces

    def completes(self, namespace: str) -> bool:
        """Whether pods made there get more than their template says."""
        return self.limit(namespace) and bool(self._of("LimitRange", namespace))

    def admitted(self, manifest: Manifest) -> dict[str, Any]:
        """An object that is about to be made, prepared, with the defaults of its namespace.

        Raises
        ------
        RefusedObject
            In an API server's words.
        """
        namespace, result = _namespace(manifest), dict(manifest)
        if not self.limit(namespace):
            return result
        try:
            ranges = self._of("LimitRange", namespace)
            if ranges and result.get("kind") == "Pod":
                result = with_limit_range_defaults(result, ranges)
            check_limit_ranges(result, ranges)
            usage = _usage(result)
            for quota, used in self._used(namespace):
                if matches(quota, result):
                    check_quota(quota, used, result, usage)
        except ForbiddenObject as error:
            raise RefusedObject(error, str(manifest["metadata"]["name"])) from None
        except QuantityError:
            # A limit that cannot be read limits nothing.
            return result
        return result

    def _used(self, namespace: str) -> list[tuple[Manifest, Amounts]]:
        if namespace not in self._quotas:
            charged = [(item, _usage(item)) for item in self._everything() if _namespace(item) == namespace]
            self._quotas[namespace] = [
                (quota, used_of(quota, charged)) for quota in self._of("ResourceQuota", namespace)
            ]
        return self._quotas[namespace]

    def _of(self, kind: str, namespace: str) -> list[Manifest]:
        found = [item for item in self._all_of(kind) if _namespace(item) == namespace]
        return sorted(found, key=lambda item: str(item["metadata"]["name"]))


def _usage(manifest: Manifest) -> Amounts:
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    return usage_of(manifest, f"{str(manifest.get('kind', '')).lower()}s", group)


def _namespace(manifest: Manifest) -> str:
    return str((manifest.get("metadata") or {}).get("namespace") or "")
