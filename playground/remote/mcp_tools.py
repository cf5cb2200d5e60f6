"""`kube-scheduler-playground mcp`: seven tools over stdio, so that an agent can try a change before it proposes it.

Each is a few requests to an instance's REST API (`instance.py`). Work that takes a while tells its progress; when the
client cancels, it is cancelled in the instance too.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from pydantic import BaseModel, ConfigDict, Field

from playground.remote.instance import Instance, Refused, part, pod_path, reasons_of
from scheduler_core.version import ENGINE_VERSION


class Applied(BaseModel):
    """What became of some manifests."""

    created: int
    configured: int
    unchanged: int
    ignored: list[str] = Field(description="Objects that play no part here, the first 20.")
    warnings: list[str] = Field(description="Fields that were dropped and the like, the first 20.")


class MadeCluster(BaseModel):
    cluster: str = Field(description="Its id, which the other tools take.")
    page: str
    kubernetes_release: str
    nodes: int
    pods: int
    applied: Applied


class RunResult(BaseModel):
    state: str = Field(description="done, cancelled or failed")
    cycles: int
    bound: int = Field(description="Pods that have a node now, of the whole cluster.")
    pending: int
    pending_pods: list[str] = Field(description="The first 20 of them, as why_pending takes them.")
    stop: str = Field(description="Why it stopped.")
    clock: str = Field(description="The cluster's own time.")
    page: str


class Reason(BaseModel):
    plugin: str
    reason: str = Field(description="In Kubernetes' words.")
    nodes: int = Field(description="On how many nodes it is what rejects the pod first; 0: before any node.")
    examples: list[str] = Field(description="Up to 5 of these nodes.")


class WhyPending(BaseModel):
    pod: str
    state: str = Field(
        description="bound, unschedulable, gated, backoff, active, permit, binding, foreign (another scheduler's), "
        "none (not decided yet) or gone"
    )
    node: str | None
    sentence: str
    message: str | None = Field(description="What the pod's FailedScheduling event says.")
    reasons: list[Reason] = Field(description="What rejects it, the commonest first.")
    attempts: int
    cycle: int | None = Field(description="The decision, to be looked at on its page.")
    also_pending: list[str] = Field(description="Of a workload: its other pending pods, the first 20.")
    page: str


class ProvedFix(BaseModel):
    title: str
    what: str = Field(description="What is changed: lower-request, add-node, correct-selector, ...")
    kind: str = Field(description="keeps what was asked for, changes it, or harms other pods.")
    harm: str
    price: str
    who: str = Field(description="Who has to agree.")
    placed: int = Field(description="Of the pods that were asked about, find a node with it.")
    of: int
    patch: str = Field(description="Commands that make it.")


class Fixes(BaseModel):
    name: str = Field(description="The pod or workload; empty: all that is pending.")
    headline: str = Field(description="Why they wait, in one sentence.")
    best: str = Field(description="The best fix; empty where nothing keeps what was asked for.")
    fixes: list[ProvedFix] = Field(description="Each proved by a run on a copy, the best first.")
    page: str


class PlanLine(BaseModel):
    text: str
    note: str = ""


class PlanAnswer(BaseModel):
    verdict: str
    tone: str = Field(description="good, or what it is that is not.")
    lines: list[PlanLine] = Field(description="The first 20.")
    lines_in_all: int
    moves: list[str] = Field(description="The first 20 pods that move.")
    moves_in_all: int
    page: str


class Shared(BaseModel):
    page: str = Field(description="The link.")
    id: str
    digest: str = Field(description="SHA-256 of what is shared: equal for equal clusters.")
    visibility: str
    notes: list[str]


SHOWN: Final = 20
EXAMPLES: Final = 5
MOST_OF_A_WORKLOAD: Final = 500
FIRST_LOOK_S: Final = 0.1
LOOK_EVERY_S: Final = 1.0
INSTRUCTIONS: Final = (
    "A deterministic kube-scheduler. Make a cluster of manifests (kubectl get -o yaml), run it, ask why a pod is "
    "pending and what it would take, submit the change, run again. Nothing here touches a real cluster."
)

ClusterId = Annotated[str, Field(description="The cluster's id, as create_cluster answers it.")]
PodName = Annotated[
    str, Field(description="namespace/name of a pod or of its workload, or a name in namespace default.")
]
Manifests = Annotated[str, Field(description="YAML or JSON: several documents, or kind: List.")]


def server_of(instance: Instance) -> MCPServer:
    """The server with its seven tools."""
    tools = Tools(instance)
    return MCPServer(
        "kube-scheduler-playground",
        instructions=INSTRUCTIONS,
        log_level="WARNING",
        version=ENGINE_VERSION,
        tools=[
            strict(tool)
            for tool in (
                tools.create_cluster, tools.submit, tools.run, tools.why_pending, tools.fix,
                tools.plan, tools.share,
            )
        ],
    )  # fmt: skip


def strict(function: Callable[..., Any]) -> Tool:
    """A tool that refuses arguments it does not have, which the SDK's own would leave out in silence."""
    tool = Tool.from_function(function)
    known = tool.fn_metadata.arg_model

    class Strict(known):  # type: ignore[valid-type, misc]
        model_config = ConfigDict(extra="forbid", title=known.__name__)

    tool.fn_metadata.arg_model = Strict
    tool.parameters = Strict.model_json_schema(by_alias=True)
    return tool


class Tools:
    """The tools, by their names."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    async def create_cluster(
        self,
        yaml: Manifests,
        name: Annotated[str, Field(description="What people call it.")] = "from an agent",
        kubernetes_release: Annotated[
            str | None, Field(description="Such as 1.36; the newest that is proved when left out.")
        ] = None,
        scheduler_config: Annotated[
            dict[str, Any] | None, Field(description="A KubeSchedulerConfiguration v1.")
        ] = None,
    ) -> MadeCluster:
        """Make a cluster of nodes, pods, workloads and other manifests. Nothing is scheduled before `run`."""
        asked: dict[str, Any] = {"name": name, "config": scheduler_config}
        if kubernetes_release is not None:
            asked["kubernetesRelease"] = kubernetes_release
        made = await self._ask("POST", "clusters/", asked)
        path = f"clusters/{made['id']}/"
        try:
            applied = await self._apply(path, yaml)
        except ToolError:
            # What cannot be applied leaves nothing behind.
            await self._ask("DELETE", path)
            raise
        found = await self._ask("GET", path)
        return MadeCluster(
            cluster=found["id"],
            page=self._instance.page(found["page"]),
            kubernetes_release=found["kubernetesRelease"],
            nodes=found["nodes"],
            pods=found["pods"],
            applied=applied,
        )

    async def submit(self, cluster: ClusterId, yaml: Manifests) -> Applied:
        """Create or change objects of a cluster: a pod to try, or the change of a manifest. All of it or nothing."""
        return await self._apply(f"clusters/{part(cluster)}/", yaml)

    async def run(
        self,
        cluster: ClusterId,
        ctx: Context[Any, Any],
        until: Annotated[
            str, Field(description="idle, cycle (one decision), or a duration such as 30s.")
        ] = "idle",
        max_cycles: Annotated[
            int, Field(ge=1, le=1_000_000, description="It stops after so many decisions.")
        ] = 100_000,
    ) -> RunResult:
        """Schedule: let the cluster's time go on until nothing is left to happen by itself."""
        asked = {"until": until, "maxCycles": max_cycles}
        row = await self._ask("POST", f"clusters/{part(cluster)}/run", asked)

        async def told(row: Mapping[str, Any]) -> None:
            words = f"{row['cyclesDone']:,} cycles, {row['podsBound']:,} pods bound"
            await ctx.report_progress(float(row["progress"] or 0), 1.0, row["message"] or words)

        row = await self._awaited(row, ("done", "cancelled", "failed"), told)
        if row["state"] == "failed":
            raise ToolError(f"the run failed: {row['message']}")
        found = await self._ask("GET", f"clusters/{part(cluster)}/")
        return RunResult(
            state=row["state"],
            cycles=row["cyclesDone"],
            bound=found["bound"],
            pending=found["pending"],
            pending_pods=await self._pending(cluster) if found["pending"] else [],
            stop=row["stop"] or "",
            clock=row["clock"] or found["clock"]["now"],
            page=self._instance.page(found["page"]),
        )

    async def why_pending(self, cluster: ClusterId, pod: PodName) -> WhyPending:
        """Why a pod has no node: what rejects it on how many nodes, in Kubernetes' words; or where it is.

        Of a workload's name: why its first pending pod has none, and which others are pending.
        """
        story, others = await self._found(cluster, pod)
        name = story["pod"]
        query = {"pod": name, "limit": "1"}
        cycles = (await self._ask("GET", f"clusters/{part(cluster)}/cycles/", query=query))["items"]
        last = cycles[0] if cycles else None
        queue = story["queue"]
        if not story["exists"]:
            state = "gone"
        elif story["node"]:
            state = "bound"
        else:
            state = queue["lane"] if queue else "none"
        reasons = []
        if last is not None and state not in ("bound", "gone"):
            reasons = _reasons(await self._explained(last["url"]))
        waits = story["waitsFor"] or (queue or {}).get("reason")
        if state == "bound" and last is None:
            sentence = f"{name} is on {story['node']} without a decision of this cluster's."
        elif last is not None and state not in ("gated", "foreign"):
            sentence = last["sentence"]
        else:
            sentence = f"{name} waits: {waits}" if waits else f"{name} is not decided yet; run the cluster."
        return WhyPending(
            pod=name,
            state=state,
            node=story["node"],
            sentence=sentence,
            message=last["message"] if last and state != "bound" else waits,
            reasons=reasons,
            attempts=(queue or {}).get("attempts") or (last["attempt"] if last else 0),
            cycle=last["cycle"] if last else None,
            also_pending=others,
            page=self._instance.page(f"/c/{cluster}/cycles/{last['cycle']}/" if last else f"/c/{cluster}/"),
        )

    async def fix(
        self,
        cluster: ClusterId,
        ctx: Context[Any, Any],
        pod: Annotated[
            str, Field(description="NAMESPACE/NAME, or a workload's; empty: all that is pending.")
        ] = "",
    ) -> Fixes:
        """Why pods wait and what places them: fixes that keep what was asked for first, each proved on a copy.

        Of a workload's name: of its first pending pod, whose fixes are those of all pods like it.
        """
        asked = {"pod": (await self._found(cluster, pod))[0]["pod"]} if pod else {}
        row = await self._question("POST", f"clusters/{part(cluster)}/fix", asked, ctx)
        answer = row["answer"]
        best = answer["best"]
        listed = answer["fixes"] or [item["best"] for item in answer["workloads"] if item["best"]]
        return Fixes(
            name=answer["name"],
            headline=answer["headline"],
            best="" if best is None else f"{best['title']}: {best['price']}, {best['harm']}",
            fixes=[
                ProvedFix(**{name: item[name] for name in ProvedFix.model_fields if name in item})
                for item in listed[:SHOWN]
            ],
            page=self._instance.page(f"/c/{cluster}/"),
        )

    async def plan(
        self,
        cluster: ClusterId,
        ask: Annotated[
            Literal["drain", "lose", "any-node", "any-domain", "headroom", "backlog", "consolidate"],
            Field(
                description="drain or lose (nodes or label), any-node, any-domain (label: KEY), headroom (how many "
                "more pods fit), backlog (what places all pending pods), consolidate (which nodes can go)"
            ),
        ],
        ctx: Context[Any, Any],
        nodes: Annotated[list[str] | None, Field(description="Of drain and lose.")] = None,
        label: Annotated[
            str | None, Field(description="KEY=VALUE of drain and lose, KEY of any-domain.")
        ] = None,
        workload: Annotated[
            str | None, Field(description="`KIND NAMESPACE/NAME`, of headroom and backlog.")
        ] = None,
    ) -> PlanAnswer:
        """A question about the whole cluster, answered by decisions on a copy. Nothing of the cluster changes."""
        asked = {"ask": ask, "nodes": nodes, "label": label, "workload": workload}
        body = {key: value for key, value in asked.items() if value is not None}
        row = await self._question("POST", f"clusters/{part(cluster)}/plan", body, ctx)
        answer = row["answer"]
        return PlanAnswer(
            verdict=answer["verdict"],
            tone=answer["tone"],
            lines=[
                PlanLine(
                    text=(f"{line['node']}: " if line.get("node") else "") + line["text"],
                    note=line.get("note") or "",
                )
                for line in answer["lines"][:SHOWN]
            ],
            lines_in_all=answer["nLines"],
            moves=[f"{move['pod']}: {move['from']} -> {move['to']}" for move in answer["moves"][:SHOWN]],
            moves_in_all=answer["nMoves"],
            page=self._instance.page(f"/c/{cluster}/plan/"),
        )

    async def share(
        self,
        cluster: ClusterId,
        title: Annotated[str, Field(description="One line for people.")] = "",
        redact: Annotated[bool, Field(description="Other names, the same decisions.")] = False,
        days: Annotated[
            int | None, Field(ge=1, le=3660, description="It expires after so many days.")
        ] = None,
        visibility: Literal["public", "unlisted", "team", "private"] | None = None,
    ) -> Shared:
        """A link to the cluster and everything decided in it, which anybody can replay decision for decision."""
        asked = {"title": title or None, "redact": redact or None, "days": days, "visibility": visibility}
        body = {key: value for key, value in asked.items() if value is not None}
        made = await self._ask("POST", f"clusters/{part(cluster)}/scenario", body)
        return Shared(
            page=made["page"],
            id=made["id"],
            digest=made["digest"],
            visibility=made["visibility"],
            notes=[str(note) for note in made.get("notes") or []],
        )

    # ---- pods

    async def _pending(self, cluster: str, namespace: str = "") -> list[str]:
        """Names of the first pending pods, of all namespaces or of one."""
        query = {"fieldSelector": "spec.nodeName=,status.phase=Pending", "limit": str(SHOWN)}
        query |= {"namespace": namespace} if namespace else {}
        return [
            _key(item)
            for item in (await self._ask("GET", f"clusters/{part(cluster)}/pods/", query=query))["items"]
        ]

    async def _found(self, cluster: str, name: str) -> tuple[Any, list[str]]:
        """The story of a pod, or of the first pending pod of the workload of that name, and its other pending ones."""
        try:
            return await self._ask("GET", f"{pod_path(cluster, name)}/story"), []
        except ToolError as error:
            if 'pods "' not in str(error):
                raise
            refused = error
        namespace, _, short = name.rpartition("/")
        namespace = namespace or "default"
        # Pods of a workload begin with its name, and `-` comes before all that a name may go on with.
        query = {"namespace": namespace, "after": f"{namespace}/{short}", "limit": str(MOST_OF_A_WORKLOAD)}
        listed = (await self._ask("GET", f"clusters/{part(cluster)}/pods/", query=query))["items"]
        owned = [item for item in listed if _is_of(item, short)]
        waiting = [_key(item) for item in owned if not item["spec"].get("nodeName")]
        if owned:
            first, *others = waiting or [_key(owned[0])]
            return await self._ask("GET", f"{pod_path(cluster, first)}/story"), others[
                :SHOWN
            ] if waiting else []
        there = await self._pending(cluster)
        raise ToolError(f"{refused}; pending pods: {', '.join(there) if there else 'none'}")

    # ---- requests

    async def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | str | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        if method == "POST" and body is None:
            body = {}
        try:
            _, answer = await anyio.to_thread.run_sync(
                lambda: self._instance.ask(method, path, body, query), abandon_on_cancel=True
            )
        except Refused as error:
            raise ToolError(str(error)) from None
        return answer

    async def _apply(self, path: str, yaml: str) -> Applied:
        """Apply manifests; a large text is applied by a worker, through a draft."""
        answer = await self._ask("POST", f"{path}apply", yaml)
        if "created" in answer:
            return _applied(answer)

        async def told(row: Mapping[str, Any]) -> None:
            """A client that waits for `submit` asks for no progress."""

        row = await self._awaited(answer, ("done", "failed", "cancelled"), told)
        if row["state"] != "done":
            raise ToolError(f"nothing was applied: {row['problem'] or row['state']}")
        return _applied_by_worker(row["preview"])

    async def _question(self, method: str, path: str, body: Any, ctx: Context[Any, Any]) -> Any:
        row = await self._ask(method, path, body)

        async def told(row: Mapping[str, Any]) -> None:
            progress = row["progress"]
            await ctx.report_progress(progress["done"], progress["total"] or None, progress["doing"] or None)

        row = await self._awaited(row, ("done", "failed", "cancelled"), told)
        if row["state"] != "done":
            raise ToolError(f"the question was not answered: {row['error'] or row['state']}")
        return row

    async def _awaited(self, row: Any, ends: Sequence[str], told: Any) -> Any:
        """A run or question at its end; cancelled there if the client cancels here."""
        wait_s = FIRST_LOOK_S
        try:
            while row["state"] not in ends:
                await told(row)
                await anyio.sleep(wait_s)
                wait_s = min(wait_s * 1.5, LOOK_EVERY_S)
                row = await self._ask("GET", row["url"])
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._ask("DELETE", row["url"])
            raise
        return row

    async def _explained(self, url: str) -> Mapping[str, Any]:
        """A cycle's explanation; one of which only the summary was kept is decided again first."""
        for _ in range(60):
            found: Mapping[str, Any] = await self._ask("GET", url)
            if "points" in found or "traceNote" in found:
                return found
            await anyio.sleep(LOOK_EVERY_S / 2)
        return found


def _key(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _is_of(pod: Mapping[str, Any], workload: str) -> bool:
    """Whether a pod is owned by a workload of that name, or by a ReplicaSet or Job that one made."""
    owners = [str(owner["name"]) for owner in pod["metadata"].get("ownerReferences") or ()]
    return any(owner == workload or owner.rpartition("-")[0] == workload for owner in owners)


def _applied(answer: Mapping[str, Any]) -> Applied:
    ignored = [f"{one['kind']} {one['name']}: {one['reason']}" for one in answer["ignored"]]
    return Applied(
        created=len(answer["created"]),
        configured=len(answer["configured"]),
        unchanged=len(answer["unchanged"]),
        ignored=ignored[:SHOWN],
        warnings=[_words(warning) for warning in answer.get("warnings") or []][:SHOWN],
    )


def _applied_by_worker(preview: Mapping[str, Any]) -> Applied:
    counts = preview["counts"]
    ignored = [f"{one['name']}: {one['detail']}" for one in preview["ignored"]["changes"]]
    return Applied(
        created=counts["create"],
        configured=counts["update"],
        unchanged=counts["unchanged"],
        ignored=ignored[:SHOWN],
        warnings=preview["leftOut"][:SHOWN],
    )


def _words(warning: Any) -> str:
    return warning if isinstance(warning, str) else json.dumps(warning, ensure_ascii=False)


def _reasons(explained: Mapping[str, Any]) -> list[Reason]:
    return [
        Reason(plugin=plugin, reason=reason, nodes=len(nodes), examples=nodes[:EXAMPLES])
        for plugin, reason, nodes in reasons_of(explained)[:SHOWN]
    ]


def main(arguments: Sequence[str]) -> None:
    """Serve the tools on standard input and output."""
    parser = argparse.ArgumentParser(
        prog="kube-scheduler-playground mcp",
        description="Tools for agents (Model Context Protocol) over stdio, on a running playground.",
    )
    parser.add_argument(
        "--server", help="address of the playground (PLAYGROUND_SERVER, or http://127.0.0.1:8000)"
    )
    options = parser.parse_args(arguments)
    try:
        instance = Instance(options.server)
    except Refused as error:
        parser.error(str(error))
    server_of(instance).run("stdio")
