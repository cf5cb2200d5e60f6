"""A cluster's scheduler configuration and clock."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import examples, representations
from playground.api.documentation import operation, query
from playground.api.parsers import ConfigurationParser, StrictJSONParser
from playground.api.serializers import answers, requests
from playground.api.views.base import PlaygroundView
from playground.clusters.board.pods import assumed_pods
from playground.clusters.choices import ClockMode
from playground.clusters.drive.config import (
    checked_config,
    convert_config,
    delete_rule,
    job_duration,
    set_assumed_expiry,
    set_clock,
    set_config,
    set_job_duration,
    set_release,
    write_rule,
)
from playground.clusters.drive.extender_calls import allow_extender_host, allowed_by_person, refused_hosts
from playground.clusters.errors import InvalidInput, InvalidManifest
from playground.engine.configuration import outline_and_problem, without_effect
from playground.engine.releases import patch_of
from playground.engine.rules import DEFAULT_PROFILE, is_name

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster

PROFILE = query("profile", "The profile's schedulerName; absent = default-scheduler.")


class Config(PlaygroundView):
    parser_classes = [StrictJSONParser, ConfigurationParser]

    @staticmethod
    def _answer(cluster: Cluster) -> Response:
        dead = list(without_effect(cluster.config, cluster.release))
        return Response(
            {
                "default": cluster.config is None,
                "config": cluster.config,
                "withoutEffect": dead,
                "problem": outline_and_problem(cluster.config, cluster.release)[1] or None,
            }
        )

    @operation(
        "Read the scheduler configuration",
        id="config_read",
        answers_={200: answers.Config},
        errors=(400, 404),
        answer_example={"default": False, "config": examples.CONFIG, "withoutEffect": [], "problem": None},
        tag="settings",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> Response:
        """As it was written; null when the cluster uses the default one."""
        return self._answer(self.cluster(cluster_id))

    @operation(
        "Use another scheduler configuration",
        id="config_write",
        request={
            "application/json": answers.MANIFEST,
            "application/yaml": OpenApiTypes.STR,
        },
        answers_={200: answers.Config},
        errors=(400, 404, 413, 415),
        example=examples.CONFIG,
        answer_example={"default": False, "config": examples.CONFIG, "withoutEffect": [], "problem": None},
        tag="settings",
    )
    def put(self, request: Request, cluster_id: str) -> Response:
        """A KubeSchedulerConfiguration v1 or legacy Policy (JSON or YAML), used from now on; a ConfigMap or List that
        holds one is opened.

        One that cannot be used changes nothing; an old version says what became of each field, and `config/convert`
        converts it. `withoutEffect` names what a Policy asks for that has no counterpart today.
        """
        cluster = self.cluster(cluster_id)
        config = dict(request.data)
        try:
            return self._answer(set_config(cluster=cluster, config=config))
        except InvalidManifest as error:
            if convert_config(cluster=cluster, config=config)[1]:
                way = reverse("api:config-convert", args=[cluster.public_id])
                error.message += f". POST {way} converts it to v1"
            raise

    @operation(
        "Use the default scheduler configuration",
        id="config_default",
        answers_={200: answers.Config},
        errors=(400, 404),
        answer_example={"default": True, "config": None, "withoutEffect": [], "problem": None},
        tag="settings",
    )
    def delete(self, request: Request, cluster_id: str) -> Response:
        """From now on."""
        return self._answer(set_config(cluster=self.cluster(cluster_id), config=None))


class ConvertedConfig(PlaygroundView):
    parser_classes = [StrictJSONParser, ConfigurationParser]

    @operation(
        "Convert a scheduler configuration of an old version",
        id="config_convert",
        request={
            "application/json": answers.MANIFEST,
            "application/yaml": OpenApiTypes.STR,
        },
        answers_={200: answers.ConvertedConfig},
        errors=(400, 404, 413, 415),
        example=examples.OLD_CONFIG,
        answer_example=examples.CONVERTED_CONFIG,
        tag="settings",
        reads=True,
    )
    def post(self, request: Request, cluster_id: str) -> Response:
        """As v1, with what changed; the cluster keeps the one it has.

        From v1beta3 only the version line changes. `kept` is false for what v1 cannot say; `problem` is the first thing
        that is wrong with the result.
        """
        cluster = self.cluster(cluster_id)
        document, changes = convert_config(cluster=cluster, config=dict(request.data))
        problem = None
        try:
            checked_config(document, cluster.release)
        except InvalidManifest as error:
            problem = f"{error.path}: {error.message}"
        changed = [dataclasses.asdict(change) for change in changes]
        return Response({"config": document, "changes": changed, "problem": problem})


class Release(PlaygroundView):
    @staticmethod
    def _answer(cluster: Cluster) -> Response:
        return Response(
            {
                "kubernetesRelease": cluster.kubernetes_release,
                "featureGates": cluster.feature_gates,
                "emulates": patch_of(cluster.release),
            }
        )

    @operation(
        "Read the release of Kubernetes",
        id="release_read",
        answers_={200: answers.FollowedRelease},
        errors=(400, 404),
        answer_example=examples.CLUSTER_RELEASE,
        tag="settings",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> Response:
        """The release the cluster follows, and the feature gates that are switched."""
        return self._answer(self.cluster(cluster_id))

    @operation(
        "Follow another release of Kubernetes",
        id="release_write",
        request=requests.ClusterRelease,
        answers_={200: answers.FollowedRelease},
        errors=(400, 404, 413, 415),
        example={"kubernetesRelease": "1.36", "featureGates": {"OpportunisticBatching": False}},
        answer_example=examples.CLUSTER_RELEASE,
        tag="settings",
    )
    def put(self, request: Request, cluster_id: str) -> Response:
        """From now on, as an upgrade of kube-scheduler: what was decided before stays as it was decided.

        Gates that are locked in the release cannot be switched. A configuration that the release does not take
        changes nothing.
        """
        cluster = self.cluster(cluster_id)
        asked = requests.ClusterRelease(data=request.data)
        asked.is_valid(raise_exception=True)
        wanted = asked.validated_data
        set_release(cluster=cluster, name=wanted["kubernetesRelease"], gates=wanted.get("featureGates"))
        return self._answer(cluster)


class AssumedPods(PlaygroundView):
    @staticmethod
    def _answer(cluster: Cluster) -> Response:
        return Response(
            {
                "durationToExpireAssumedPodSeconds": cluster.assumed_expiry_ns / 1e9,
                "assumed": assumed_pods(cluster, limit=1000),
            }
        )

    @operation(
        "Read when assumed pods expire",
        id="assumed_pods_read",
        answers_={200: answers.AssumedPodsAnswer},
        errors=(400, 404),
        answer_example={"durationToExpireAssumedPodSeconds": 0.0, "assumed": ["default/web-1"]},
        tag="settings",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> Response:
        """A pod that a bind extender accepted is assumed on its node until its Binding is heard of, or it expires."""
        return self._answer(self.cluster(cluster_id))

    @operation(
        "Set when assumed pods expire",
        id="assumed_pods_write",
        request=requests.AssumedPods,
        answers_={200: answers.AssumedPodsAnswer},
        errors=(400, 404, 413, 415),
        example={"durationToExpireAssumedPodSeconds": 30},
        answer_example={"durationToExpireAssumedPodSeconds": 30.0, "assumed": []},
        tag="settings",
    )
    def put(self, request: Request, cluster_id: str) -> Response:
        """kube-scheduler has it as a constant, `durationToExpireAssumedPod`, which is 0: never.

        It counts from the end of a pod's binding; for those assumed already, from now on. A pod that expired gives
        its room back and is tried again when it changes.
        """
        cluster = self.cluster(cluster_id)
        asked = requests.AssumedPods(data=request.data)
        asked.is_valid(raise_exception=True)
        seconds = asked.validated_data["durationToExpireAssumedPodSeconds"]
        set_assumed_expiry(cluster=cluster, after_ns=round(seconds * 1e9))
        cluster.refresh_from_db()
        return self._answer(cluster)


class Clock(PlaygroundView):
    @operation(
        "Read the clock",
        id="clock_read",
        answers_={200: answers.ClockAnswer},
        errors=(400, 404),
        answer_example=examples.CLOCK,
        tag="settings",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> Response:
        """The cluster's own virtual time and what it waits for next."""
        return Response(representations.clock(self.cluster(cluster_id)))

    @operation(
        "Set the clock",
        id="clock_write",
        request=requests.Clock,
        answers_={200: answers.ClockAnswer},
        errors=(400, 404, 413, 415),
        example={"mode": "1x"},
        answer_example=examples.CLOCK | {"mode": "realtime"},
        tag="settings",
    )
    def put(self, request: Request, cluster_id: str) -> Response:
        """Pause it, or let it run with the wall clock, faster or slower. To jump ahead, run for a duration."""
        cluster = self.cluster(cluster_id)
        asked = requests.Clock(data=request.data)
        asked.is_valid(raise_exception=True)
        mode, rate = asked.validated_data["mode"], asked.validated_data["rate"]
        if mode == "1x":
            mode, rate = ClockMode.REALTIME, 1.0
        return Response(representations.clock(set_clock(cluster=cluster, mode=mode, rate=rate)))


class Rule(PlaygroundView):
    @operation(
        "Write a rule into the configuration",
        id="rules_write",
        request=requests.WrittenRule,
        answers_={200: answers.Config},
        errors=(400, 404, 409, 413, 415),
        parameters=[PROFILE],
        example={"filter": 'node.metadata.labels.?disk.orValue("") == "ssd"'},
        answer_example={"default": False, "config": examples.CONFIG, "withoutEffect": [], "problem": None},
        tag="settings",
    )
    def put(self, request: Request, cluster_id: str, rule: str) -> Response:
        """A filter or score written in CEL, in a profile of the configuration as `Rule/NAME`, from the next cycle."""
        cluster = self.cluster(cluster_id)
        asked = requests.WrittenRule(data=request.data)
        asked.is_valid(raise_exception=True)
        if not is_name(rule):
            raise InvalidInput("a rule is named with letters, digits and '-'", field="rule", value=rule)
        args = dict(asked.validated_data)
        weight = args.pop("weight", 1)
        written = write_rule(cluster=cluster, profile=_profile(request), name=rule, args=args, weight=weight)
        return Config._answer(written)

    @operation(
        "Delete a rule of the configuration",
        id="rules_delete",
        answers_={200: answers.Config},
        errors=(400, 404),
        parameters=[PROFILE],
        answer_example={"default": True, "config": None, "withoutEffect": [], "problem": None},
        tag="settings",
    )
    def delete(self, request: Request, cluster_id: str, rule: str) -> Response:
        """From the next cycle on."""
        cluster = self.cluster(cluster_id)
        return Config._answer(delete_rule(cluster=cluster, profile=_profile(request), name=rule))


def _profile(request: Request) -> str:
    return request.GET.get("profile") or DEFAULT_PROFILE


class ExtenderHost(PlaygroundView):
    @staticmethod
    def _answer(cluster: Cluster) -> Response:
        return Response(
            {"allowed": sorted(allowed_by_person(cluster)), "refused": list(refused_hosts(cluster))}
        )

    @operation(
        "Let an extender's host be called",
        id="extender_hosts_allow",
        answers_={200: answers.ExtenderHosts},
        errors=(400, 403, 404),
        answer_example={"allowed": ["127.0.0.1:8888"], "refused": []},
        tag="settings",
    )
    def put(self, request: Request, cluster_id: str, host: str) -> Response:
        """`host:port` of an extender of the configuration inside the network. On a machine of one's own only: elsewhere
        the operator names such hosts (403)."""
        return self._answer(allow_extender_host(cluster=self.cluster(cluster_id), host=host))

    @operation(
        "Let an extender's host be called no longer",
        id="extender_hosts_forbid",
        answers_={200: answers.ExtenderHosts},
        errors=(400, 403, 404),
        answer_example={"allowed": [], "refused": ["127.0.0.1:8888"]},
        tag="settings",
    )
    def delete(self, request: Request, cluster_id: str, host: str) -> Response:
        """Twice is once."""
        cluster = self.cluster(cluster_id)
        return self._answer(allow_extender_host(cluster=cluster, host=host, allowed=False))


class JobDuration(PlaygroundView):
    @operation(
        "Read how long pods of Jobs last",
        id="job_duration_read",
        answers_={200: answers.JobDuration},
        errors=(400, 404),
        answer_example={"duration": "1m"},
        tag="settings",
        reads=True,
    )
    def get(self, request: Request, cluster_id: str) -> Response:
        """What the cluster says; a pod, its Job or its Namespace may say otherwise."""
        return Response({"duration": job_duration(self.cluster(cluster_id))})

    @operation(
        "Set how long pods of Jobs last",
        id="job_duration_write",
        request=requests.JobLasts,
        answers_={200: answers.JobDuration},
        errors=(400, 404, 409, 413, 415),
        example={"duration": "5m"},
        answer_example={"duration": "5m"},
        tag="settings",
    )
    def put(self, request: Request, cluster_id: str) -> Response:
        """Of those that are made from now on: `90s`, `5m`, `never`; empty is the default."""
        cluster = self.cluster(cluster_id)
        asked = requests.JobLasts(data=request.data)
        asked.is_valid(raise_exception=True)
        lasting = asked.validated_data["duration"]
        return Response({"duration": set_job_duration(cluster=cluster, lasting=lasting)})
