"""What the tools answer: small, typed, the same words as the pages."""

from __future__ import annotations

from pydantic import BaseModel, Field


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


class Edit(BaseModel):
    title: str
    kind: str
    cost: int = Field(description="1 (least) to 5.")
    price: str
    outcome: str
    node: str | None = Field(description="Where the pod would land.")


class WhatItTakes(BaseModel):
    pod: str
    sentence: str
    edits: list[Edit] = Field(
        description="Single changes after which a decision on a copy places it, cheapest first."
    )
    tried: int
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
