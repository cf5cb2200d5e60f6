"""What an import will do and what a dump shows, in words and rows for the preview."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from playground.clusters.board.nodes import NodeUse
from playground.web import amounts
from playground.web.look import view_landing
from playground.web.looks import made_of
from playground.web.questions.fixes import view_fix

DUMP_LINE = "kubectl get nodes,pods,deploy,rs,sts,ds,jobs,pdb,pc,pv,pvc,sc,csinodes -A -o yaml > cluster.yaml"
"""Brings what answers hang on: owners too, without which nothing would recreate a deleted pod."""
CLASS_LINE = "kubectl get pc -o yaml > classes.yaml"
PODS_NAMED = 12
"""Of a group of pending pods."""


def view_import(summary: Mapping[str, Any], answer: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The preview of `drafts.summary_of` and, of a new cluster, of what else a draft found: for `clusters/dump.html`.

    Returns
    -------
    dict
        The `summary`, the `facts` of a draft, or None, what is said of owners `missing` or `rebuilt`, the `dump`
        before it becomes a cluster, or None, its best `fix` (`view_fix`), or None, and a `map` of its nodes.
    """
    facts = (answer or {}).get("facts")
    fix = (answer or {}).get("fix")
    nodes = [made_of(NodeUse, one) for one in (answer or {}).get("nodes", ())]
    return {
        "summary": summary,
        "facts": facts,
        "missing": missing_words(summary["missingOwners"]),
        "rebuilt": rebuilt_words(summary["rebuilt"]),
        "dump": _dump(facts, (answer or {}).get("decided"), fix) if facts and facts["nodes"] else None,
        "fix": view_fix(fix, nodes) if fix else None,
        "map": view_landing(nodes, ()) if nodes and not fix else None,
    }


def rebuilt_words(rebuilt: Mapping[str, int]) -> str:
    """Which owners are made from their pods; empty where none is."""
    if not rebuilt:
        return ""
    n = sum(rebuilt.values())
    kinds = ", ".join(_number(of, kind) for kind, of in rebuilt.items())
    if n == 1:
        return f"1 owner is not in this text and is recreated from its pods ({kinds})."
    return f"{n:,} owners are not in this text and are recreated from their pods ({kinds})."


def missing_words(owners: Mapping[str, int]) -> str:
    """A sentence on pods without their owners; empty where all are here."""
    n_pods = sum(owners.values())
    if not n_pods:
        return ""
    kinds = ", ".join(f"{kind} of {n:,}" for kind, n in owners.items())
    pods = "1 pod names an owner that is" if n_pods == 1 else f"{n_pods:,} pods name owners that are"
    return f"{pods} not in this text ({kinds}): nothing recreates a pod that is deleted or evicted here."


def import_hint(problems: Sequence[Mapping[str, Any]]) -> dict[str, str] | None:
    """Advice on a text that was refused, where its first problem is one that many meet.

    A `title`, `words`, and the `line` that brings what is missing.
    """
    first = problems[0] if problems else None
    if first is None:
        return None
    if first["message"].startswith("no PriorityClass with name "):
        words = (
            "Pods name classes that are not in this text. Dump them too, and add them to it after a line ---."
        )
        return {"title": "Priority classes are missing.", "words": words, "line": CLASS_LINE}
    written = first["excerpt"][0][1] if first["excerpt"] else ""
    if first["line"] == 1 and re.match(r"(NAMESPACE|NAME) {2,}", written):
        words = "It becomes a dump with -o yaml:"
        return {"title": "This is the table kubectl prints.", "words": words, "line": DUMP_LINE}
    if any(is_bad and text.lstrip(" ").startswith("\t") for _, text, is_bad in first["excerpt"]):
        return {"title": "A line is indented by a tab.", "words": "YAML is indented by spaces only."}
    return None


def _dump(
    facts: Mapping[str, Any], decided: Mapping[str, Any] | None, fix: Mapping[str, Any] | None
) -> dict[str, Any]:
    fixes = {item["name"]: item for item in (fix or {}).get("workloads", ())}
    zones: list[str] = facts["zones"]
    outcomes: Mapping[str, Any] = (decided or {}).get("pods", {})
    reasons: Counter[str] = Counter()
    for group in facts["groups"]:
        for pod in group["pods"]:
            if (told := outcomes.get(pod)) and not told["node"]:
                reasons[told["causes"][0]["reason"] if told["causes"] else told["message"]] += 1
            elif group["gated"]:
                reasons["held back by a scheduling gate"] += 1
    return {
        "facts": facts,
        "verdict": _verdict(facts, outcomes if decided else None),
        "groups": [
            _pending(group, outcomes if decided else None, facts["nodes"])
            | {"fix": fixes.get(f"{group['kind']} {group['namespace']}/{group['name']}")}
            for group in facts["groups"]
        ],
        "by_reason": sorted(reasons.items(), key=lambda item: (-item[1], item[0])),
        "pools": [_pool(pool, zones) for pool in facts["pools"]],
        "said_none": [not outcomes[pod]["node"] for pod in facts["saidUnschedulable"] if pod in outcomes],
        "zones": [zone or "no zone" for zone in zones],
        "n_evicted": len((decided or {}).get("evicted", ())),
        "problem": (decided or {}).get("problem", ""),
    }


def _verdict(facts: Mapping[str, Any], outcomes: Mapping[str, Any] | None) -> str:
    """The sentence on top."""
    pending = facts["pending"]
    if not pending:
        return f"All {_number(facts['placed'], 'pod')} have a node: none is pending."
    words = f"{_number(pending, 'pod')} {'is' if pending == 1 else 'are'} pending"
    if outcomes is None:
        return f"{words}."
    placed = sum(bool(told["node"]) for told in outcomes.values())
    undecided = pending - len(outcomes) - sum(group["count"] for group in facts["groups"] if group["gated"])
    if undecided > 0 and not facts["moreGroups"]:
        return f"{words}; {undecided:,} {'was' if undecided == 1 else 'were'} not decided, for want of time."
    left = pending - placed
    if not left:
        return (
            f"{words}, and {'it gets' if pending == 1 else 'all of them get'} a node when the scheduler runs."
        )
    if not placed:
        return f"{words}, and {'it finds no node' if left == 1 else 'none of them finds a node'}."
    gets, does = ("gets" if placed == 1 else "get"), ("does" if left == 1 else "do")
    return f"{words}: {placed:,} {gets} a node when the scheduler runs, {left:,} {does} not."


def _pending(group: Mapping[str, Any], outcomes: Mapping[str, Any] | None, n_nodes: int) -> dict[str, Any]:
    """Pending pods of one workload that are alike.

    `causes` keep them off how many nodes, in the scheduler's words; `n_placed` of them get a node, None while that is
    not known.
    """
    told = [outcomes[pod] for pod in group["pods"] if pod in outcomes] if outcomes is not None else []
    without = [one for one in told if not one["node"]]
    causes: list[str] = []
    if group["gated"] and not told:
        causes = ["held back by a scheduling gate"]
    elif without:
        of = _number(n_nodes, "node")
        causes = [f"{one['reason']}: {one['nodes']:,} of {of}" for one in without[0]["causes"]]
    return {
        **group,
        "name": f"{group['namespace']}/{group['name']}",
        "wants": _wants(group["requests"]),
        "pods": group["pods"][:PODS_NAMED],
        "n_more": max(0, group["count"] - PODS_NAMED),
        "causes": causes,
        "message": without[0]["message"] if without else "",
        "n_placed": None if outcomes is None else len(told) - len(without),
    }


def _wants(requests: Mapping[str, int]) -> str:
    words = []
    for name, amount in requests.items():
        if amount:
            shown = {"cpu": amounts.cores, "memory": amounts.memory}.get(name, str)(amount)
            words.append(f"{shown} {name.rpartition('/')[2] if name != 'memory' else 'memory'}")
    return ", ".join(words) or "nothing"


def _pool(pool: Mapping[str, Any], zones: Sequence[str]) -> dict[str, Any]:
    """Nodes of one pool and instance type; `zones` in the order of the dump's, `others` resources than the usual."""
    none = {"cpu": 0, "memory": 0}
    has, used = none | pool["has"], none | pool["used"]
    others = sorted(name for name in has if name not in (*none, "pods", "ephemeral-storage") and has[name])
    return {
        **pool,
        "has": has,
        "used": used,
        "zones": [pool["zones"].get(zone, 0) for zone in zones],
        "others": [(name.rpartition("/")[2], used.get(name, 0), has[name]) for name in others],
    }


def _number(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


ZONE_LABEL = "topology.kubernetes.io/zone"


def preview(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of Node manifests by zone, and the first names."""
    zones = Counter(node["metadata"]["labels"].get(ZONE_LABEL, "no zone") for node in nodes)
    names = [node["metadata"]["name"] for node in nodes[:5]]
    return {"n_nodes": len(nodes), "zones": sorted(zones.items()), "names": names}
