"""What an import will do and what a dump shows, in words and rows for the preview."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from playground.web import amounts
from playground.web.questions.fixes import view_fix

if TYPE_CHECKING:
    from playground.clusters.row_types import Draft
    from playground.web.problems import Problem

DUMP_LINE = "kubectl get nodes,pods,deploy,rs,sts,ds,jobs,pdb,pc,pv,pvc,sc,csinodes -A -o yaml > cluster.yaml"
"""Brings what answers hang on: owners too, without which nothing would recreate a deleted pod."""
NODE_LINE = "kubectl get nodes -o yaml > nodes.yaml"
CLASS_LINE = "kubectl get pc -o yaml > classes.yaml"
OWNER_LINE = "kubectl get deploy,rs,sts,ds,jobs -A -o yaml > owners.yaml"
BUDGET_LINE = "kubectl get pdb -A -o yaml > budgets.yaml"
VOLUME_LINE = "kubectl get pv,pvc,sc,csinodes -A -o yaml > volumes.yaml"
PODS_NAMED = 12
"""Of a group of pending pods."""


@dataclass(frozen=True)
class Missing:
    """Something answers hang on: what is said, and the line that brings it; no line where nothing is missing."""

    title: str
    words: str
    line: str = ""


_DRAWN = {
    "create": ("ok", "plus"),
    "update": ("acc", "edit"),
    "unchanged": ("", "dash"),
    "ignored": ("", "no"),
}


def view_import(summary: Mapping[str, Any], answer: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The preview of `drafts.summary_of` and, of a new cluster, of what else a draft found: for `clusters/dump.html`.

    Returns
    -------
    dict
        `groups` of objects by kind, `ignored` ones (None without any), `counts` by verb, `left_out`, what is `missing`
        for better answers, the `dump` before it becomes a cluster, or None, and its best `fix` (`view_fix`), or None.
    """
    facts = (answer or {}).get("facts")
    return {
        "groups": list(map(_group, summary["kinds"])),
        "ignored": _group(summary["ignored"]) if summary["ignored"]["count"] else None,
        "counts": summary["counts"],
        "left_out": summary["leftOut"],
        "missing": _missing(summary, facts),
        "dump": _dump(facts, (answer or {}).get("decided")) if facts and facts["nodes"] else None,
        "fix": view_fix(answer["fix"]) if answer and answer.get("fix") else None,
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
    """What pods without their owners mean for answers; empty where all are here."""
    n_pods = sum(owners.values())
    if not n_pods:
        return ""
    kinds = ", ".join(f"{kind} of {n:,}" for kind, n in owners.items())
    pods = "1 pod names an owner that is" if n_pods == 1 else f"{n_pods:,} pods name owners that are"
    return f"{pods} not in this text ({kinds}): nothing recreates a pod that is deleted or evicted here."


def import_hint(problems: Sequence[Problem]) -> Missing | None:
    """What to do about a text that was refused, where its first problem is one that many meet."""
    first = problems[0] if problems else None
    if first is None:
        return None
    if first.message.startswith("no PriorityClass with name "):
        words = (
            "Pods name classes that are not in this text. Dump them too, and add them to it after a line ---."
        )
        return Missing("Priority classes are missing.", words, CLASS_LINE)
    written = first.excerpt[0].text if first.excerpt else ""
    if first.line == 1 and re.match(r"(NAMESPACE|NAME) {2,}", written):
        return Missing("This is the table kubectl prints.", "It becomes a dump with -o yaml:", DUMP_LINE)
    if any(line.bad and line.text.lstrip(" ").startswith("\t") for line in first.excerpt):
        return Missing("A line is indented by a tab.", "YAML is indented by spaces only.")
    return None


def _missing(summary: Mapping[str, Any], facts: Mapping[str, Any] | None) -> tuple[Missing, ...]:
    found = []
    if facts is not None and not facts["nodes"] and (facts["placed"] or facts["pending"]):
        words = "No Node is in this text, so no pod finds one."
        if facts["placed"]:
            words += (
                f" Pods that are on a node ({facts['placed']:,}) are removed as those of a lost node are."
            )
        found.append(Missing("Nodes are missing.", words, NODE_LINE))
    if words := missing_words(summary["missingOwners"]):
        found.append(Missing("Owners are missing.", words, OWNER_LINE))
    elif words := rebuilt_words(summary["rebuilt"]):
        found.append(
            Missing(
                "Owners are recreated from their pods.",
                f"{words} How many replicas are wanted is taken from the pods that are there.",
                OWNER_LINE,
            )
        )
    if facts is None or not facts["nodes"]:
        return tuple(found)
    if not (summary["missingOwners"] or summary["rebuilt"]) and facts["placed"]:
        found.append(Missing("Owners are here:", "they recreate a pod that is deleted or evicted."))
    if facts["budgets"]:
        found.append(
            Missing("Disruption budgets are here:", f"{_number(facts['budgets'], 'PodDisruptionBudget')}.")
        )
    elif facts["placed"]:
        found.append(
            Missing(
                "Disruption budgets are missing.",
                "No PodDisruptionBudget is in this text: drains and preemptions are answered as if all pods may go"
                " at once.",
                BUDGET_LINE,
            )
        )
    if n := facts["claimsMissing"]:
        claims = "1 PersistentVolumeClaim that a pod names is" if n == 1 else (
            f"{n:,} PersistentVolumeClaims that pods name are"
        )  # fmt: skip
        found.append(
            Missing(
                "Volumes are missing.",
                f"{claims} not in this text: pending pods that need them find no node.",
                VOLUME_LINE,
            )
        )
    return tuple(found)


def _dump(facts: Mapping[str, Any], decided: Mapping[str, Any] | None) -> dict[str, Any]:
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
            _pending(group, outcomes if decided else None, facts["nodes"]) for group in facts["groups"]
        ],
        "by_reason": sorted(reasons.items(), key=lambda item: (-item[1], item[0])),
        "pools": [_pool(pool, zones) for pool in facts["pools"]],
        "zones": [zone or "no zone" for zone in zones],
        "n_evicted": len((decided or {}).get("evicted", ())),
        "agrees": _agreement(facts, outcomes) if decided else "",
        "problem": (decided or {}).get("problem", ""),
    }


def _verdict(facts: Mapping[str, Any], outcomes: Mapping[str, Any] | None) -> str:
    """The sentence on top."""
    pending = facts["pending"]
    if not pending:
        return f"All {_number(facts['placed'], 'pod')} have a node: none is pending."
    words = f"{_number(pending, 'pod')} {_is(pending)} pending"
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


def _agreement(facts: Mapping[str, Any], outcomes: Mapping[str, Any]) -> str:
    """Whether the dump's scheduler said the same of the pods it found no node for."""
    said = [pod for pod in facts["saidUnschedulable"] if pod in outcomes]
    if not said:
        return ""
    same = sum(not outcomes[pod]["node"] for pod in said)
    pods = "1 pod" if len(said) == 1 else f"{len(said):,} pods"
    if same == len(said):
        return f"Your scheduler had found no node for {pods} of these, and neither does this one."
    return (
        f"Your scheduler had found no node for {pods} of these; this one finds none for {same:,} of them: the cluster"
        " has changed since, or the dump does not hold everything."
    )


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
    """Nodes of one pool and instance type; `zones` in the order of the dump's."""
    has, used = pool["has"], pool["used"]
    others = [
        name for name in has if name not in ("cpu", "memory", "pods", "ephemeral-storage") and has[name]
    ]
    return {
        "name": pool["pool"],
        "type": pool["type"] if pool["type"] != pool["pool"] else "",
        "n_nodes": pool["nodes"],
        "zones": [pool["zones"].get(zone, 0) for zone in zones],
        "cpu": amounts.percent(used.get("cpu", 0), has.get("cpu", 0)),
        "cpu_words": f"{amounts.cores(used.get('cpu', 0))} of {amounts.cores(has.get('cpu', 0))}",
        "memory": amounts.percent(used.get("memory", 0), has.get("memory", 0)),
        "memory_words": f"{amounts.memory(used.get('memory', 0))} of {amounts.memory(has.get('memory', 0))}",
        "others": [
            f"{used.get(name, 0):,} of {has[name]:,} {name.rpartition('/')[2]}" for name in sorted(others)
        ],
    }


def _number(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _is(n: int) -> str:
    return "is" if n == 1 else "are"


def _group(group: Mapping[str, Any]) -> dict[str, Any]:
    """All objects of one kind; `n_more` of them are not listed."""
    changes = [{**row, "look": _DRAWN[row["verb"]]} for row in group["changes"]]
    return {**group, "changes": changes, "n_more": group["count"] - len(changes)}


def progress_of(draft: Draft) -> int:
    """Percent done."""
    return round(100 * min(1.0, draft.done / draft.total)) if draft.total else 0


ZONE_LABEL = "topology.kubernetes.io/zone"


@dataclass(frozen=True)
class PoolPreview:
    """How many nodes a pool makes in each zone, the first names, and one whole manifest."""

    n_nodes: int
    zones: tuple[tuple[str, int], ...]
    names: tuple[str, ...]
    sample: Mapping[str, Any]


def preview(nodes: Sequence[Mapping[str, Any]]) -> PoolPreview:
    """Count Node manifests (at least one)."""
    zones = Counter(node["metadata"]["labels"].get(ZONE_LABEL, "no zone") for node in nodes)
    return PoolPreview(
        n_nodes=len(nodes),
        zones=tuple(sorted(zones.items())),
        names=tuple(node["metadata"]["name"] for node in nodes[:5]),
        sample=nodes[0],
    )
