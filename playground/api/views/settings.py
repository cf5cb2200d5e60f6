"""A cluster's scheduler configuration and clock."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from playground.api import examples, representations
from playground.api.documentation import operation
from playground.api.parsers import StrictJSONParser, YAMLParser
from playground.api.serializers import answers, requests
from playground.api.views.base import PlaygroundView
from playground.clusters import services
from playground.clusters.models import Cluster, Pod
from playground.engine.configuration import without_effect
from playground.engine.profiles import outline_and_problem
from playground.engine.releases import patch_of


class Config(PlaygroundView):
    parser_classes = [StrictJSONParser, YAMLParser]

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
            "application/json": {"type": "object", "additionalProperties": True},
            "application/yaml": {"type": "object", "additionalProperties": True},
        },
        answers_={200: answers.Config},
        errors=(400, 404, 413, 415),
        example=examples.CONFIG,
        answer_example={"default": False, "config": examples.CONFIG, "withoutEffect": [], "problem": None},
        tag="settings",
    )
    def put(self, request: Request, cluster_id: str) -> Response:
        """A KubeSchedulerConfiguration or legacy Policy (JSON or YAML), used from now on.

        One that cannot be used changes nothing. `withoutEffect` names what a Policy asks for that has no
        counterpart today.
        """
        cluster = self.cluster(cluster_id)
        return self._answer(services.set_config(cluster=cluster, config=dict(request.data)))

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
        return self._answer(services.set_config(cluster=self.cluster(cluster_id), config=None))


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
        answers_={200: answers.ClusterRelease},
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
        answers_={200: answers.ClusterRelease},
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
        services.set_release(
            cluster=cluster, name=wanted["kubernetesRelease"], gates=wanted.get("featureGates")
        )
        return self._answer(cluster)


class AssumedPods(PlaygroundView):
    @staticmethod
    def _answer(cluster: Cluster) -> Response:
        assumed = Pod.objects.filter(cluster=cluster, lane=Pod.Lane.BINDING).order_by("namespace", "name")
        return Response(
            {
                "durationToExpireAssumedPodSeconds": cluster.assumed_expiry_ns / 1e9,
                "assumed": [
                    f"{pod.namespace}/{pod.name}" for pod in assumed.only("namespace", "name")[:1000]
                ],
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
        services.set_assumed_expiry(cluster=cluster, after_ns=round(seconds * 1e9))
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
            mode, rate = Cluster.ClockMode.REALTIME, 1.0
        return Response(representations.clock(services.set_clock(cluster=cluster, mode=mode, rate=rate)))
