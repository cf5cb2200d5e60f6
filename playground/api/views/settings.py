"""A cluster's settings: configuration, release, clock, mock extenders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import representations
from playground.api.requests import ConfigurationParser, StrictJSONParser
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
from playground.clusters.extenders.mock import (
    create_mock_extender,
    delete_mock_extender,
    update_mock_extender,
)
from playground.clusters.objects.queries import get_mock_extender, list_mock_extenders
from playground.engine.configuration import outline_and_problem, without_effect
from playground.engine.releases import patch_of
from playground.engine.rules import DEFAULT_PROFILE, is_name

if TYPE_CHECKING:
    from playground.clusters.row_types import Cluster


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

    def get(self, request: Request, cluster_id: str) -> Response:
        """The configuration as written; null if the cluster uses the default one."""
        return self._answer(self.cluster(cluster_id))

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

    def delete(self, request: Request, cluster_id: str) -> Response:
        """From now on."""
        return self._answer(set_config(cluster=self.cluster(cluster_id), config=None))


class ConvertedConfig(PlaygroundView):
    parser_classes = [StrictJSONParser, ConfigurationParser]

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
        changed = [
            {"field": one.field, "value": one.value, "detail": one.detail, "kept": one.is_kept}
            for one in changes
        ]
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

    def get(self, request: Request, cluster_id: str) -> Response:
        """The release the cluster follows, and the feature gates that are switched."""
        return self._answer(self.cluster(cluster_id))

    def put(self, request: Request, cluster_id: str) -> Response:
        """Upgrade the scheduler from now on; earlier decisions do not change.

        Gates that are locked in the release cannot be switched. A configuration that the release does not take
        changes nothing.
        """
        cluster = self.cluster(cluster_id)
        asked = self.body("ClusterRelease")
        wanted = asked
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

    def get(self, request: Request, cluster_id: str) -> Response:
        """A pod that a bind extender accepted is assumed on its node until its Binding is heard of, or it expires."""
        return self._answer(self.cluster(cluster_id))

    def put(self, request: Request, cluster_id: str) -> Response:
        """kube-scheduler has it as a constant, `durationToExpireAssumedPod`, which is 0: never.

        It counts from the end of a pod's binding; for those assumed already, from now on. A pod that expired gives
        its room back and is tried again when it changes.
        """
        cluster = self.cluster(cluster_id)
        asked = self.body("AssumedPods")
        seconds = asked["durationToExpireAssumedPodSeconds"]
        set_assumed_expiry(cluster=cluster, after_ns=round(seconds * 1e9))
        cluster.refresh_from_db()
        return self._answer(cluster)


class Clock(PlaygroundView):
    def get(self, request: Request, cluster_id: str) -> Response:
        """The cluster's own virtual time and what it waits for next."""
        return Response(representations.clock(self.cluster(cluster_id)))

    def put(self, request: Request, cluster_id: str) -> Response:
        """Pause it, or let it run with the wall clock, faster or slower. To jump ahead, run for a duration."""
        cluster = self.cluster(cluster_id)
        asked = self.body("Clock")
        mode, rate = asked["mode"], asked["rate"]
        if mode == "1x":
            mode, rate = ClockMode.REALTIME, 1.0
        return Response(representations.clock(set_clock(cluster=cluster, mode=mode, rate=rate)))


class Rule(PlaygroundView):
    def put(self, request: Request, cluster_id: str, rule: str) -> Response:
        """A filter or score written in CEL, in a profile of the configuration as `Rule/NAME`, from the next cycle."""
        cluster = self.cluster(cluster_id)
        asked = self.body("WrittenRule")
        if not is_name(rule):
            raise InvalidInput("a rule is named with letters, digits and '-'", field="rule", value=rule)
        args = dict(asked)
        weight = args.pop("weight", 1)
        written = write_rule(cluster=cluster, profile=_profile(request), name=rule, args=args, weight=weight)
        return Config._answer(written)

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

    def put(self, request: Request, cluster_id: str, host: str) -> Response:
        """`host:port` of an extender of the configuration inside the network. On a machine of one's own only: elsewhere
        the operator names such hosts (403)."""
        return self._answer(allow_extender_host(cluster=self.cluster(cluster_id), host=host))

    def delete(self, request: Request, cluster_id: str, host: str) -> Response:
        """Twice is once."""
        cluster = self.cluster(cluster_id)
        return self._answer(allow_extender_host(cluster=cluster, host=host, allowed=False))


class JobDuration(PlaygroundView):
    def get(self, request: Request, cluster_id: str) -> Response:
        """What the cluster says; a pod, its Job or its Namespace may say otherwise."""
        return Response({"duration": job_duration(self.cluster(cluster_id))})

    def put(self, request: Request, cluster_id: str) -> Response:
        """Of those that are made from now on: `90s`, `5m`, `never`; empty is the default."""
        cluster = self.cluster(cluster_id)
        asked = self.body("JobLasts")
        lasting = asked["duration"]
        return Response({"duration": set_job_duration(cluster=cluster, lasting=lasting)})


class MockExtenders(PlaygroundView):
    def get(self, request: Request, cluster_id: str) -> Response:
        """Oldest first; a cluster has at most 20."""
        cluster = self.cluster(cluster_id)
        rows = list_mock_extenders(cluster)
        return Response({"items": [representations.mock_extender(row, cluster.public_id) for row in rows]})

    def post(self, request: Request, cluster_id: str) -> Response:
        """An extender that denies, scores, drops victims, binds, fails or dawdles by rules.

        It is asked once the scheduler configuration names its `urlPrefix` in an extender.
        """
        cluster = self.cluster(cluster_id)
        asked = self.body("MockExtenderRules")
        row = create_mock_extender(cluster=cluster, **asked)
        body = representations.mock_extender(row, cluster.public_id)
        return Response(body, status=201, headers={"Location": body["url"]})


class OneMockExtender(PlaygroundView):
    def get(self, request: Request, cluster_id: str, extender_id: str) -> Response:
        """Its rules, and how many requests it has answered."""
        cluster = self.cluster(cluster_id)
        row = get_mock_extender(cluster, extender_id)
        return Response(representations.mock_extender(row, cluster.public_id))

    def put(self, request: Request, cluster_id: str, extender_id: str) -> Response:
        """Name and rules are replaced, and calls count from 0 again; its `urlPrefix` stays."""
        cluster = self.cluster(cluster_id)
        row = get_mock_extender(cluster, extender_id)
        asked = self.body("MockExtenderRules")
        changed = update_mock_extender(extender=row, **asked)
        return Response(representations.mock_extender(changed, cluster.public_id))

    def delete(self, request: Request, cluster_id: str, extender_id: str) -> Response:
        """A scheduler configuration that still names it gets 404 from then on."""
        cluster = self.cluster(cluster_id)
        delete_mock_extender(extender=get_mock_extender(cluster, extender_id))
        return Response(status=204)
