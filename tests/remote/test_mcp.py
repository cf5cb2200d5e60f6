"""The nine tools, asked by the SDK's own client over stdio, on a playground that runs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import anyio
import pytest
import yaml
from anyio.from_thread import BlockingPortal, start_blocking_portal

from playground.clusters.drafts import READ_AT_ONCE_BYTES
from playground.remote.instance import Instance, part
from scheduler_core import ENGINE_VERSION
from scheduler_core.cli.main import main
from scheduler_core.scenario.gallery import gallery_text
from tests.api.test_following import AT, DECISION
from tests.changes import one_in
from tests.remote.cases import CASES, POD, Case, node, pod
from tests.tables import table

if TYPE_CHECKING:
    from mcp import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
WAIT_S = 90.0

Call = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(scope="module")
def client(portal: BlockingPortal, address: str) -> Iterator[Client]:
    """Connected to `kube-scheduler-playground mcp`."""
    # Only here: a second and a half for each process that collects.
    from mcp import Client, StdioServerParameters, stdio_client

    command = StdioServerParameters(
        command=sys.executable, args=["-m", "playground", "mcp", "--server", address]
    )
    with portal.wrap_async_context_manager(Client(stdio_client(command))) as client:
        yield client


@pytest.fixture(scope="module")
def call(portal: BlockingPortal, client: Client) -> Call:
    """Calls a tool; its structured answer, or what it says it refuses."""

    def called(tool: str, **arguments: Any) -> dict[str, Any]:
        result = portal.call(partial(client.call_tool, tool, arguments))
        if result.is_error:
            return {"refused": result.content[0].text}
        found: dict[str, Any] = result.structured_content
        return found

    return called


def test_there_are_nine_tools_and_each_says_what_it_takes_and_answers(
    portal: BlockingPortal, client: Client
) -> None:
    tools = portal.call(client.list_tools).tools
    assert [tool.name for tool in tools] == [
        "create_cluster", "submit", "run", "why_pending", "fix", "plan", "controllers", "live", "share",
    ]  # fmt: skip
    for tool in tools:
        assert tool.description
        assert tool.output_schema is not None and tool.output_schema["properties"]
        for name, about in tool.input_schema["properties"].items():
            assert "description" in about or "enum" in str(about), (tool.name, name)


def test_a_live_cluster_says_what_differs_and_why(call: Call, address: str) -> None:
    instance = Instance(address, "")
    cluster = instance.post("clusters/", {"name": "live", "live": True})["id"]
    path = f"clusters/{cluster}/following/"
    session = instance.ask("PUT", path, {"source": "prod"})[1]["session"]
    seen = [{"at": AT.format(1), "type": "LISTED", "object": yaml.safe_load(node("a"))}]
    instance.post(
        path, {"session": session, "number": 1, "changes": seen, "decisions": [DECISION], "listed": True}
    )
    found = call("live", cluster=cluster)
    assert (found["state"], found["judged"], found["causes"]) == ("following", 1, {"weight": 1})
    assert "on a, ours b" in found["differ"][0] and "had a weight of 5 to 7" in found["differ"][0]


def test_there_are_twenty_cases() -> None:
    assert len({case.name for case in CASES}) == len(CASES) == 20


@pytest.mark.parametrize(
    "case", one_in(5, CASES, "playground/remote/", "scheduler_core/whatif/", name=lambda case: case.name)
)
def test_a_pending_pod_is_explained_and_the_change_that_places_it_is_tried(call: Call, case: Case) -> None:
    made = call("create_cluster", yaml=yaml.safe_dump_all(case.objects), name=case.name)
    cluster = made["cluster"]
    assert (made["applied"]["ignored"], made["applied"]["warnings"]) == ([], [])
    assert call("run", cluster=cluster)["state"] == "done"
    why = call("why_pending", cluster=cluster, pod=POD)
    assert (why["state"], why["node"]) == (case.state, None)
    if case.plugin:
        found = {(one["plugin"], one["reason"]): one["nodes"] for one in why["reasons"]}
        assert found[case.plugin, case.reason] == case.nodes, why
        assert case.reason in why["message"]
    else:
        assert case.reason in why["sentence"] and why["reasons"] == []
    takes = call("fix", cluster=cluster, pod=POD)
    assert takes["headline"]
    assert not case.edit or case.edit in {item["what"] for item in takes["fixes"]}
    fixed = call("submit", cluster=cluster, yaml=yaml.safe_dump_all(case.fix))
    assert fixed["created"] + fixed["configured"] >= 1
    call("run", cluster=cluster)
    after = call("why_pending", cluster=cluster, pod=case.placed)
    assert (after["state"], after["node"]) == ("bound", case.node), after
    assert f"{case.placed} bound to {case.node}" in after["sentence"]


def test_a_plan_tells_what_a_budget_holds_up_and_a_share_has_a_link(call: Call, instance: Instance) -> None:
    budget = (
        "---\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: shop}, spec: "
        "{minAvailable: 1, selector: {matchLabels: {app: web}}}}\n"
    )
    cluster = call("create_cluster", yaml=node("a") + node("b") + pod(spec="nodeName: a") + budget)["cluster"]
    drained = call("plan", cluster=cluster, ask="drain", nodes=["a"])
    assert drained["verdict"] == "shop/web is held up by a budget." and drained["tone"] != "good"
    assert call("plan", cluster=cluster, ask="headroom", workload="Pod shop/web")["verdict"].startswith(
        "7 more of "
    )
    assert call("controllers", cluster=cluster)["state"] == "off"
    settings = (
        "metadata: {name: kube-system, annotations: {playground.dev/cluster-autoscaler: '--nodes=0:9:nodes'}}"
    )
    call(
        "submit", cluster=cluster, yaml=f"{{apiVersion: v1, kind: Namespace, {settings}}}\n---\n" + pod("two")
    )
    assert call("run", cluster=cluster)["bound"] == 2
    call("run", cluster=cluster, until="20s")
    said = call("controllers", cluster=cluster)
    assert said["nodes"] and said["page"].endswith("/controllers/"), said
    shared = call("share", cluster=cluster, title="From an agent", redact=True, days=3)
    assert shared["page"] == f"{instance.server}/s/{shared['id']}/"
    assert instance.get(f"scenarios/{shared['id']}/")["digest"] == shared["digest"]


@pytest.mark.nightly(
    "playground/remote/", "scheduler_core/sim/outlook.py", "scheduler_core/scenario/loops.py"
)
def test_the_tools_rest_and_the_command_line_give_one_answer_about_controllers(
    call: Call, instance: Instance, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of runs, of why nodes stay, of settings side by side, and of loops with what ends them."""

    def printed(command: str, *more: str) -> Any:
        with urlopen(f"{instance.server}/api/v1/{base}/scenario", timeout=60) as answer:
            (tmp_path / "now.yaml").write_bytes(answer.read())
        main([command, "--json", str(tmp_path / "now.yaml"), *more])
        return json.loads(capsys.readouterr().out)

    def answered(row: Any) -> Any:
        while row["state"] in ("queued", "running"):
            time.sleep(0.2)
            row = instance.get(row["url"])
        return row["answer"]

    programs = yaml.safe_load(gallery_text("loops-low-node-utilization"))
    annotations = {f"playground.dev/{name}": json.dumps(one) for name, one in programs["controllers"].items()}
    annotations["playground.dev/cluster-autoscaler"] = json.dumps(
        {"nodeGroups": [{"name": "nodes", "minSize": 2, "maxSize": 3}]}
    )
    system = {"apiVersion": "v1", "kind": "Namespace"}
    system["metadata"] = {"name": "kube-system", "annotations": annotations}
    nodes = [node(name, allocatable="memory: 16Gi", labels="pool: nodes") for name in ("a", "b")]
    text = "\n---\n".join([*nodes, json.dumps(system), *map(json.dumps, programs["objects"])])
    cluster = call("create_cluster", yaml=text)["cluster"]
    base = f"clusters/{cluster}"

    found = answered(instance.post(f"{base}/loops/", {}))
    assert found == printed("loops", "--all") and found["loop"] is not None
    said = call("controllers", cluster=cluster, loops=True)
    assert said["loop"] == found["loop"]
    assert said["cures"] == [cure["sentence"] for cure in found["cures"]] and said["tried"]

    call("run", cluster=cluster, until="26m")
    replayed, now = printed("replay"), instance.get(f"{base}/controllers/")
    runs = instance.get(f"{base}/controllers/runs/", limit="500")["items"][::-1]
    assert runs and replayed["outlook"] == {name: now[name] for name in ("nodes", "pods")}
    assert [
        {
            "at": run["at"], "controller": run["controller"], "subject": run["subject"] or "",
            "did": [act["text"] for act in run["did"]],
            "whyNot": {one["object"]: one["text"] for one in run["whyNot"]},
        }
        for run in runs
    ] == replayed["controllers"]  # fmt: skip
    said = call("controllers", cluster=cluster)
    acts = [
        f"{run['at']} {run['controller']}: {act}" for run in replayed["controllers"] for act in run["did"]
    ]
    assert set(said["runs"]) <= set(acts) and (said["state"], said["sentence"]) == (
        now["state"],
        now["sentence"],
    )

    variants = [{"name": "as it is"}, {"name": "off", "descheduler": None}]
    (tmp_path / "variants.yaml").write_text(yaml.safe_dump_all(variants), "utf-8")
    side = printed("plan", "compare", str(tmp_path / "variants.yaml"), "--time", "30m")["comparison"]
    asked = {"ask": "compare", "variants": variants, "time": "30m"}
    assert answered(instance.post(f"{base}/plan", asked))["comparison"] == side
    assert call("plan", cluster=cluster, **asked)["comparison"] == side


REFUSED = table(__file__, "REFUSED")


def test_a_refusal_names_place_and_value_and_changes_nothing(call: Call, instance: Instance) -> None:
    quota = (
        "---\n{apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: shop}, spec: "
        '{hard: {requests.cpu: "2"}}}\n'
    )
    cluster = call("create_cluster", yaml=node("a") + quota, name="refusals")["cluster"]
    before = _counts(instance, cluster)
    for tool, arguments, words in REFUSED:
        said = call(tool, **{n: cluster if value == "CLUSTER" else value for n, value in arguments.items()})
        assert words in said["refused"], (tool, arguments, said)
        assert _counts(instance, cluster) == before, (tool, arguments)
    assert "kept" not in {one["name"] for one in instance.get("clusters/", limit="100")["items"]}


def _counts(instance: Instance, cluster: str) -> dict[str, Any]:
    """What a cluster holds; its version moves on by what its own controllers write."""
    found = instance.get(f"clusters/{cluster}/")
    return {name: found[name] for name in ("name", "nodes", "pods", "bound", "pending", "cycles")}


def many(replicas: int) -> str:
    template = (
        "{metadata: {labels: {app: many}}, spec: {containers: [{name: c, image: x, resources: {requests: "
        "{cpu: 1m}}}]}}"
    )
    return (
        "---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: many, namespace: shop}, spec: "
        f"{{replicas: {replicas}, selector: {{matchLabels: {{app: many}}}}, template: {template}}}}}\n"
    )


def test_a_long_run_tells_its_progress_and_is_cancelled_with_the_call(
    portal: BlockingPortal, client: Client, call: Call, instance: Instance
) -> None:
    nodes = "".join(node(f"n{number}", allocatable="pods: '500'") for number in range(20))
    cluster = call("create_cluster", yaml=nodes + many(6000))["cluster"]
    told: list[tuple[float, str | None]] = []

    async def cancelled() -> None:
        async with anyio.create_task_group() as group:

            async def progress(done: float, total: float | None, message: str | None) -> None:
                told.append((done, message))
                group.cancel_scope.cancel()

            group.start_soon(
                partial(client.call_tool, "run", {"cluster": cluster}, progress_callback=progress)
            )

    portal.call(cancelled)
    assert told and told[0][1]
    until_s = time.monotonic() + WAIT_S
    while (run := instance.get(f"clusters/{part(cluster)}/runs/")["items"][0])["state"] != "cancelled":
        assert time.monotonic() < until_s and run["state"] != "done", run
        time.sleep(0.2)
    assert run["cyclesDone"] < 6000
    assert call("why_pending", cluster=cluster, pod="shop/none")["refused"]


def test_what_is_missing_is_said_before_anything_is_served(tmp_path: Any) -> None:
    def started(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "playground", "mcp", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)

    done = started("--server", "nowhere")
    assert done.returncode == 2 and '--server: "nowhere" is not an address' in done.stderr
    hidden = "import sys; sys.modules['mcp'] = None; from playground.__main__ import main; main(['mcp'])"
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "pip install 'kube-scheduler-playground[mcp]'" in done.stderr


def test_what_a_worker_applies_is_told_when_it_is_done(call: Call) -> None:
    padding = "# " + "x" * READ_AT_ONCE_BYTES + "\n"
    made = call("create_cluster", yaml=padding + node("a"))
    assert (made["nodes"], made["applied"]["created"]) == (1, 1)
    done = call("submit", cluster=made["cluster"], yaml=padding + node("b") + "---\n" + node("c"))
    assert (done["created"], done["configured"], done["unchanged"]) == (2, 0, 0)
    wrong = call("submit", cluster=made["cluster"], yaml=padding + pod("three", requests='cpu: "much"'))
    assert "nothing was applied" in wrong["refused"] and "requests.cpu" in wrong["refused"]
    assert call("submit", cluster=made["cluster"], yaml=node("d"))["created"] == 1


def test_an_argument_that_a_tool_does_not_have_is_refused_and_changes_nothing(
    portal: BlockingPortal, client: Client, call: Call, instance: Instance
) -> None:
    cluster = call("create_cluster", yaml=node("a"), name="strict")["cluster"]
    before = _counts(instance, cluster)
    for tool, arguments in (
        ("create_cluster", {"yaml": node("a"), "release": "1.35"}),
        ("submit", {"cluster": cluster, "yaml": pod("p"), "dry_run": True}),
        ("run", {"cluster": cluster, "until": "idle", "cycles": 1}),
        ("why_pending", {"cluster": cluster, "pod": "shop/p", "namespace": "shop"}),
        ("plan", {"cluster": cluster, "ask": "lose", "node": ["a"]}),
    ):
        unknown = list(arguments)[-1]
        assert unknown in call(tool, **arguments)["refused"]
    assert _counts(instance, cluster) == before
    for tool in portal.call(client.list_tools).tools:
        assert tool.input_schema["additionalProperties"] is False


def test_the_server_says_its_version(client: Client) -> None:
    assert client.server_info is not None and client.server_info.version == ENGINE_VERSION


def test_pods_are_found_after_a_run_and_by_the_name_of_their_workload(call: Call) -> None:
    deployment = (
        "---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: api, namespace: shop}, spec: {replicas: 3, "
        "selector: {matchLabels: {app: api}}, template: {metadata: {labels: {app: api}}, spec: {containers: "
        "[{name: c, image: x, resources: {requests: {cpu: '3'}}}]}}}}\n"
    )
    stranger = pod("api-gateway", requests='cpu: "9"')
    cluster = call("create_cluster", yaml=node("a") + deployment + stranger, name="workload")["cluster"]
    ran = call("run", cluster=cluster)
    assert ran["pending"] == len(ran["pending_pods"]) == 3 and "shop/api-gateway" in ran["pending_pods"]
    why = call("why_pending", cluster=cluster, pod="shop/api")
    assert why["state"] == "unschedulable" and why["pod"] in ran["pending_pods"]
    assert {why["pod"], *why["also_pending"]} == set(ran["pending_pods"]) - {"shop/api-gateway"}
    takes = call("fix", cluster=cluster, pod="shop/api")
    assert takes["name"] == why["pod"] and takes["fixes"]
    for named in ran["pending_pods"]:
        assert call("why_pending", cluster=cluster, pod=named)["pod"] == named
    refused = call("why_pending", cluster=cluster, pod="shop/ap")["refused"]
    assert 'pods "ap" not found' in refused and "shop/api-gateway" in refused
