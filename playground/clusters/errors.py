"""What services refuse, in one family that the pages, the API and the Kubernetes API map to their own shapes.

Every error has a Kubernetes ``reason`` and an HTTP ``status``; `as_dict` is the shared problem body.
"""

from typing import Any


class ClusterError(Exception):
    """Base of everything a service refuses on purpose.

    Parameters
    ----------
    message
        One sentence for a person.
    """

    status = 400
    reason = "BadRequest"
    title = "The request was refused"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def as_dict(self) -> dict[str, Any]:
        """Every known fact as JSON data; keys without a value are left out."""
        return {"reason": self.reason, "message": self.message}


class InvalidManifest(ClusterError):
    """A document that is not what it should be: bad YAML, a bad quantity, a missing or forbidden field.

    Attributes
    ----------
    document : int or None
        Position in the posted text, from 0.
    line, column : int or None
        From 1, in the whole posted text.
    path : str
        Field path, e.g. ``spec.containers[0].resources.requests.cpu``; empty if unknown.
    value : object
        The value at fault, or None.
    kind, name : str
        The object at fault, where already known.
    causes : list of InvalidManifest
        Further problems found in the same request (the first one is this error itself).
    type : str
        Kubernetes' type of the field's error, where the words alone do not tell it.
    """

    reason = "Invalid"
    title = "A manifest is not valid"

    def __init__(
        self,
        message: str,
        *,
        document: int | None = None,
        line: int | None = None,
        column: int | None = None,
        path: str = "",
        value: object = None,
        kind: str = "",
        name: str = "",
        causes: "tuple[InvalidManifest, ...]" = (),
        type_: str = "",
    ) -> None:
        super().__init__(message)
        self.document = document
        self.line = line
        self.column = column
        self.path = path
        self.value = value
        self.kind = kind
        self.name = name
        self.causes = causes
        self.type = type_

    def as_dict(self) -> dict[str, Any]:
        facts = {
            "document": self.document,
            "line": self.line,
            "column": self.column,
            "field": self.path or None,
            "value": self.value if isinstance(self.value, (str, int, float, bool)) else None,
            "kind": self.kind or None,
            "name": self.name or None,
        }
        body = super().as_dict() | {key: value for key, value in facts.items() if value is not None}
        if self.causes:
            body["causes"] = [cause.as_dict() for cause in self.causes]
        return body


class UnknownFields(InvalidManifest):
    """Fields that the kind does not have, where the request wants to be strict about them."""

    reason = "BadRequest"
    title = "A field is not known"

    @classmethod
    def of(cls, error: ClusterError) -> "UnknownFields":
        """The same facts."""
        assert isinstance(error, InvalidManifest)
        return cls(
            error.message,
            document=error.document,
            line=error.line,
            column=error.column,
            path=error.path,
            value=error.value,
            kind=error.kind,
            name=error.name,
            causes=error.causes,
        )


class ForbiddenManifest(InvalidManifest):
    """A document that is well formed, and that admission refuses as it stands; the message says why by itself."""

    status = 403
    reason = "Forbidden"
    title = "A manifest is not allowed"


class InvalidInput(ClusterError):
    """A form or API value outside a manifest that is not what it should be; `field` names it."""

    reason = "Invalid"
    title = "A value is not valid"

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
    title = "Not found"


class Conflict(ObjectError):
    """The object moved on: its resourceVersion is not the one the writer had seen."""

    status = 409
    reason = "Conflict"
    title = "The object was changed meanwhile"


class AlreadyExists(Conflict):
    """An object of that name is there already."""

    reason = "AlreadyExists"
    title = "An object of that name exists"


class Forbidden(ObjectError):
    """Admission refused it (an unknown PriorityClass, a field that may not change)."""

    status = 403
    reason = "Forbidden"
    title = "Not allowed"


class NotAllowed(ObjectError):
    """Not while things are as they are: a new object of a kind that is on its way out."""

    status = 405
    reason = "MethodNotAllowed"
    title = "Not a method of this path"


class QuotaExceeded(Forbidden):
    """A person has as much as one person may have; the message names the limit and its setting."""

    title = "A limit of one person"


class TooLarge(ClusterError):
    """The text, an object or the cluster is over a limit."""

    status = 413
    reason = "RequestEntityTooLarge"
    title = "Too large"


class Unsupported(ClusterError):
    """A media type or kind that is not served here."""

    status = 415
    reason = "UnsupportedMediaType"
    title = "Not supported"


class TooManyRequests(ObjectError):
    """A disruption budget says not now."""

    status = 429
    reason = "TooManyRequests"
    title = "Not now"
