"""A cluster's settings: configuration, release, clock, mock extenders."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from playground.api import representations
from playground.api.representations import shown
from playground.api.views.base import Call
from playground.clusters.board.pods import assumed_pods
from playground.clusters.choices import ClockMode
from playground.clusters.drive import config as driving
from playground.clusters.drive import extender_calls
from playground.clusters.errors import InvalidInput, InvalidManifest
from playground.clusters.extenders import mock
from playground.clusters.objects.queries import list_mock_extenders
from playground.clusters.row_types import Cluster, MockExtender
from playground.engine.configuration import loaded_and_problem, without_effect
from playground.engine.rules import DEFAULT_PROFILE, is_name
from scheduler_core.releases import release_from


def config_read(call: Call, cluster: Cluster) -> Any:
    """The configuration as written; null if the cluster uses the default one."""
    return {
        "default": cluster.config is None,
        "config": cluster.config,
        "withoutEffect": list(without_effect(cluster.config, cluster.release)),
        "problem": loaded_and_problem(cluster.config, cluster.release)[1] or None,
    }


def config_write(call: Call, cluster: Cluster) -> Any:
    """A KubeSchedulerConfiguration v1 or legacy Policy (JSON or YAML), used from now on; a ConfigMap or List that
    holds one is opened.

    One that cannot be used changes nothing; an old version says what became of each field, and `config/convert`
    converts it. `withoutEffect` names what a Policy asks for that has no counterpart today.
    """
    config = dict(call.request.data)
    try:
        return config_read(call, driving.set_config(cluster=cluster, config=config))
    except InvalidManifest as error:
        if driving.convert_config(cluster=cluster, config=config)[1]:
            way = reverse("api:config_convert", args=[cluster.public_id])
            error.message += f". POST {way} converts it to v1"
        raise


def config_default(call: Call, cluster: Cluster) -> Any:
    """From now on."""
    return config_read(call, driving.set_config(cluster=cluster, config=None))


def config_convert(call: Call, cluster: Cluster) -> Any:
    """As v1, with what changed; the cluster keeps the one it has.

    From v1beta3 only the version line changes. `kept` is false for what v1 cannot say; `problem` is the first thing
    that is wrong with the result.
    """
    document, changes = driving.convert_config(cluster=cluster, config=dict(call.request.data))
    problem = None
    try:
        driving.checked_config(document, cluster.release)
    except InvalidManifest as error:
        problem = f"{error.path}: {error.message}"
    changed = [shown("ConfigChange", change) for change in changes]
    return {"config": document, "changes": changed, "problem": problem}


def release_read(call: Call, cluster: Cluster) -> Any:
    """The release the cluster follows, and the feature gates that are switched."""
    return shown("FollowedRelease", cluster, emulates=release_from(cluster.release).patch)


def release_write(call: Call, cluster: Cluster) -> Any:
    """Upgrade the scheduler from now on; earlier decisions do not change.

    Gates that are locked in the release cannot be switched. A configuration that the release does not take
    changes nothing.
    """
    wanted = call.body
    driving.set_release(cluster=cluster, name=wanted["kubernetesRelease"], gates=wanted.get("featureGates"))
    return release_read(call, cluster)


def assumed_pods_read(call: Call, cluster: Cluster) -> Any:
    """A pod that a bind extender accepted is assumed on its node until its Binding is heard of, or it expires."""
    return {
        "durationToExpireAssumedPodSeconds": cluster.assumed_expiry_ns / 1e9,
        "assumed": assumed_pods(cluster, limit=1000),
    }


def assumed_pods_write(call: Call, cluster: Cluster) -> Any:
    """kube-scheduler has it as a constant, `durationToExpireAssumedPod`, which is 0: never.

    It counts from the end of a pod's binding; for those assumed already, from now on. A pod that expired gives
    its room back and is tried again when it changes.
    """
    driving.set_assumed_expiry(
        cluster=cluster, after_ns=round(call.body["durationToExpireAssumedPodSeconds"] * 1e9)
    )
    cluster.refresh_from_db()
    return assumed_pods_read(call, cluster)


def clock_read(call: Call, cluster: Cluster) -> Any:
    """The cluster's own virtual time and what it waits for next."""
    return representations.clock(cluster)


def clock_write(call: Call, cluster: Cluster) -> Any:
    """Pause it, or let it run with the wall clock, faster or slower. To jump ahead, run for a duration."""
    mode, rate = call.body["mode"], call.body["rate"]
    if mode == "1x":
        mode, rate = ClockMode.REALTIME, 1.0
    return representations.clock(driving.set_clock(cluster=cluster, mode=mode, rate=rate))


def rules_write(call: Call, cluster: Cluster, rule: str) -> Any:
    """A filter or score written in CEL, in a profile of the configuration as `Rule/NAME`, from the next cycle."""
    args = call.body
    if not is_name(rule):
        raise InvalidInput("a rule is named with letters, digits and '-'", field="rule", value=rule)
    weight, profile = args.pop("weight", 1), call.query("profile", DEFAULT_PROFILE)
    return config_read(
        call, driving.write_rule(cluster=cluster, profile=profile, name=rule, args=args, weight=weight)
    )


def rules_delete(call: Call, cluster: Cluster, rule: str) -> Any:
    """From the next cycle on."""
    profile = call.query("profile", DEFAULT_PROFILE)
    return config_read(call, driving.delete_rule(cluster=cluster, profile=profile, name=rule))


def extender_hosts_allow(call: Call, cluster: Cluster, host: str) -> Any:
    """`host:port` of an extender of the configuration inside the network. On a machine of one's own only: elsewhere
    the operator names such hosts (403)."""
    return _hosts(extender_calls.allow_extender_host(cluster=cluster, host=host))


def extender_hosts_forbid(call: Call, cluster: Cluster, host: str) -> Any:
    """Twice is once."""
    return _hosts(extender_calls.allow_extender_host(cluster=cluster, host=host, allowed=False))


def _hosts(cluster: Cluster) -> Any:
    return {
        "allowed": sorted(extender_calls.allowed_by_person(cluster)),
        "refused": list(extender_calls.refused_hosts(cluster)),
    }


def job_duration_read(call: Call, cluster: Cluster) -> Any:
    """What the cluster says; a pod, its Job or its Namespace may say otherwise."""
    return {"duration": driving.job_duration(cluster)}


def job_duration_write(call: Call, cluster: Cluster) -> Any:
    """Of those that are made from now on: `90s`, `5m`, `never`; empty is the default."""
    return {"duration": driving.set_job_duration(cluster=cluster, lasting=call.body["duration"])}


def mock_extenders_list(call: Call, cluster: Cluster) -> Any:
    """Oldest first; a cluster has at most 20."""
    return [mock_extenders_read(call, cluster, row) for row in list_mock_extenders(cluster)]


def mock_extenders_create(call: Call, cluster: Cluster) -> Any:
    """An extender that denies, scores, drops victims, binds, fails or dawdles by rules.

    It is asked once the scheduler configuration names its `urlPrefix` in an extender.
    """
    return mock_extenders_read(call, cluster, mock.create_mock_extender(cluster=cluster, **call.body))


def mock_extenders_read(call: Call, cluster: Cluster, extender: MockExtender) -> Any:
    """Its rules, and how many requests it has answered."""
    url = f"/api/v1/clusters/{cluster.public_id}/mock-extenders/{extender.public_id}/"
    return shown("MockExtender", extender, url=url, urlPrefix=mock.mock_extender_url(extender))


def mock_extenders_write(call: Call, cluster: Cluster, extender: MockExtender) -> Any:
    """Name and rules are replaced, and calls count from 0 again; its `urlPrefix` stays."""
    return mock_extenders_read(call, cluster, mock.update_mock_extender(extender=extender, **call.body))


def mock_extenders_delete(call: Call, cluster: Cluster, extender: MockExtender) -> None:
    """A scheduler configuration that still names it gets 404 from then on."""
    mock.delete_mock_extender(extender=extender)
