"""The scheduler configuration and the clock of a cluster."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.conf import settings

from playground.clusters import clock, kinds, wake
from playground.clusters.errors import InvalidInput, InvalidManifest, NotFound
from playground.clusters.log.quotas import check_bytes
from playground.clusters.log.writer import check_not_followed, writing
from playground.clusters.models import Cluster, LogEntry, Manifest, Pod
from playground.clusters.objects.write import patch_object
from playground.engine import columns, rules
from playground.engine.configuration import check_configuration, configuration_among, is_policy
from playground.engine.releases import DEFAULT
from scheduler_core.config.conversion import FieldChange, convert
from scheduler_core.errors import ConfigurationError, InvalidObject
from scheduler_core.installed_plugins import known
from scheduler_core.releases import release_from, release_named
from scheduler_core.sim.controllers.job import CLUSTER_NAMESPACE, DEFAULT_DURATION
from scheduler_core.sim.kubelet import DURATION

SHORTEST_EXPIRY_S: Final = 1
LONGEST_EXPIRY_S: Final = 366 * 24 * 3600


def read_config(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The configuration among posted documents: itself, or what a ConfigMap or a List holds.

    Raises
    ------
    InvalidManifest
        They hold several; or a ConfigMap holds none.
    """
    try:
        return configuration_among(documents)
    except ConfigurationError as problem:
        raise _invalid(problem, documents[0]) from None


def checked_config(
    config: Mapping[str, Any] | None, release: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """The configuration document, loaded once to see that it is one of the release.

    Raises
    ------
    InvalidManifest
        With the field path and value of the first problem; the others are its causes.
    """
    if config is None:
        return None
    config = read_config([config])
    try:
        check_configuration(config, release, may_read_files=settings.EMBEDDED)
    except ConfigurationError as problem:
        raise _invalid(problem, config) from None
    return config


def _invalid(problem: ConfigurationError, config: Mapping[str, Any]) -> InvalidManifest:
    kind = str(config.get("kind") or "KubeSchedulerConfiguration")
    errors = [
        InvalidManifest(item.detail, path=item.field, value=item.value, kind=kind) for item in problem.errors
    ]
    return InvalidManifest.of(errors or [InvalidManifest(str(problem), kind=kind)])


def convert_config(
    *, cluster: Cluster, config: Mapping[str, Any]
) -> tuple[dict[str, Any], Sequence[FieldChange]]:
    """A configuration of an old version as v1, and what changed; the cluster keeps the one it has.

    Raises
    ------
    InvalidManifest
        A ConfigMap does not hold exactly one.
    """
    found = convert(read_config([config]), known().in_release(release_from(cluster.release)).catalog)
    return found.document, found.changes


def set_config(*, cluster: Cluster, config: Mapping[str, Any] | None) -> Cluster:
    """Use another KubeSchedulerConfiguration (None = the default one) from now on.

    Raises
    ------
    InvalidManifest
        The configuration cannot be used; nothing changes.
    """
    checked = checked_config(config, cluster.release)
    with writing(cluster) as writer:
        payload = {"document": checked, "before": writer.cluster.config}
        writer.cluster.config = checked
        writer.append(LogEntry.Source.API, LogEntry.Kind.CONFIG, payload)
        recheck_waiting(writer.cluster)
        wake.cluster_on_commit(writer.cluster)
    return cluster


def checked_release(name: str | None, gates: Mapping[str, bool] | None) -> dict[str, Any]:
    """A release of Kubernetes with switched gates; None is what new clusters follow.

    Raises
    ------
    InvalidInput
        There is no such release, or a gate cannot be switched so in it.
    """
    try:
        document = release_named(DEFAULT if name is None else name).with_gates(gates or {}).document()
    except InvalidObject as error:
        raise InvalidInput(f"{error.path}: {error.reason}", field=error.path, value=error.value) from None
    except ConfigurationError as error:
        first = error.errors[0]
        raise InvalidInput(f"{first.field}: {first.detail}", field=first.field, value=first.value) from None
    return {"name": document["name"], "switched": document.get("switched", {})}


def set_release(*, cluster: Cluster, name: str, gates: Mapping[str, bool] | None = None) -> Cluster:
    """Follow another release of Kubernetes from now on, as an upgrade of kube-scheduler does.

    The log says so: what decisions stay.

    Raises
    ------
    InvalidInput
        There is no such release, a gate cannot be switched so.
    InvalidManifest
        The cluster's configuration cannot be used with it; nothing changes.
    """
    release = checked_release(name, gates)
    with writing(cluster) as writer:
        row = writer.cluster
        if (release["name"], release["switched"]) == (row.kubernetes_release, row.feature_gates):
            return cluster
        checked_config(row.config, release)
        payload = {
            "document": row.config,
            "before": row.config,
            "release": release,
            "releaseBefore": row.release,
        }
        row.kubernetes_release, row.feature_gates = release["name"], release["switched"]
        writer.append(LogEntry.Source.API, LogEntry.Kind.CONFIG, payload)
        wake.cluster_on_commit(row)
    cluster.refresh_from_db(fields=["kubernetes_release", "feature_gates"])
    return cluster


def write_rule(
    *, cluster: Cluster, profile: str, name: str, args: Mapping[str, str], weight: int = 1
) -> Cluster:
    """Put a rule into a profile, or write it anew.

    Raises
    ------
    InvalidInput
        The cluster runs a Policy, which has no profiles.
    InvalidManifest
        The rule cannot be used; nothing changes.
    """
    if is_policy(cluster.config):
        raise InvalidInput("a Policy has no profiles: write a configuration first")
    return set_config(cluster=cluster, config=rules.with_rule(cluster.config, profile, name, args, weight))


def delete_rule(*, cluster: Cluster, profile: str, name: str) -> Cluster:
    """Take a rule out of a profile.

    Raises
    ------
    NotFound
        The profile has no such rule.
    """
    if name not in {rule.name for rule in rules.rules_of(cluster.config, profile)}:
        raise NotFound(f"rule {name} not found", kind="Rule", name=name)
    return set_config(cluster=cluster, config=rules.without_rule(cluster.config or {}, profile, name))


def recheck_waiting(cluster: Cluster) -> None:
    """Write down which unbound pods have no profile now."""
    profiles = columns.profile_names(cluster.config)
    changed = []
    for pod in Pod.objects.filter(cluster=cluster, node_name="").exclude(
        scheduler_name__in=profiles, waits_for=""
    ):
        reason = columns.why_it_waits(pod.manifest, profiles)
        if reason != pod.waits_for:
            pod.waits_for = reason
            changed.append(pod)
    Pod.objects.bulk_update(changed, ["waits_for"], batch_size=500)


def set_assumed_expiry(*, cluster: Cluster, after_ns: int) -> Cluster:
    """Let pods whose binding has ended be assumed for so long without the watch telling of it, from now on.

    Parameters
    ----------
    after_ns
        Virtual nanoseconds, 1 s to a year; 0 is for ever, as kube-scheduler has it.

    Raises
    ------
    InvalidInput
    """
    seconds = after_ns / 1e9
    if after_ns and not SHORTEST_EXPIRY_S <= seconds <= LONGEST_EXPIRY_S:
        raise InvalidInput(
            f"must be 0 (never) or {SHORTEST_EXPIRY_S} to {LONGEST_EXPIRY_S} seconds",
            field="durationToExpireAssumedPodSeconds",
            value=seconds,
        )
    with writing(cluster) as writer:
        if writer.cluster.assumed_expiry_ns == after_ns:
            return cluster
        writer.cluster.assumed_expiry_ns = after_ns
        writer.append(LogEntry.Source.API, LogEntry.Kind.EXPIRY, {"afterNs": after_ns})
        wake.cluster_on_commit(writer.cluster)
    return cluster


def set_clock(*, cluster: Cluster, mode: str, rate: float = 1.0) -> Cluster:
    """Pause the cluster's clock, or let it run with the wall clock. Either answers an open offer.

    Parameters
    ----------
    mode
        ``paused`` or ``realtime``.
    rate
        Virtual seconds a wall second, 0.1 to 100.

    Raises
    ------
    InvalidInput
        Another mode, or a rate out of bounds.
    QuotaExceeded
        It shall run, and who made the cluster stores as much as one person may.
    """
    if mode not in (Cluster.ClockMode.PAUSED, Cluster.ClockMode.REALTIME):
        raise InvalidInput("the clock is paused or realtime", field="mode", value=mode)
    if not 0.1 <= rate <= 100:
        raise InvalidInput("the rate must be between 0.1 and 100", field="rate", value=rate)
    with writing(cluster) as writer:
        row = writer.cluster
        check_not_followed(row)
        if row.clock_offer:
            row.clock_offer = "closed"
        if mode == row.clock_mode == Cluster.ClockMode.PAUSED:
            return cluster
        if mode == Cluster.ClockMode.REALTIME:
            check_bytes(row.creator)
        wall = clock.wall_now()
        now_ns = clock.virtual_now_ns(row, wall)
        row.clock_mode = mode
        row.rate = rate
        row.clock_note = ""
        if mode == Cluster.ClockMode.REALTIME:
            row.wall_anchor, row.virtual_anchor_ns = wall, now_ns
        else:
            row.wall_anchor = row.virtual_anchor_ns = None
        # An input of its own time: the engine catches up with it before the clock stops.
        payload = {"mode": mode, "rate": rate}
        writer.append(LogEntry.Source.API, LogEntry.Kind.CLOCK, payload, at_ns=now_ns)
        wake.cluster_on_commit(writer.cluster)
    return cluster


def offer_clock(*, cluster: Cluster) -> Cluster:
    """Have the board offer to let a paused clock run, once in a cluster's life: kubectl wrote to it."""
    if cluster.clock_mode != Cluster.ClockMode.PAUSED or cluster.clock_offer:
        return cluster
    with writing(cluster) as writer:
        writer.cluster.clock_offer = "open"
    return cluster


# ---- How long pods of Jobs last: an annotation of the Namespace kube-system is the cluster's own say


def job_duration(cluster: Cluster) -> str:
    """What the cluster says: `1m`, `never`."""
    row = Manifest.objects.filter(cluster=cluster, kind="Namespace", name=CLUSTER_NAMESPACE).first()
    annotations = {} if row is None else row.manifest["metadata"].get("annotations") or {}
    return str(annotations.get(DURATION) or DEFAULT_DURATION)


def set_job_duration(*, cluster: Cluster, lasting: str) -> str:
    """Let pods that Jobs make from now on end after so long, unless they, their Job or its Namespace say otherwise.

    Parameters
    ----------
    lasting
        `90s`, `5m`, `never`; empty is the default.

    Raises
    ------
    InvalidManifest
    """
    kind = kinds.named("Namespace")
    patch = {"metadata": {"annotations": {DURATION: lasting or None}}}
    patch_object(cluster=cluster, kind=kind, namespace="", name=CLUSTER_NAMESPACE, patch=patch)
    return lasting or DEFAULT_DURATION
