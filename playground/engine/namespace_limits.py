"""Limit ranges and quotas of a namespace, applied to an object that is about to be created."""

from collections.abc import Iterable, Mapping
from typing import Any

from playground.engine.admission import Posted
from scheduler_core.errors import InvalidObject
from scheduler_core.objects.quantity import QuantityError
from scheduler_core.sim.admission import (
    Amounts,
    check_limit_ranges,
    check_quota,
    matches,
    status_of,
    usage_of,
    used_of,
    with_limit_range_defaults,
)

Manifest = Mapping[str, Any]

__all__ = ["Amounts", "NamespaceLimits", "quota_status"]


class NamespaceLimits:
    """What holds in one namespace.

    Parameters
    ----------
    limit_ranges, quotas
        Its objects of these kinds, by name.
    charged
        Every object of it, with resource and group of its kind; read only where there is a quota.
    """

    def __init__(
        self,
        limit_ranges: Iterable[Manifest],
        quotas: Iterable[Manifest],
        charged: Iterable[tuple[Manifest, str, str]],
    ) -> None:
        self._limit_ranges = list(limit_ranges)
        self._quotas = list(quotas)
        self._used: list[Amounts] = []
        if self._quotas:
            usages = [
                (manifest, usage_of(manifest, resource, group)) for manifest, resource, group in charged
            ]
            self._used = [used_of(quota, usages) for quota in self._quotas]

    def admitted(self, manifest: Manifest, resource: str, group: str) -> dict[str, Any]:
        """The object with the defaults of the namespace, which counts from now on.

        Raises
        ------
        InvalidManifest
            In an API server's words.
        """
        result = dict(manifest)
        try:
            if self._limit_ranges and manifest.get("kind") == "Pod":
                result = with_limit_range_defaults(result, self._limit_ranges)
            check_limit_ranges(result, self._limit_ranges)
            usage = usage_of(result, resource, group) if self._quotas else {}
            concerned = [place for place, quota in enumerate(self._quotas) if matches(quota, result)]
            for place in concerned:
                check_quota(self._quotas[place], self._used[place], result, usage)
        except InvalidObject as error:
            raise Posted(result).problem(error.reason, path=error.path, reason="Forbidden") from None
        for place in concerned:
            used = self._used[place]
            for key, amount in usage.items():
                if key in used:
                    used[key] = used[key].add(amount)
        return result


def quota_status(quota: Manifest, charged: Iterable[tuple[Manifest, str, str]]) -> dict[str, Any]:
    """What a quota's status says, hard and used; empty where it cannot be read."""
    try:
        usages = [(manifest, usage_of(manifest, resource, group)) for manifest, resource, group in charged]
        return status_of(quota, used_of(quota, usages))
    except (QuantityError, InvalidObject):
        return {}
