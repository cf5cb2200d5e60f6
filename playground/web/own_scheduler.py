"""What starts a scheduler of one's own against a cluster: a kubeconfig, a command, a program to begin with."""

from typing import Final

from playground.web.posted_yaml import yaml_of

KUBECONFIG: Final = "kubeconfig.yaml"
TOKEN_PLACE: Final = "PUT-YOUR-TOKEN-HERE"
COMMAND: Final = f"kube-scheduler --kubeconfig {KUBECONFIG}"
NAME: Final = "my-scheduler"

STARTER: Final = f"""\
from kubernetes import client, config, watch

config.load_kube_config("{KUBECONFIG}")
api = client.CoreV1Api()
api.api_client.user_agent = "{NAME}/v1"
mine = "spec.schedulerName={NAME},spec.nodeName="
for event in watch.Watch().stream(api.list_pod_for_all_namespaces, field_selector=mine):
    if event["type"] == "ADDED":
        pod, node = event["object"].metadata, api.list_node().items[0].metadata.name  # choose better here
        to = client.V1ObjectReference(api_version="v1", kind="Node", name=node)
        body = client.V1Binding(metadata=client.V1ObjectMeta(name=pod.name, uid=pod.uid), target=to)
        api.create_namespaced_binding(pod.namespace, body, _preload_content=False)
"""


def kubeconfig(server: str, name: str, *, wants_token: bool) -> str:
    """A kubeconfig as YAML.

    Parameters
    ----------
    server
        Of the cluster's Kubernetes API: ``http://127.0.0.1:8000/k8s/ID``.
    name
        Of the cluster, the user and the context in it.
    wants_token
        Whether the user has a place for a token; else each client that reaches the server may write.
    """
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": {"token": TOKEN_PLACE} if wants_token else {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return yaml_of([document])
