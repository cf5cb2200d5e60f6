"""`kube-scheduler-playground mcp`: nine tools over stdio, so that an agent can try a change before it proposes it.

`mcp_tools.yaml` declares them. Each is a few requests to an instance's REST API (`instance.py`). Work that takes a
while tells its progress; when the client cancels, it is cancelled in the instance too.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import anyio
import jsonschema
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

from playground.remote.instance import Instance, Refused, part, pod_path, reasons_of
from scheduler_core.schema.tables import table_beside
from scheduler_core.version import ENGINE_VERSION

SHOWN: Final = 20
EXAMPLES: Final = 5
MOST_OF_A_WORKLOAD: Final = 500
FIRST_LOOK_S: Final = 0.1
LOOK_EVERY_S: Final = 1.0
ENDS: Final = ("done", "cancelled", "failed")
INSTRUCTIONS: Final = (
    "A deterministic kube-scheduler. Make a cluster of manifests (kubectl get -o yaml), run it, ask why a pod is "
    "pending and what it would take, submit the change, run again. Nothing here touches a real cluster."
)
_TABLE: Final[Mapping[str, Mapping[str, Any]]] = table_beside(__package__, "mcp_tools.yaml")
Tell = Callable[[Mapping[str, Any]], tuple[float, float | None, str | None]]
"""Progress of a run or question: done, of how much, in words."""


def _declared(name: str) -> Tool:
    said = _TABLE[name]
    taken, answers = said["takes"], said["answers"]
    required = [argument for argument, schema in taken.items() if "default" not in schema]
    strict = {"type": "object", "properties": taken, "required": required, "additionalProperties": False}
    answered = {"type": "object", "properties": answers, "required": list(answers)}
    return Tool(name=name, description=said["description"], input_schema=strict, output_schema=answered)


def server_of(instance: Instance) -> Server[Any]:
    """The server with its nine tools."""
    tools = {name: _declared(name) for name in _TABLE}

    async def listed(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=list(tools.values()))

    async def called(
        context: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult:
        given = params.arguments or {}
        try:
            if params.name not in tools:
                raise Refused(f'there is no tool "{params.name}"')
            jsonschema.validate(given, tools[params.name].input_schema)
            taken = _TABLE[params.name]["takes"].items()
            wanted = {name: schema["default"] for name, schema in taken if "default" in schema} | given
            answer = await getattr(Tools(instance, context), params.name)(**wanted)
        except (Refused, jsonschema.ValidationError) as error:
            place = "".join(f"{step}: " for step in getattr(error, "path", ()))
            said = f"{place}{getattr(error, 'message', error)}"
            return CallToolResult(content=[TextContent(type="text", text=said)], is_error=True)
        text = json.dumps(answer, ensure_ascii=False, indent=1)
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=answer)

    return Server(
        "kube-scheduler-playground",
        version=ENGINE_VERSION,
        instructions=INSTRUCTIONS,
        on_list_tools=listed,
        on_call_tool=called,
    )


class Tools:
    """The tools, by their names, for one call."""

    def __init__(self, instance: Instance, context: ServerRequestContext[Any, Any]) -> None:
        self._instance = instance
        self._context = context

    async def create_cluster(
        self,
        yaml: str,
        name: str,
        kubernetes_release: str | None,
        scheduler_config: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        asked: dict[str, Any] = {"name": name, "config": scheduler_config}
        if kubernetes_release is not None:
            asked["kubernetesRelease"] = kubernetes_release
        path = f"clusters/{(await self._ask('POST', 'clusters/', asked))['id']}/"
        try:
            applied = await self._apply(path, yaml)
        except Refused:
            # What cannot be applied leaves nothing behind.
            await self._ask("DELETE", path)
            raise
        found = await self._ask("GET", path)
        page = self._instance.page(found["page"])
        release, counts = found["kubernetesRelease"], {key: found[key] for key in ("nodes", "pods")}
        return {
            "cluster": found["id"],
            "page": page,
            "kubernetes_release": release,
            **counts,
            "applied": applied,
        }

    async def submit(self, cluster: str, yaml: str) -> dict[str, Any]:
        return await self._apply(f"clusters/{part(cluster)}/", yaml)

    async def run(self, cluster: str, until: str, max_cycles: int) -> dict[str, Any]:
        asked = {"until": until, "maxCycles": max_cycles}

        def told(row: Mapping[str, Any]) -> tuple[float, float | None, str | None]:
            words = f"{row['cyclesDone']:,} cycles, {row['podsBound']:,} pods bound"
            return float(row["progress"] or 0), 1.0, row["message"] or words

        row = await self._awaited(await self._ask("POST", f"clusters/{part(cluster)}/run", asked), told)
        if row["state"] == "failed":
            raise Refused(f"the run failed: {row['message']}")
        found = await self._ask("GET", f"clusters/{part(cluster)}/")
        return {
            "state": row["state"],
            "cycles": row["cyclesDone"],
            "bound": found["bound"],
            "pending": found["pending"],
            "pending_pods": await self._pending(cluster) if found["pending"] else [],
            "stop": row["stop"] or "",
            "clock": row["clock"] or found["clock"]["now"],
            "page": self._instance.page(found["page"]),
        }

    async def why_pending(self, cluster: str, pod: str) -> dict[str, Any]:
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
            reasons = reasons_of(await self._explained(last["url"]))[:SHOWN]
        waits = story["waitsFor"] or (queue or {}).get("reason")
        if state == "bound" and last is None:
            sentence = f"{name} is on {story['node']} without a decision of this cluster's."
        elif last is not None and state not in ("gated", "foreign"):
            sentence = last["sentence"]
        else:
            sentence = f"{name} waits: {waits}" if waits else f"{name} is not decided yet; run the cluster."
        return {
            "pod": name,
            "state": state,
            "node": story["node"],
            "sentence": sentence,
            "message": last["message"] if last and state != "bound" else waits,
            "reasons": [
                {"plugin": plugin, "reason": reason, "nodes": len(nodes), "examples": nodes[:EXAMPLES]}
                for plugin, reason, nodes in reasons
            ],
            "attempts": (queue or {}).get("attempts") or (last["attempt"] if last else 0),
            "cycle": last["cycle"] if last else None,
            "also_pending": others,
            "page": self._instance.page(
                f"/c/{cluster}/cycles/{last['cycle']}/" if last else f"/c/{cluster}/"
            ),
        }

    async def fix(self, cluster: str, pod: str) -> dict[str, Any]:
        asked = {"pod": (await self._found(cluster, pod))[0]["pod"]} if pod else {}
        answer = await self._question(f"clusters/{part(cluster)}/fix", asked)
        best = answer["best"]
        listed = answer["fixes"] or [item["best"] for item in answer["workloads"] if item["best"]]
        shown = _TABLE["fix"]["answers"]["fixes"]["items"]["properties"]
        return {
            "name": answer["name"],
            "headline": answer["headline"],
            "best": "" if best is None else f"{best['title']}: {best['price']}, {best['harm']}",
            "fixes": [{name: item[name] for name in shown if name in item} for item in listed[:SHOWN]],
            "page": self._instance.page(f"/c/{cluster}/"),
        }

    async def plan(self, cluster: str, **asked: Any) -> dict[str, Any]:
        body = {key: value for key, value in asked.items() if value is not None}
        answer = await self._question(f"clusters/{part(cluster)}/plan", body)
        return {
            "verdict": answer["verdict"],
            "tone": answer["tone"],
            "comparison": answer.get("comparison"),
            "lines": [
                {
                    "text": (f"{line['node']}: " if line.get("node") else "") + line["text"],
                    "note": line.get("note") or "",
                }
                for line in answer["lines"][:SHOWN]
            ],
            "lines_in_all": answer["nLines"],
            "moves": [f"{move['pod']}: {move['from']} -> {move['to']}" for move in answer["moves"][:SHOWN]],
            "moves_in_all": answer["nMoves"],
            "page": self._instance.page(f"/c/{cluster}/plan/"),
        }

    async def controllers(self, cluster: str, loops: bool) -> dict[str, Any]:
        path = f"clusters/{part(cluster)}/"
        now = await self._ask("GET", f"{path}controllers/")
        kept = await self._ask("GET", f"{path}controllers/runs/", query={"limit": str(SHOWN)})
        found: dict[str, Any] = {"loop": None, "failure": None, "cures": [], "tried": []}
        if loops:
            row = await self._awaited(await self._ask("POST", f"{path}loops/"))
            if row["state"] != "done":
                raise Refused(f"no loop was looked for: {row['error'] or row['state']}")
            found = row["answer"]
        nodes: dict[str, list[str]] = {}
        for one in now["nodes"]:
            nodes.setdefault(f"{one['text']} ({one['controller']})", []).append(one["node"])
        pods: dict[str, list[str]] = {}
        for one in now["pods"]:
            pods.setdefault(one["text"], []).append(one["pod"])
        runs = [
            f"{run['at']} {run['controller']}: {act['text']}" for run in kept["items"] for act in run["did"]
        ]
        return {
            "state": now["state"],
            "sentence": now["sentence"],
            "nodes": [f"{_first(names)}: {text}" for text, names in nodes.items()][:SHOWN],
            "pods": [f"{_first(names)}: {text}" for text, names in pods.items()][:SHOWN],
            "runs": runs[:SHOWN],
            "loop": found["loop"],
            "failure": found["failure"],
            "cures": [cure["sentence"] for cure in found["cures"]],
            "tried": [f"{one['sentence']}: {one['why']}" for one in found["tried"]],
            "page": self._instance.page(f"/c/{cluster}/controllers/"),
        }

    async def live(self, cluster: str) -> dict[str, Any]:
        path = f"clusters/{part(cluster)}/"
        now = await self._ask("GET", f"{path}following/")
        differ = await self._ask("GET", f"{path}judge/", query={"verdict": "disagree"})
        return {
            **{name: now[name] for name in ("state", "judged", "counts", "causes")},
            "differ": [
                f"{one['at']} {one['pod']} on {one['node'] or 'no node'}, "
                f"ours {one['ours']['node'] or 'no node'}: {one['why']}"
                for one in differ["items"][:SHOWN]
            ],
            "pending": [
                f"{one['pods']} of {one['name']} since {one['since']}: "
                f"{one['plugin'] or one['reason'] or 'not tried yet'} {one['message']}".rstrip()
                for one in now["pending"][:SHOWN]
            ],
            "not_known": [one["what"] for one in now["notKnown"]],
            "page": self._instance.page(f"/c/{cluster}/followed/"),
        }

    async def share(self, cluster: str, **asked: Any) -> dict[str, Any]:
        body = {key: value for key, value in asked.items() if value}
        made = await self._ask("POST", f"clusters/{part(cluster)}/scenario", body)
        return {name: made[name] for name in _TABLE["share"]["answers"]}

    # ---- pods

    async def _pending(self, cluster: str) -> list[str]:
        """Names of the first pending pods."""
        query = {"fieldSelector": "spec.nodeName=,status.phase=Pending", "limit": str(SHOWN)}
        listed = await self._ask("GET", f"clusters/{part(cluster)}/pods/", query=query)
        return [_key(item) for item in listed["items"]]

    async def _found(self, cluster: str, name: str) -> tuple[Any, list[str]]:
        """The story of a pod, or of the first pending pod of the workload of that name, and its other pending ones."""
        try:
            return await self._ask("GET", f"{pod_path(cluster, name)}/story"), []
        except Refused as error:
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
            return await self._ask("GET", f"{pod_path(cluster, first)}/story"), others[:SHOWN]
        there = await self._pending(cluster)
        raise Refused(f"{refused}; pending pods: {', '.join(there) if there else 'none'}")

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
        _, answer = await anyio.to_thread.run_sync(
            lambda: self._instance.ask(method, path, body, query), abandon_on_cancel=True
        )
        return answer

    async def _apply(self, path: str, yaml: str) -> dict[str, Any]:
        """Apply manifests; a large text is applied by a worker, through a draft."""
        answer = await self._ask("POST", f"{path}apply", yaml)
        if "created" in answer:
            counts = {verb: len(answer[verb]) for verb in ("created", "configured", "unchanged")}
            ignored = [f"{one['kind']} {one['name']}: {one['reason']}" for one in answer["ignored"]]
            warnings = [
                said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
                for said in answer.get("warnings") or ()
            ]
        else:
            row = await self._awaited(answer)
            if row["state"] != "done":
                raise Refused(f"nothing was applied: {row['problem'] or row['state']}")
            preview = row["preview"]
            verbs = {"created": "create", "configured": "update", "unchanged": "unchanged"}
            counts = {verb: preview["counts"][key] for verb, key in verbs.items()}
            ignored = [f"{one['name']}: {one['detail']}" for one in preview["ignored"]["changes"]]
            warnings = preview["leftOut"]
        return {**counts, "ignored": ignored[:SHOWN], "warnings": warnings[:SHOWN]}

    async def _question(self, path: str, body: Any) -> Any:
        def told(row: Mapping[str, Any]) -> tuple[float, float | None, str | None]:
            progress = row["progress"]
            return progress["done"], progress["total"] or None, progress["doing"] or None

        row = await self._awaited(await self._ask("POST", path, body), told)
        if row["state"] != "done":
            raise Refused(f"the question was not answered: {row['error'] or row['state']}")
        return row["answer"]

    async def _awaited(self, row: Any, told: Tell | None = None) -> Any:
        """A run or question at its end; cancelled there if the client cancels here."""
        wait_s = FIRST_LOOK_S
        try:
            while row["state"] not in ENDS:
                if told is not None:
                    await self._context.session.report_progress(*told(row))
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


def _first(names: Sequence[str]) -> str:
    more = f" and {len(names) - EXAMPLES:,} more" if len(names) > EXAMPLES else ""
    return ", ".join(names[:EXAMPLES]) + more


def _key(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _is_of(pod: Mapping[str, Any], workload: str) -> bool:
    """Whether a pod is owned by a workload of that name, or by a ReplicaSet or Job that one made."""
    owners = [str(owner["name"]) for owner in pod["metadata"].get("ownerReferences") or ()]
    return any(owner == workload or owner.rpartition("-")[0] == workload for owner in owners)


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
        server = server_of(Instance(options.server))
    except Refused as error:
        parser.error(str(error))

    async def serve() -> None:
        async with stdio_server() as (reads, writes):
            await server.run(reads, writes, server.create_initialization_options())

    anyio.run(serve)
