"""The playground's own rule-based extender: checking its rules, and what it answers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from playground.engine.configuration import ConfigurationItem, ConfigurationProblem
from scheduler_core.config.wire import Problems
from scheduler_core.scenario.form import part_of
from scheduler_core.scenario.mock_extender import VERBS, LabelsOf, MockExtender, MockReply

__all__ = ["OWN_PATH", "VERBS", "MockReply", "answer", "check_rules", "extenders_of"]

OWN_PATH: Final = "/mock-extenders/"
"""What stands before the id in a mock extender's address."""

PodOfUid = Callable[[str], Mapping[str, Any] | None]


def check_rules(rules: Any) -> None:
    """See whether rules are usable.

    Raises
    ------
    ConfigurationProblem
        With every field at fault, e.g. ``rules[0].deny.node``.
    """
    problems = Problems()
    part_of(MockExtender).check({"rules": rules}, "", problems)
    found = (*problems.types, *problems.unknown)
    if found:
        items = tuple(ConfigurationItem(item.field, item.value, item.detail) for item in found)
        raise ConfigurationProblem(f"{items[0].field}: {items[0].message}", items)


def answer(
    rules: Sequence[Mapping[str, Any]],
    verb: str,
    body: Mapping[str, Any],
    call: int,
    *,
    node_labels: LabelsOf,
    pod_of_uid: PodOfUid,
) -> MockReply:
    """What the rules answer to the `call`th request (from 0) of a verb (`scenario.mock_extender`)."""
    [extender] = extenders_of({0: rules})
    return extender.reply(verb, body, call, node_labels=node_labels, pod_of_uid=pod_of_uid)


def extenders_of(rules: Mapping[int, Sequence[Mapping[str, Any]]]) -> list[MockExtender]:
    """Checked rules, by the extender's place in the configuration, as a scenario has them."""
    kind = part_of(MockExtender)
    return [
        kind.build(kind.check({"extender": place, "rules": list(rules[place])}, "", Problems()))
        for place in sorted(rules)
    ]
