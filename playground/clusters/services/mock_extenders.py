"""Extenders made of rules, created by people; `mock_answers` answers for them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django.conf import settings

from playground.clusters.errors import Conflict, InvalidInput, InvalidManifest
from playground.clusters.models import Cluster, MockExtender
from playground.clusters.services.changes import opening
from playground.clusters.services.writer import writing
from playground.engine.configuration import ConfigurationProblem
from playground.engine.mock_extender import OWN_PATH, check_rules

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
    with writing(cluster, rules=True) as writer:
        writer.words = f"make mock extender {name}".strip()
        if MockExtender.objects.filter(cluster=cluster).count() >= MAX_PER_CLUSTER:
            raise Conflict(f"a cluster has at most {MAX_PER_CLUSTER} mock extenders", kind="MockExtender")
        return MockExtender.objects.create(cluster=cluster, name=_name(name), rules=list(rules))


def update_mock_extender(
    *, extender: MockExtender, rules: Sequence[Any] | None = None, name: str | None = None
) -> MockExtender:
    """Give it other rules, which count calls from 0 again, or another name."""
    with writing(extender.cluster, rules=True) as writer:
        writer.words = f"change mock extender {extender.name}".strip()
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
    with writing(extender.cluster, rules=True) as writer:
        writer.words = f"delete mock extender {extender.name}".strip()
        extender.delete()


def mock_extender_url(extender: MockExtender) -> str:
    """Its `urlPrefix`. Workers know it by its id, whatever the host, so a copied configuration stays right."""
    return f"{settings.PLAYGROUND_OWN_URL.rstrip('/')}{OWN_PATH}{extender.public_id}"


def serve_mock_extenders(*, cluster: Cluster, rules: Mapping[int, Sequence[Any]]) -> dict[int, str]:
    """Have a cluster nothing was decided in yet begin with mock extenders of its own.

    Parameters
    ----------
    rules
        Place of an extender in the cluster's configuration, now or later, -> its rules. That extender's `urlPrefix`
        becomes the address of a new mock extender. It is how the cluster begins, so the log says nothing of it.

    Returns
    -------
    dict of int to str
        Place -> `urlPrefix`.

    Raises
    ------
    InvalidManifest, Conflict
    """
    with opening():
        urls = {
            place: mock_extender_url(
                create_mock_extender(cluster=cluster, rules=rules[place], name=f"extender {place}")
            )
            for place in sorted(rules)
        }
    if any(place in urls for place, _ in enumerate((cluster.config or {}).get("extenders") or ())):
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
    return {place: own[public_id] for place, public_id in _named(config).items() if public_id in own}


def mock_rules_throughout(
    cluster: Cluster, configs: Iterable[Mapping[str, Any] | None]
) -> tuple[dict[int, Sequence[Any]], list[int]]:
    """As `mock_rules_of`, over every configuration a cluster had.

    Returns
    -------
    rules
        Of places where no configuration has another extender.
    others
        Places of mock extenders where one has.
    """
    own = dict(MockExtender.objects.filter(cluster=cluster).values_list("public_id", "rules"))
    named: dict[int, set[str]] = {}
    for config in configs:
        for place, public_id in _named(config).items():
            named.setdefault(place, set()).add(public_id)
    alike = {place: ids.pop() for place, ids in sorted(named.items()) if len(ids) == 1}
    rules = {place: own[public_id] for place, public_id in alike.items() if public_id in own}
    return rules, [place for place, ids in sorted(named.items()) if len(ids) > 1 and not ids.isdisjoint(own)]


def _named(config: Mapping[str, Any] | None) -> dict[int, str]:
    """Place of an extender -> the id of a mock extender in its address; else the address."""
    return {
        place: str(extender.get("urlPrefix", "")).rstrip("/").rpartition(OWN_PATH)[2]
        for place, extender in enumerate((config or {}).get("extenders") or ())
    }


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
    "mock_rules_throughout",
    "serve_mock_extenders",
    "update_mock_extender",
    "with_extenders_at",
]
