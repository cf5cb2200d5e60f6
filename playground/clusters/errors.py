"""What services refuse, in one family that the pages, the API and the Kubernetes API map to their own shapes.

Every error has a Kubernetes ``reason`` and an HTTP ``status``; `as_dict` is the shared problem body.
"""

from typing import Any, TypeVar

from scheduler_core.errors import ClusterError as ClusterError
from scheduler_core.errors import InvalidManifest as InvalidManifest

T = TypeVar("T")


class InvalidInput(ClusterError):
    """A form or API value outside a manifest that is not what it should be; `field` names it."""

    reason = "Invalid"

    def __init__(self, message: str, *, field: str = "", value: object = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value

    def as_dict(self) -> dict[str, Any]:
        body = super().as_dict()
        if self.field:
            body["field"] = self.field
        if isinstance(self.value, (str, int, float, bool)):
            body["value"] = self.value
        return body


class ObjectError(ClusterError):
    """A refusal about one object; `kind` and `name` name it."""

    def __init__(self, message: str, *, kind: str = "", namespace: str = "", name: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.namespace = namespace
        self.name = name

    def as_dict(self) -> dict[str, Any]:
        facts = {"kind": self.kind, "namespace": self.namespace, "name": self.name}
        return super().as_dict() | {key: value for key, value in facts.items() if value}


class NotFound(ObjectError):
    """No such cluster, object, run or cycle."""

    status = 404
    reason = "NotFound"


def found(row: T | None, what: str, *, kind: str, namespace: str = "", name: str = "") -> T:
    """The row, which is there.

    Raises
    ------
    NotFound
        Naming `what` was looked for.
    """
    if row is None:
        raise NotFound(f"{what} not found", kind=kind, namespace=namespace, name=name)
    return row


class Conflict(ObjectError):
    """The object moved on: its resourceVersion is not the one the writer had seen."""

    status = 409
    reason = "Conflict"


class AlreadyExists(Conflict):
    """An object of that name is there already."""

    reason = "AlreadyExists"


class Forbidden(ObjectError):
    """Admission refused it (an unknown PriorityClass, a field that may not change)."""

    status = 403
    reason = "Forbidden"


class NotAllowed(ObjectError):
    """Not while things are as they are: a new object of a kind that is on its way out."""

    status = 405
    reason = "MethodNotAllowed"


class QuotaExceeded(Forbidden):
    """A person has as much as one person may have; the message names the limit and its setting."""


class TooLarge(ClusterError):
    """The text, an object or the cluster is over a limit."""

    status = 413
    reason = "RequestEntityTooLarge"


class Unsupported(ClusterError):
    """A media type or kind that is not served here."""

    status = 415
    reason = "UnsupportedMediaType"


class TooManyRequests(ObjectError):
    """A disruption budget says not now."""

    status = 429
    reason = "TooManyRequests"
