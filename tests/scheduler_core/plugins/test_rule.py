"""A rule written as an expression decides, is explained, wakes its pods and meets its limits as any plugin does."""

import json
from typing import Any

import pytest

from scheduler_core.errors import ConfigurationError
from scheduler_core.expressions.expression import Expression, ExpressionLimits, bound
from scheduler_core.expressions.syntax import ExpressionError
from scheduler_core.framework.registry import member_of
from scheduler_core.objects.defaults import prepare
from scheduler_core.plugin_kit import check
from scheduler_core.plugins.rule import VARIABLES, Rule
from scheduler_core.sim.changes import DeleteObject, WriteObject
from scheduler_core.sim.simulation import Simulation
from tests.manifests import node, pod, scheduler_config
from tests.tables import table


def config(
    *, points: tuple[str, ...] = ("filter", "score"), name: str = "Rule/it", **args: Any
) -> dict[str, Any]:
    plugins: dict[str, Any] = {point: {"enabled": [{"name": name}]} for point in points}
    profile = {"plugins": plugins, "pluginConfig": [{"name": name, "args": args}]}
    return scheduler_config(profiles=[profile])


def run(configuration: dict[str, Any], *objects: dict[str, Any]) -> tuple[Simulation, list[Any]]:
    cluster = Simulation(configuration, seed=1)
    for manifest in objects:
        cluster.submit(WriteObject(prepare(manifest)))
    cluster.run_until_idle(max_cycles=50)
    return cluster, cluster.drain_cycles()


RULES: tuple[dict[str, str], ...] = table(__file__, "RULES")


@pytest.mark.parametrize("args", RULES, ids=lambda args: json.dumps(args)[:40])
def test_a_rule_passes_the_conformance_kit(args: dict[str, str]) -> None:
    assert check(member_of(Rule, "Rule/kit"), args=args) == []


def test_a_filter_rejects_with_its_reason_and_tells_what_it_read() -> None:
    rule = config(filter='node.metadata.labels.disk == "ssd" && free.cpu >= 2000', reason="slow or busy")
    _, (trace,) = run(
        rule,
        node("a", "8", labels={"disk": "hdd"}),
        node("b", "1", labels={"disk": "ssd"}),
        node("c", labels={"disk": "ssd"}),
        pod("p"),
    )
    said = trace.explain()
    assert trace.node == "c"
    assert said["filter"]["a"] == {"plugin": "Rule/it", "code": "Unschedulable", "reasons": ["slow or busy"]}
    assert said["amounts"]["Rule/it"] == {"a": ["free cpu 8, disk hdd"], "b": ["free cpu 1, disk ssd"]}


@pytest.mark.parametrize(
    ("args", "said"),
    table(__file__, "a_rule_that_fails_ends_the_cycle_under_its_name_and_node"),
)
def test_a_rule_that_fails_ends_the_cycle_under_its_name_and_node(args: dict[str, str], said: str) -> None:
    _, traces = run(config(**args), node("a"), node("b"), pod("p"))
    assert {trace.outcome for trace in traces} == {"error"} and said in traces[0].error


@pytest.mark.parametrize(
    ("args", "field", "said"),
    table(__file__, "a_rule_that_cannot_be_read_is_refused_with_its_place"),
)  # fmt: skip
def test_a_rule_that_cannot_be_read_is_refused_with_its_place(
    args: dict[str, str], field: str, said: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Simulation(config(**args))
    (problem,) = refused.value.errors
    assert problem.field == f"profiles[0].pluginConfig[0].args.{field}" and said in problem.detail


def test_an_evaluation_that_could_take_too_long_is_not_run_and_says_which_limit_was_met() -> None:
    mates = [pod(f"m{index}") for index in range(30)]
    large = node("a", "64")
    large["status"]["allocatable"]["pods"] = "110"
    for mate in mates:
        mate["spec"]["nodeName"] = "a"
    thrice = "pods.all(a, pods.all(b, pods.all(c, a.metadata.name + b.metadata.name != c.metadata.name)))"
    _, traces = run(config(filter=thrice, points=("filter",)), large, *mates, pod("p"))
    assert "steps here, it may take 20,000" in traces[0].error


def test_what_would_grow_without_end_is_bounded_before_it_is_run() -> None:
    doubled = "['a']" + ".map(x, x + x)" * 40
    with pytest.raises(ExpressionError, match="it may take 1,000"):
        Expression(doubled, ExpressionLimits(2000, steps=1000)).run({})
    pattern = Expression("'aaaa'.matches('(a{1000}){1000}')", ExpressionLimits(2000, steps=1000))
    with pytest.raises(ExpressionError, match="it may take 1,000"):
        pattern.run({})
    with pytest.raises(ExpressionError, match="too many optional fields"):
        Expression("node" + ".?a" * 60, ExpressionLimits(2000), VARIABLES)
    small = Expression("xs.exists(x, x.size() > 3)", ExpressionLimits(2000))
    assert bound(small.tree, {"xs": ["a"] * 10}) < bound(small.tree, {"xs": ["a"] * 1000}) < 10_000


def test_rejected_pods_are_tried_again_when_a_node_or_a_pod_on_it_changes() -> None:
    rule = config(filter="pods.size() < 1", points=("filter",))
    cluster, traces = run(rule, node("a"), pod("first"), pod("second"))
    assert [trace.outcome for trace in traces][:2] == ["bound", "unschedulable"]
    cluster.submit(DeleteObject("Pod", "default", "first"))
    cluster.run_until_idle(max_cycles=20)
    assert cluster.world.pod("default", "second").node_name == "a"
