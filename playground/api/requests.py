"""What a request says: its body, held against a shape of `openapi.yaml`, and its query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from typing import IO, Any, Final

from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from playground.api.documentation import declared
from playground.bodies import BodyTooLarge, decoded
from playground.clusters.drive.config import read_config
from playground.clusters.errors import InvalidInput, InvalidManifest
from scheduler_core.objects.documents import load_document, load_documents

MAX_BYTES: Final = 1024 * 1024
LARGEST: Final = 2**63 - 1


# ---- bodies as they come


class StrictJSONParser(BaseParser):
    """One JSON object, read with the guards manifests have: depth, duplicate keys, NUL, endless numbers."""

    media_type = "application/json"
    json_only = True

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None
    ) -> dict[str, Any]:
        body = stream.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise BodyTooLarge(MAX_BYTES)
        encoding = parser_context["request"].headers.get("Content-Encoding", "") if parser_context else ""
        body = decoded(body, encoding, limit_bytes=MAX_BYTES)
        document = self.read(body)
        if document is None and body.strip():
            raise InvalidInput("the body holds nothing; an object is wanted")
        return document or {}

    def read(self, body: bytes) -> dict[str, Any] | None:
        """The document of a body; None for an empty one."""
        document: dict[str, Any] | None = load_document(body, json_only=self.json_only, max_bytes=MAX_BYTES)
        return document


class YAMLParser(StrictJSONParser):
    """The same in YAML, where people write it by hand."""

    media_type = "application/yaml"
    json_only = False


class ConfigurationParser(YAMLParser):
    """A scheduler configuration, also out of a ConfigMap among other manifests."""

    def read(self, body: bytes) -> dict[str, Any] | None:
        documents = [document.value for document in load_documents(body, max_bytes=MAX_BYTES)]
        return read_config(documents) if documents else None


class MergePatchParser(StrictJSONParser):
    """A merge patch (RFC 7386)."""

    media_type = "application/merge-patch+json"


# ---- bodies and their shapes


def checked(body: Any, shape: str) -> dict[str, Any]:
    """A body of a shape, its defaults filled in and its texts without space around them.

    What values mean is for the services to judge. A misspelt key of a shape that allows no others is refused, for it
    would otherwise do nothing, silently.

    Raises
    ------
    InvalidManifest
        The first problem, the next ones among its causes.
    """
    problems: list[InvalidManifest] = []
    made = _checked(body, declared()["schemas"][shape], "", problems)
    if problems:
        raise InvalidManifest.of(problems)
    return dict(made)


_TYPES: Final[Mapping[str, tuple[type[Any] | tuple[type[Any], ...], str]]] = {
    "object": (Mapping, "must be an object"),
    "array": (list, "must be a list"),
    "string": (str, "must be a string"),
    "integer": (int, "must be a whole number"),
    "number": ((int, float), "must be a number"),
    "boolean": (bool, "must be true or false"),
}


def _checked(value: Any, schema: Mapping[str, Any], path: str, problems: list[InvalidManifest]) -> Any:
    """The value as it is taken; what is wrong with it is added to the problems."""

    def wrong(words: str) -> Any:
        problems.append(InvalidManifest(f"{path}: {words}" if path else words, path=path, value=value))
        return value

    for part in (*schema.get("oneOf", ()), *schema.get("allOf", ())):
        schema = {**schema, **part} if "$ref" in part else {**schema, "type": ["object", part["type"]]}
    nullable = "null" in schema.get("type", ())
    if value is None and nullable:
        return None
    if "$ref" in schema:
        schema = declared()["schemas"][schema["$ref"]]
    types = schema.get("type", "object" if "properties" in schema else ())
    types = [one for one in ([types] if isinstance(types, str) else types) if one != "null"]
    if value is None and types:
        return wrong("may not be null")
    if types and not any(_is(value, one) for one in types):
        return wrong(_TYPES[types[0]][1])
    if "enum" in schema and value not in schema["enum"]:
        return wrong(f'"{str(value)[:80]}" is none of {", ".join(map(str, schema["enum"]))}')
    if isinstance(value, str):
        value = value if "\n" in value else value.strip()
    if words := _out_of_bounds(value, schema):
        return wrong(words)
    if isinstance(value, list) and "items" in schema:
        return [
            _checked(one, schema["items"], f"{path}[{place}]", problems) for place, one in enumerate(value)
        ]
    return _members(value, schema, path, problems) if isinstance(value, Mapping) else value


def _is(value: Any, type_: str) -> bool:
    return isinstance(value, _TYPES[type_][0]) and (type_ == "boolean" or not isinstance(value, bool))


def _out_of_bounds(value: Any, schema: Mapping[str, Any]) -> str:
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            return "may not be blank"
        if len(value) > schema.get("maxLength", LARGEST):
            return f"has {len(value):,} characters, at most {schema['maxLength']:,} are allowed"
        if not re.search(schema.get("pattern", ""), value):
            return f'"{value[:80]}" does not match {schema["pattern"]}'
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            return "may not be empty"
        if len(value) > schema.get("maxItems", LARGEST):
            return f"has {len(value):,} entries, at most {schema['maxItems']:,} are allowed"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if "minimum" in schema and value < schema["minimum"]:
            return f"{value} is too small, it must be at least {schema['minimum']}"
        if "maximum" in schema and value > schema["maximum"]:
            return f"{value} is too large, it may be at most {schema['maximum']}"
    return ""


def _members(
    value: Mapping[str, Any], schema: Mapping[str, Any], path: str, problems: list[InvalidManifest]
) -> dict[str, Any]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    made = {
        name: copy(one["default"]) for name, one in known.items() if "default" in one and name not in value
    }
    for name, one in value.items():
        here = f"{path}.{name}" if path else name
        if name in known:
            made[name] = _checked(one, known[name], here, problems)
        elif others is False:
            words = f"{here}: is not a key here; there are {', '.join(known)}"
            problems.append(InvalidManifest(words, path=here))
        else:
            made[name] = _checked(one, others, here, problems) if others else one
    optional = schema.get("optional", ())
    for name in schema.get("required", [name for name in known if name not in optional]):
        if name not in value:
            here = f"{path}.{name}" if path else name
            problems.append(InvalidManifest(f"{here}: is required", path=here))
    return made


# ---- queries


def whole_number(
    request: Request, name: str, *, default: int | None = None, least: int = 0, most: int = LARGEST
) -> int | None:
    """A whole number, or the default if the parameter is absent or empty.

    Raises
    ------
    InvalidInput
    """
    text = request.GET.get(name, "")
    if not text:
        return default
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else -1
    if not least <= number <= most:
        raise InvalidInput(f"{name} is a whole number from {least} to {most}", field=name, value=text)
    return number


def flag(request: Request, name: str) -> bool:
    """`1`, `true`, `yes`, or the bare name.

    Raises
    ------
    InvalidInput
    """
    text = request.GET.get(name)
    if text is None or text.lower() in ("0", "false", "no"):
        return False
    if text.lower() in ("", "1", "true", "yes"):
        return True
    raise InvalidInput(f"{name} is true or false", field=name, value=text)
