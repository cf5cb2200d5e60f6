"""One HTTP extender: what it is asked, and how its answers are understood.

Source: pkg/scheduler/extender.go, v1.34
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler_core.config import types as config
from scheduler_core.extender.transport import HTTP_OK, ExtenderAnswer, ExtenderRequest, effective_tls
from scheduler_core.objects.fields import Document, mapping, mappings
from scheduler_core.objects.pod import Pod

DEFAULT_TIMEOUT_NS = 5_000_000_000

FILTER, PRIORITIZE, PREEMPT, BIND = "filter", "prioritize", "preempt", "bind"


@dataclass(frozen=True, slots=True)
class Extender:
    """An extender of the configuration.

    Attributes
    ----------
    index : int
        Its place in the configuration.
    name : str
        Its URL prefix as configured: upstream names extenders by it.
    verbs : dict of str to str
        `filter`, `prioritize`, `preempt`, `bind` -> the last part of the URL; only those it offers.
    weight : int
        Of its scores.
    node_cache_capable : bool
        It knows the nodes and is given names only.
    managed_resources : frozenset of str
        It cares for pods that name one of these; for all pods when empty.
    ignorable : bool
        Its failures do not fail the cycle.
    lower_case_wire : bool
        It is sent `pod` and `nodes`, not `Pod` and `Nodes`.
    """

    index: int
    name: str
    verbs: dict[str, str]
    weight: int
    timeout_ns: int
    tls: config.ExtenderTLSConfig | None
    node_cache_capable: bool
    managed_resources: frozenset[str]
    ignorable: bool
    lower_case_wire: bool = False

    @classmethod
    def from_config(
        cls, extender: config.Extender, *, index: int = 0, lower_case_wire: bool = False
    ) -> Extender:
        """An extender of a loaded configuration."""
        verbs = {
            FILTER: extender.filter_verb,
            PRIORITIZE: extender.prioritize_verb,
            PREEMPT: extender.preempt_verb,
            BIND: extender.bind_verb,
        }
        return cls(
            index=index,
            name=extender.url_prefix,
            verbs={name: verb for name, verb in verbs.items() if verb},
            weight=extender.weight,
            timeout_ns=extender.http_timeout_ns or DEFAULT_TIMEOUT_NS,
            tls=effective_tls(extender.tls_config, extender.enable_https),
            node_cache_capable=extender.node_cache_capable,
            managed_resources=frozenset(resource.name for resource in extender.managed_resources),
            ignorable=extender.ignorable,
            lower_case_wire=lower_case_wire,
        )

    @property
    def is_filter(self) -> bool:
        return FILTER in self.verbs

    @property
    def is_prioritizer(self) -> bool:
        return PRIORITIZE in self.verbs

    @property
    def is_binder(self) -> bool:
        return BIND in self.verbs

    @property
    def supports_preemption(self) -> bool:
        return PREEMPT in self.verbs

    def is_interested(self, pod: Pod) -> bool:
        """Whether a container or init container names a managed resource, in its requests or limits."""
        if not self.managed_resources:
            return True
        spec = mapping(pod.manifest, "spec", "")
        return any(
            name in self.managed_resources
            for key in ("containers", "initContainers")
            for path, container in mappings(spec, key, "spec")
            for name in _resource_names(container, path)
        )

    def url(self, verb: str) -> str:
        return f"{self.name.rstrip('/')}/{self.verbs[verb]}"

    def request(self, verb: str, body: Document) -> ExtenderRequest:
        return ExtenderRequest(self.url(verb), body, self.timeout_ns, self.tls, verb, self.index)

    def transport_error(self, verb: str, answer: ExtenderAnswer) -> str | None:
        """Why an answer cannot even be read, None when it can."""
        if answer.error is not None:
            return answer.error
        if answer.status != HTTP_OK:
            return f"failed {self.verbs[verb]} with extender at URL {self.url(verb)}, code {answer.status}"
        return None


def _resource_names(container: Document, path: str) -> list[str]:
    resources = mapping(container, "resources", path)
    return [name for key in ("requests", "limits") for name in mapping(resources, key, f"{path}.resources")]


def build_extenders(extenders: Sequence[config.Extender], *, lower_case_wire: bool = False) -> list[Extender]:
    """The extenders of a configuration in the order they are asked: ignorable ones after all others.

    Source: pkg/scheduler/scheduler.go buildExtenders, v1.34
    """
    built = [
        Extender.from_config(extender, index=index, lower_case_wire=lower_case_wire)
        for index, extender in enumerate(extenders)
    ]
    return sorted(built, key=lambda extender: extender.ignorable)
