"""Rules: filters and scores written as CEL expressions, in a configuration and out of it."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from playground.engine.configuration import is_policy
from scheduler_core.config.catalog import MEMBER
from scheduler_core.config.types import API_VERSION, KIND
from scheduler_core.config.wire import Problems, build, typed
from scheduler_core.errors import CannotAnswer, FieldError
from scheduler_core.extender.transport import Transport
from scheduler_core.fork import Report
from scheduler_core.objects.defaults import prepare
from scheduler_core.objects.pod import Pod, pod_from
from scheduler_core.plugins.rule import VARIABLES, Rule, RuleArgs
from scheduler_core.sim.simulation import Simulation
from scheduler_core.whatif.tries import try_rule as _try

FAMILY: Final = Rule.name
NAMES: Final = VARIABLES
FIELDS: Final = ("filter", "reason", "score", "normalize")
DEFAULT_PROFILE: Final = "default-scheduler"
POINTS: Final = ("filter", "score")


@dataclass(frozen=True, slots=True)
class RuleView:
    """A rule of a profile; `name` without the family's, `weight` None where it scores nothing."""

    name: str
    filter: str
    reason: str
    score: str
    normalize: str
    points: tuple[str, ...]
    weight: int | None

    @property
    def args(self) -> dict[str, str]:
        """As a configuration writes them."""
        return {field: getattr(self, field) for field in FIELDS}


def problems(args: Mapping[str, Any]) -> list[FieldError]:
    """What is wrong with a rule, by field; empty where it can be used."""
    found = Problems()
    checked = typed(RuleArgs).check(args, "", found)
    wrong = [*found.types, *found.unknown]
    if not wrong:
        document: dict[str, Any] = checked
        RuleArgs.set_defaults(document)
        wrong = list(build(RuleArgs, document).problems(""))
    return [replace(item, field=item.field.lstrip(".")) for item in wrong]


def is_name(text: str) -> bool:
    """Whether a rule may be called so."""
    return MEMBER.fullmatch(text) is not None


def rules_of(document: Mapping[str, Any] | None, profile: str) -> list[RuleView]:
    """The rules of a profile, as they are written; by name."""
    written = _profile(document or {}, profile)
    if written is None or is_policy(document):
        return []
    found = []
    for entry in written.get("pluginConfig") or ():
        family, _, name = str(entry.get("name", "")).partition("/")
        if family != FAMILY or not name:
            continue
        args = entry.get("args") or {}
        sets = written.get("plugins") or {}
        at = {
            point: one
            for point in (*POINTS, "multiPoint")
            for one in (sets.get(point) or {}).get("enabled") or ()
            if one.get("name") == entry["name"]
        }
        points = POINTS if "multiPoint" in at else tuple(at)
        weight = (at.get("score") or at.get("multiPoint") or {}).get("weight") or 1
        found.append(
            RuleView(
                name,
                str(args.get("filter") or ""),
                str(args.get("reason") or ""),
                str(args.get("score") or ""),
                str(args.get("normalize") or "None"),
                points,
                weight if "score" in points and args.get("score") else None,
            )
        )
    return sorted(found, key=lambda rule: rule.name)


def with_rule(
    document: Mapping[str, Any] | None, profile: str, name: str, args: Mapping[str, str], weight: int = 1
) -> dict[str, Any]:
    """The configuration with a rule added or replaced."""
    made = without_rule(document, profile, name) if document else {}
    made = {"apiVersion": API_VERSION, "kind": KIND, **made}
    written = _profile(made, profile)
    if written is None:
        written = {"schedulerName": profile}
        made.setdefault("profiles", []).append(written)
    plugin = f"{FAMILY}/{name}"
    for point in POINTS:
        if str(args.get(point) or "").strip():
            entry: dict[str, Any] = {"name": plugin}
            if point == "score" and weight != 1:
                entry["weight"] = weight
            sets = written.setdefault("plugins", {})
            sets.setdefault(point, {}).setdefault("enabled", []).append(entry)
    kept = {key: value for key, value in args.items() if value and (key, value) != ("normalize", "None")}
    written.setdefault("pluginConfig", []).append({"name": plugin, "args": kept})
    return made


def without_rule(document: Mapping[str, Any], profile: str, name: str) -> dict[str, Any]:
    """The configuration without a rule."""
    made: dict[str, Any] = copy.deepcopy(dict(document))
    written = _profile(made, profile)
    if written is None:
        return made
    plugin = f"{FAMILY}/{name}"
    sets = written.get("plugins") or {}
    for point in list(sets):
        for part in ("enabled", "disabled"):
            entries = [one for one in sets[point].get(part) or () if one.get("name") != plugin]
            if entries:
                sets[point][part] = entries
            else:
                sets[point].pop(part, None)
        if not sets[point]:
            del sets[point]
    written["pluginConfig"] = [one for one in written.get("pluginConfig") or () if one.get("name") != plugin]
    for part in ("plugins", "pluginConfig"):
        if part in written and not written[part]:
            del written[part]
    return made


def _profile(document: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    profiles: list[dict[str, Any]] = document.get("profiles") or []
    return next((one for one in profiles if one.get("schedulerName", DEFAULT_PROFILE) == name), None)


def try_rule(
    simulation: Simulation, params: Mapping[str, Any], transport: Transport, report: Report
) -> dict[str, Any]:
    """What a rule would say of the nodes of a cluster; for a pod of it, or for one that asks for nothing."""
    args = build(RuleArgs, dict(params["rule"]))
    return _try(simulation.scheduler, args, _asked(simulation, params["pod"]))


def _asked(simulation: Simulation, key: str) -> Pod:
    if not key:
        spec = {"containers": [{"name": "c"}]}
        return pod_from(
            prepare({"kind": "Pod", "metadata": {"name": "any", "namespace": "default"}, "spec": spec})
        )
    namespace, _, name = key.rpartition("/")
    found: Pod | None = simulation.world.pod(namespace or "default", name)
    if found is None:
        raise CannotAnswer(f"There is no pod {key}.")
    return found
