"""Extenders made of rules, created by people; `mock_answers` answers for them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.conf import settings
from django.db import transaction

from playground.clusters.errors import Conflict, InvalidInput, InvalidManifest
from playground.clusters.models import Cluster, MockExtender
from playground.engine.configuration import ConfigurationProblem
from playground.engine.mock_extender import check_rules

MAX_PER_CLUSTER: Final = 20
MAX_RULES_BYTES: Final = 256 * 1024


def create_mock_extender(*, cluster: Cluster, rules: Sequence[Any], name: str = "") -> MockExtender:
    """A new mock extender; `mock_extender_url` is what a scheduler configuration names as `urlPrefix`.

    Parameters
    ----------
    rules
        E.g. ``[{"deny": {"nodes": ["n1"]}}, {"score": {"labels": {"disk": "ssd"}, "points": 10}}]``.

    Raises
    ------
    InvalidManifest
        With the path of every field at fault.
    InvalidInput, Conflict
    """
    _check(rules)
    with transaction.atomic():
        if MockExtender.objects.filter(cluster=cluster).count() >= MAX_PER_CLUSTER:
            raise Conflict(f"a cluster has at most {MAX_PER_CLUSTER} mock extenders", kind="MockExtender")
        return MockExtender.objects.create(cluster=cluster, name=_name(name), rules=list(rules))


def update_mock_extender(
    *, extender: MockExtender, rules: Sequence[Any] | None = None, name: str | None = None
) -> MockExtender:
    """Give it other rules, which count calls from 0 again, or another name."""
    with transaction.atomic():
        row = MockExtender.objects.select_for_update(of=("self",)).get(pk=extender.pk)
        if rules is not None:
            _check(rules)
            row.rules, row.calls = list(rules), {}
        if name is not None:
            row.name = _name(name)
        row.save()
    return row


def delete_mock_extender(*, extender: MockExtender) -> None:
    """Remove it; a configuration that names it gets 404 from then on."""
    extender.delete()


def mock_extender_url(extender: MockExtender) -> str:
    """Its `urlPrefix`. Workers know it by its id, whatever the host, so a copied configuration stays right."""
    return f"{settings.PLAYGROUND_OWN_URL.rstrip('/')}/mock-extenders/{extender.public_id}"


def serve_mock_extenders(*, cluster: Cluster, rules: Mapping[int, Sequence[Any]]) -> dict[int, str]:
    """Have a cluster nothing was decided in yet begin with mock extenders of its own.

    Parameters
    ----------
    rules
        Place of an extender in the cluster's configuration -> its rules. That extender's `urlPrefix` becomes the
        address of a new mock extender. It is how the cluster begins, so the log says nothing of it.

    Returns
    -------
    dict of int to str
        Place -> `urlPrefix`.

    Raises
    ------
    InvalidManifest, Conflict
    """
    known = range(len((cluster.config or {}).get("extenders") or ()))
    urls = {
        place: mock_extender_url(
            create_mock_extender(cluster=cluster, rules=rules[place], name=f"extender {place}")
        )
        for place in sorted(rules)
        if place in known
    }
    if urls:
        cluster.config = with_extenders_at(cluster.config or {}, urls)
        cluster.save(update_fields=["config"])
    return urls


def with_extenders_at(config: Mapping[str, Any], urls: Mapping[int, str]) -> dict[str, Any]:
    """The configuration with the extenders at some places reached elsewhere; there it is plain HTTP."""
    extenders = [
        {key: value for key, value in extender.items() if key not in ("tlsConfig", "enableHTTPS")}
        | {"urlPrefix": urls[place]}
        if place in urls
        else extender
        for place, extender in enumerate(config.get("extenders") or ())
    ]
    return {**config, "extenders": extenders}


def mock_rules_of(cluster: Cluster, config: Mapping[str, Any] | None) -> dict[int, Sequence[Any]]:
    """Place in a configuration -> rules, of the extenders that are mock extenders of this cluster."""
    own = dict(MockExtender.objects.filter(cluster=cluster).values_list("public_id", "rules"))
    named = {
        place: str(extender.get("urlPrefix", "")).rstrip("/").rpartition("/mock-extenders/")[2]
        for place, extender in enumerate((config or {}).get("extenders") or ())
    }
    return {place: own[public_id] for place, public_id in named.items() if public_id in own}


def _check(rules: Any) -> None:
    if len(json.dumps(rules, default=str)) > MAX_RULES_BYTES:
        raise InvalidInput(f"rules are larger than {MAX_RULES_BYTES} bytes", field="rules")
    try:
        check_rules(rules)
    except ConfigurationProblem as problem:
        errors = [
            InvalidManifest(item.message, path=item.field, value=item.value, kind="MockExtender")
            for item in problem.items
        ]
        errors[0].causes = tuple(errors[1:])
        raise errors[0] from None


def _name(name: str) -> str:
    cleaned = " ".join(str(name).split())
    if len(cleaned) > 100 or not cleaned.isprintable():
        raise InvalidInput("a name has at most 100 printable characters", field="name", value=name)
    return cleaned


__all__ = [
    "create_mock_extender",
    "delete_mock_extender",
    "mock_extender_url",
    "mock_rules_of",
    "serve_mock_extenders",
    "update_mock_extender",
    "with_extenders_at",
]
