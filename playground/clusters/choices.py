"""The words of columns that have a choice of a few. Rows say them; services, pages and APIs compare with them."""

from typing import Final

from django.db.models import TextChoices


class ClockMode(TextChoices):
    """How a cluster's clock goes; that of one which follows a live cluster is the live one's."""

    PAUSED = "paused"
    REALTIME = "realtime"
    LIVE = "live"


class CycleOutcome(TextChoices):
    """How a cycle ended."""

    BOUND = "bound"
    UNSCHEDULABLE = "unschedulable"
    PREEMPTING = "preempting"
    WAITING = "waiting"
    BINDING = "binding"
    EXPIRED = "expired"
    ERROR = "error"


class Lane(TextChoices):
    """Where in the scheduling queue a pod waits; empty for one that does not."""

    NONE = ""
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    PERMIT = "permit"
    BINDING = "binding"
    FOREIGN = "foreign"


class EntrySource(TextChoices):
    """Who made an entry of the log; see `models.LogEntry`."""

    API = "api"
    ENGINE = "engine"
    KEPT = "kept"


class EntryKind(TextChoices):
    """What an entry of the log tells; see `models.LogEntry`."""

    WRITE = "write"
    DELETE = "delete"
    PERMIT = "permit"
    CONFIG = "config"
    CLOCK = "clock"
    EXPIRY = "expiry"
    EXTENDER = "extender"
    RAN = "ran"
    UNDO = "undo"


class QuestionKind(TextChoices):
    """What can be asked about a cluster or a share."""

    FIX = "fix"
    WHY_NOT = "why-not"
    WEIGHTS = "weights"
    TRY = "try"
    SEEDS = "seeds"
    RULE = "try-rule"
    PLAN = "plan"
    DEVICES = "devices"
    GROUP = "group"
    JUDGE = "judge"
    MODEL = "model"
    OPTIMUM = "optimum"
    UPGRADE = "upgrade"
    LUCK = "luck"
    LOOPS = "loops"
    PROCESS = "process"  # a run that a request waits for


class WorkState(TextChoices):
    """How far a worker is with what was asked for."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN: Final = (WorkState.QUEUED, WorkState.RUNNING)
"""An answer may still come."""


class DecisionKind(TextChoices):
    """What another scheduler decided."""

    BIND = "bind"
    PREEMPT = "preempt"
    NO_NODE = "no-node"
    EVICT = "evict"  # a pod evicted for a pod that is not known yet; not judged alone


JUDGED: Final = (DecisionKind.BIND, DecisionKind.PREEMPT, DecisionKind.NO_NODE)


class Judgement(TextChoices):
    """What our engine says of another scheduler's decision."""

    AGREE = "agree"
    TIE = "tie"
    DIFFERENT = "different"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"
