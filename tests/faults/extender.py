"""A real HTTP extender: it filters, scores and binds, each as upstream's protocol has it, and misbehaves on request."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.engine.extender_server import ExtenderServer
from tests.faults.site import Site

HEARD_WITHIN_S = 0.4
"""The configurations here have an httpTimeout of 600 ms."""


class Extender:
    """Serves all clusters of a round, each under a path of its own.

    Attributes
    ----------
    misbehaves
        Slow answers, failures, and answers that are lost after what was asked for was done.
    posts_bindings
        It binds a pod by a Binding of its own, as real ones do; else its answer says that the pod is to be bound.
    repeated
        Bind calls for pods that it had bound already: none may come, but after a reset or an undone
        change, which unbind them.
    """

    def __init__(self, site: Site, dice: random.Random, *, posts_bindings: bool) -> None:
        self.misbehaves = False
        self.posts_bindings = posts_bindings
        self.repeated: list[str] = []
        self.n_bound = self.n_calls = self.n_bad = 0
        self._site, self._dice = site, dice
        self._bound: set[tuple[str, str, int]] = set()
        self._clusters: dict[str, str] = {}
        self._rewinds: dict[str, Callable[[], int | None]] = {}
        self._lock = threading.Lock()
        self._server = ExtenderServer(self._answer).start()

    def url(self, key: str) -> str:
        return f"http://127.0.0.1:{self._server.port}/{key}"

    def know(self, key: str, cluster_id: str, rewinds: Callable[[], int | None]) -> None:
        """Which cluster the path belongs to, and how often it was rewound; None while it is."""
        self._clusters[key] = cluster_id
        self._rewinds[key] = rewinds

    def stop(self) -> None:
        self._server.stop()

    def _answer(self, path: str, body: Any) -> Any:
        _, key, verb = path.split("/")
        how = self._how()
        if how == "slow":
            time.sleep(0.15)
        if how == "refuse":
            return _status_500
        if verb == "bind":
            answer = self._bind(key, body)
        elif verb == "prioritize":
            answer = [{"Host": name, "Score": 1} for name in body["NodeNames"]]
        else:
            answer = {"NodeNames": body["NodeNames"]}
        if how == "lose":
            return self._server.cut
        if how == "late":
            time.sleep(0.8)
        return answer

    def _how(self) -> str:
        with self._lock:
            self.n_calls += 1
            if not self.misbehaves or self._dice.random() > 0.3:
                return ""
            self.n_bad += 1
            return self._dice.choice(["slow", "slow", "refuse", "lose", "lose", "late"])

    def _bind(self, key: str, body: Any) -> Any:
        uid, name, namespace = body["PodUID"], body["PodName"], body["PodNamespace"]
        rewinds = self._rewinds[key]()
        began_s = time.monotonic()
        with self._lock:
            if rewinds is not None and (key, uid, rewinds) in self._bound:
                self.repeated.append(f"{key}: {namespace}/{name} ({uid})")
        if not self.posts_bindings:
            return {"Error": ""}
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": body["Node"]},
        }
        path = f"/k8s/{self._clusters[key]}/api/v1/namespaces/{namespace}/pods/{name}/binding"
        try:
            code, answer = self._site.ask("POST", path, binding)
        except OSError as error:
            return {"Error": str(error)}
        if code != 201:
            return {"Error": f"{code} {answer[:200]}"}
        # Who has given up waiting may be on the way with another call already.
        in_time = time.monotonic() - began_s < HEARD_WITHIN_S
        with self._lock:
            if in_time and rewinds is not None and rewinds == self._rewinds[key]():
                self._bound.add((key, uid, rewinds))
            self.n_bound += 1
        return {"Error": ""}


def _status_500(handler: Any) -> None:
    handler.send_response(500)
    handler.send_header("Content-Length", "0")
    handler.end_headers()
