"""Texts and documents to checked documents, as strictly as kube-scheduler reads them.

Source: cmd/kube-scheduler/app/options/configfile.go loadConfig,
staging/src/k8s.io/apimachinery/pkg/runtime/serializer (strict), kube-scheduler/config/v1/types.go
DecodeNestedObjects, v1.34

Differs: YAML aliases and tags are refused, as everywhere in this package.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scheduler_core.config.catalog import Catalog, args_kind
from scheduler_core.config.types import API_VERSION, KIND, POLICY_KIND, KubeSchedulerConfiguration
from scheduler_core.config.wire import UNSET, Document, Problems, typed
from scheduler_core.errors import DecodeError, FieldError, InvalidManifest, invalid, not_supported
from scheduler_core.objects.documents import load_documents

_TYPE_META = ("apiVersion", "kind")
_CONFIG_MAP = "ConfigMap"
_DEEPEST = 4
"""Lists in lists, and ConfigMaps in ConfigMaps."""


def read_document(source: object) -> Document:
    """A text or a document as a document; a ConfigMap, a List or a dump gives the configuration it holds.

    Raises
    ------
    DecodeError
        The text cannot be read, it holds no object, or a ConfigMap not exactly one configuration.
    """
    if isinstance(source, str | bytes):
        return configuration_among(documents_of_text(source))
    if not isinstance(source, Mapping):
        raise _other(FieldError("FieldValueTypeInvalid", "document", source, "must be an object"))
    return configuration_among([source])


def configuration_among(documents: Sequence[Document]) -> Document:
    """The configuration among documents, out of the ConfigMaps and Lists that hold it.

    kube-scheduler reads the first document of its file, so that one counts where it is a configuration. Where no
    document is or holds one, the first is what is given, to be refused by its kind; no document is an empty one.

    Raises
    ------
    DecodeError
        ConfigMaps hold several, or none, or one that cannot be read.
    """
    if not documents:
        return {}
    first = documents[0]
    if _is_configuration(first):
        return first
    found = [one for document in documents for one in _held(document, "", 0)]
    if len(found) == 1:
        return found[0][1]
    if found:
        places = ", ".join(place or "a document" for place, _ in found)
        raise _other(invalid("document", None, f"holds {len(found)} configurations: {places}"))
    if first.get("kind") == _CONFIG_MAP:
        keys = ", ".join(str(key) for key in first.get("data") or ()) or "none"
        detail = f"no {KIND} and no Policy is under its keys ({keys})"
        problem = FieldError("FieldValueNotSupported", "kind", _CONFIG_MAP, detail)
        raise DecodeError(
            "notRegistered", f'no kind "{_CONFIG_MAP}" is registered for version "v1"', (problem,)
        )
    return first


def _other(problem: FieldError) -> DecodeError:
    return DecodeError("other", str(problem), (problem,))


def _is_configuration(document: Document) -> bool:
    kind, api_version = document.get("kind"), document.get("apiVersion")
    return kind == KIND or (kind == POLICY_KIND and api_version in (None, "", "v1"))


def _held(document: Any, place: str, depth: int) -> Iterator[tuple[str, Document]]:
    """Configurations in a document, with their places. Items of a list from an API server carry no kind."""
    if not isinstance(document, Mapping) or depth > _DEEPEST:
        return
    kind, items, data = (document.get(key) for key in ("kind", "items", "data"))
    if _is_configuration(document):
        yield place, document
    elif isinstance(items, list | tuple) and str(kind).endswith("List"):
        for index, item in enumerate(items):
            yield from _held(item, f"{place}items[{index}].", depth + 1)
    elif kind in (_CONFIG_MAP, None) and isinstance(data, Mapping):
        for key, value in data.items():
            where = f"{place}data[{key}]"
            for one in _documents_under(value, where):
                yield from _held(one, where, depth + 1)


def _documents_under(value: Any, where: str) -> Sequence[Any]:
    """What the value of a ConfigMap's key holds; text of other programs holds nothing."""
    if not isinstance(value, str):
        return (value,)
    try:
        return documents_of_text(value)
    except DecodeError as error:
        if KIND not in value:
            return ()
        errors = tuple(dataclasses.replace(one, field=f"{where}: {one.field}") for one in error.errors)
        raise DecodeError(error.kind, f"{where}: {error}", errors) from None


def documents_of_text(text: str | bytes) -> list[Document]:
    """The documents of a YAML or JSON text, from the first on; none where the text begins with an empty one.

    Raises
    ------
    DecodeError
        `strict` for a duplicate field, `other` for a text that cannot be read.
    """
    head = text.lstrip()[:1]
    is_json = head in ("{", b"{")
    try:
        documents = load_documents(text, json_only=is_json)
    except InvalidManifest as error:
        where = error.path or (f"line {error.line}" if error.line is not None else "document")
        kind = "strict" if error.words.endswith("is there twice") else "other"
        problem = FieldError("FieldValueTypeInvalid", where, error.value, error.words)
        raise DecodeError(kind, error.in_text, (problem,)) from error
    if is_json and len(documents) > 1:
        second = FieldError("FieldValueTypeInvalid", "document", None, "there is more than one document")
        raise DecodeError("other", second.detail, (second,))
    if not documents or documents[0].index != 0:
        return []
    return [document.value if is_json else _whole_floats(document.value) for document in documents]


def _whole_floats(value: Any) -> Any:
    """YAML's `5.0` goes through JSON upstream, where it is written `5`."""
    if isinstance(value, dict):
        return {key: _whole_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_floats(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value


def type_of(document: Document, default_api_version: str = "", default_kind: str = "") -> tuple[str, str]:
    """apiVersion and kind of a document; the keys are found in any case, as upstream finds them here.

    Source: staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json/meta.go Interpret, v1.34
    """
    found = {"apiversion": "", "kind": ""}
    for key, value in document.items():
        if str(key).lower() in found and value is not None:
            if not isinstance(value, str):
                raise _other(FieldError("FieldValueTypeInvalid", str(key), value, "must be a string"))
            found[str(key).lower()] = value
    api_version, kind = found["apiversion"], found["kind"] or default_kind
    if api_version.count("/") > 1:
        problem = invalid("apiVersion", api_version, "must be group/version")
        raise DecodeError("other", f"unexpected GroupVersion string: {api_version}", (problem,))
    group, _, version = api_version.rpartition("/")
    default_group = default_api_version.rpartition("/")[0]
    if not version and group in ("", default_group):
        api_version = default_api_version
    return api_version, kind


def decode_configuration(source: str | bytes | Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    """Decode a v1 configuration strictly.

    Returns
    -------
    dict
        Checked: known fields only, of the right types, null dropped; nothing is defaulted yet. The args of
        plugins with an args kind carry apiVersion and kind.

    Raises
    ------
    DecodeError
        Every field that is unknown or of a wrong type is in `errors`.
    """
    document = read_document(source)
    api_version, kind = type_of(document)
    args_kinds = catalog.args_kinds
    if not kind:
        detail = f'must be "{KIND}"; a Policy file from before v1.23 says "kind: Policy"'
        missing = FieldError("FieldValueRequired", "kind", "", detail)
        raise DecodeError("missingKind", "Object 'Kind' is missing", (missing,))
    if not api_version.rpartition("/")[2]:
        missing = FieldError("FieldValueRequired", "apiVersion", "", f'must be "{API_VERSION}"')
        # What is of another kind altogether is not mended by an apiVersion: its kind is named first.
        foreign = () if kind == KIND or kind in args_kinds else (_foreign_kind(kind),)
        raise DecodeError("missingVersion", "Object 'apiVersion' is missing", (*foreign, missing))
    if api_version != API_VERSION or (kind != KIND and kind not in args_kinds):
        raise _not_registered(api_version, kind, "", "notRegistered")
    if kind != KIND:
        problems = Problems()
        typed(args_kinds[kind]).check(_without_type(document), "", problems)
        _raise_for(problems, [])
        wrong = not_supported("kind", kind, (KIND,))
        raise DecodeError(
            "wrongType", f"couldn't decode as {KIND}, got {API_VERSION}, Kind={kind}: ", (wrong,)
        )

    problems = Problems()
    checked: dict[str, Any] = typed(KubeSchedulerConfiguration).check(_without_type(document), "", problems)
    refused: list[DecodeError] = []
    if not problems.types:
        for profile_index, profile in enumerate(checked.get("profiles", [])):
            for index, plugin_config in enumerate(profile.get("pluginConfig", [])):
                path = f"profiles[{profile_index}].pluginConfig[{index}].args"
                try:
                    _decode_args(plugin_config, catalog, path, problems)
                except DecodeError as error:
                    refused.append(error)
    _raise_for(problems, refused)
    return {"apiVersion": API_VERSION, "kind": KIND, **checked}


def _decode_args(plugin_config: dict[str, Any], catalog: Catalog, path: str, problems: Problems) -> None:
    """Replace the args of a plugin with an args kind by its checked form."""
    cls = catalog.args_of(plugin_config["name"])
    if cls is None:
        return
    args = plugin_config.get("args", {})
    if not isinstance(args, Mapping):
        problems.wrong_type(path, args, "must be an object")
        return
    expected = args_kind(plugin_config["name"])
    api_version, kind = type_of(args, API_VERSION, expected)
    if api_version != API_VERSION or (kind != KIND and kind not in catalog.args_kinds):
        raise _not_registered(api_version, kind, f"{path}.", "other")
    if kind != expected:
        wrong = not_supported(f"{path}.kind", kind, (expected,))
        raise DecodeError(
            "other",
            f"args for plugin {plugin_config['name']} were not of type {expected}, got {kind}",
            (wrong,),
        )
    checked = typed(cls).check(_without_type(args), path, problems)
    if checked is not UNSET:
        plugin_config["args"] = {"apiVersion": API_VERSION, "kind": expected, **checked}


def _without_type(document: Document) -> Document:
    return {key: value for key, value in document.items() if key not in _TYPE_META}


def _foreign_kind(kind: str) -> FieldError:
    detail = f'a scheduler configuration is of kind "{KIND}", or a "{POLICY_KIND}" of v1'
    return FieldError("FieldValueNotSupported", "kind", kind, detail)


def _not_registered(api_version: str, kind: str, prefix: str, error_kind: str) -> DecodeError:
    message = f'no kind "{kind}" is registered for version "{api_version}"'
    if not prefix and kind != KIND:
        problem = _foreign_kind(kind)
    elif api_version != API_VERSION:
        problem = not_supported(f"{prefix}apiVersion", api_version, (API_VERSION,))
    else:
        problem = FieldError("FieldValueNotSupported", f"{prefix}kind", kind, message)
    return DecodeError(error_kind, message, (problem,))


def _raise_for(problems: Problems, refused: list[DecodeError]) -> None:
    """A wrong type outranks unknown fields, as upstream."""
    errors = (*problems.types, *(error for one in refused for error in one.errors), *problems.unknown)
    if not errors:
        return
    message = "; ".join(str(error) for error in errors)
    if problems.types or refused:
        raise DecodeError("other", message, errors)
    raise DecodeError("strict", f"strict decoding error: {message}", errors)
