"""VerticalPodAutoscalers: their definition as their project ships it, cut to what a list shows; applied and listed."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from playground.clusters.models import Cluster
from playground.clusters.objects.write import replace_object
from tests.clusters.builders import make_cluster, make_node
from tests.kube_api.kubectls import Kubectl, programs

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: verticalpodautoscalers.autoscaling.k8s.io
  annotations:
    api-approved.kubernetes.io: https://github.com/kubernetes/kubernetes/pull/63797
    controller-gen.kubebuilder.io/version: v0.16.5
spec:
  group: autoscaling.k8s.io
  names:
    kind: VerticalPodAutoscaler
    listKind: VerticalPodAutoscalerList
    plural: verticalpodautoscalers
    shortNames: [vpa]
    singular: verticalpodautoscaler
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {jsonPath: .spec.updatePolicy.updateMode, name: Mode, type: string}
    - {jsonPath: ".status.recommendation.containerRecommendations[0].target.cpu", name: CPU, type: string}
    - {jsonPath: ".status.recommendation.containerRecommendations[0].target.memory", name: Mem, type: string}
    - {jsonPath: ".status.conditions[?(@.type=='RecommendationProvided')].status", name: Provided, type: string}
    - {jsonPath: .metadata.creationTimestamp, name: Age, type: date}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            required: [targetRef]
            properties:
              targetRef:
                type: object
                required: [kind, name]
                x-kubernetes-map-type: atomic
                properties:
                  apiVersion: {type: string}
                  kind: {type: string}
                  name: {type: string}
              updatePolicy:
                type: object
                properties:
                  minReplicas: {type: integer, format: int32}
                  updateMode: {type: string, enum: ["Off", Initial, Recreate, InPlaceOrRecreate, Auto]}
              resourcePolicy:
                type: object
                properties:
                  containerPolicies:
                    type: array
                    items:
                      type: object
                      properties:
                        containerName: {type: string}
                        mode: {type: string, enum: [Auto, "Off"]}
                        controlledResources: {type: array, items: {type: string}}
                        minAllowed: &amounts
                          type: object
                          additionalProperties:
                            anyOf: [{type: integer}, {type: string}]
                            pattern: ^[-+0-9.]+[a-zA-Z0-9]*$
                            x-kubernetes-int-or-string: true
                        maxAllowed: *amounts
          status:
            type: object
            properties:
              conditions:
                type: array
                items:
                  type: object
                  required: [status, type]
                  properties:
                    type: {type: string}
                    status: {type: string}
                    lastTransitionTime: {type: string, format: date-time}
              recommendation:
                type: object
                properties:
                  containerRecommendations:
                    type: array
                    items:
                      type: object
                      required: [target]
                      properties: {containerName: {type: string}, target: *amounts}
"""
OBJECT: dict[str, Any] = {
    "apiVersion": "autoscaling.k8s.io/v1",
    "kind": "VerticalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "updatePolicy": {"updateMode": "Auto"},
        "resourcePolicy": {"containerPolicies": [
            {"containerName": "*", "minAllowed": {"cpu": "100m", "memory": "64Mi"}, "maxAllowed": {"cpu": 2}}]},
    },
}  # fmt: skip
RECOMMENDED = {
    "conditions": [{"type": "RecommendationProvided", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    "recommendation": {"containerRecommendations": [
        {"containerName": "c", "target": {"cpu": "250m", "memory": "262144k"}}]},
}  # fmt: skip


@pytest.mark.parametrize("program", programs(), ids=lambda path: path.rpartition("/")[2])
def test_a_vertical_autoscaler_is_applied_listed_and_deleted(
    program: str, asgi_server: str, transactional_db: None, wakes: list[Any], tmp_path: Any
) -> None:
    cluster: Cluster = make_cluster(make_node("n1"))
    kubectl = Kubectl(program, f"{asgi_server}/k8s/{cluster.public_id}", tmp_path)
    said = kubectl("apply", "-f", "-", text=DEFINITION)
    assert said.endswith("verticalpodautoscalers.autoscaling.k8s.io created\n")
    assert "created" in kubectl("apply", "-f", "-", text=yaml.safe_dump(OBJECT))
    assert "unchanged" in kubectl("apply", "-f", "-", text=yaml.safe_dump(OBJECT))
    cluster.refresh_from_db()
    replace_object(cluster=cluster, manifest=OBJECT | {"status": RECOMMENDED}, subresource="status")
    head, row = (line.split() for line in kubectl("get", "vpa").splitlines())
    assert head == ["NAME", "MODE", "CPU", "MEM", "PROVIDED", "AGE"]
    assert row[:-1] == ["web", "Auto", "250m", "262144k", "True"]
    wrong = OBJECT | {"spec": OBJECT["spec"] | {"updatePolicy": {"updateMode": "Sometimes"}}}
    refused = kubectl.run("apply", "-f", "-", text=yaml.safe_dump(wrong))
    assert refused.returncode == 1 and "updateMode" in refused.stderr
    assert kubectl("delete", "vpa", "web").startswith("verticalpodautoscaler.autoscaling.k8s.io")
