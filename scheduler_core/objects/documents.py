"""The front door for YAML and JSON text written by people: every document as plain data, or a clear error.

YAML is read as Kubernetes' own tools read it (YAML 1.1 booleans and octals, duplicate keys refused), but
without dates, sexagesimals, aliases and tags, and with `1e3` as a number.

Documents are built from parser events: composing a text in the C parser recurses, and 100,000 nested brackets
(200 kB) end the whole interpreter with a segmentation fault, while a few aliases can expand to gigabytes later.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from scheduler_core.errors import InvalidManifest, InvalidObject

MAX_BYTES = 10_000_000
MAX_DEPTH = 64
MAX_PLACED = 16 * 2**20
"""Characters of the longest text that is composed again to find a line."""

TAG_PREFIX = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(TAG_PREFIX + name for name in ("str", "int", "float", "bool", "null", "map", "seq"))
_TAG_OF = {"mapping": TAG_PREFIX + "map", "sequence": TAG_PREFIX + "seq"}
_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class LoadedDocument:
    """One document of a text.

    Attributes
    ----------
    index
        Position among all documents of the text, empty ones counted, from 0.
    line
        Where it begins, from 1.
    value
        Its data: always a mapping with string keys, JSON-able throughout.
    """

    index: int
    line: int
    value: dict[str, Any]


@dataclass(slots=True)
class LineMap:
    """Finds the line of a field path; the text is composed again only when a line is asked for.

    The document that was asked for last is kept: asked in the order of the text, it is composed once.
    """

    text: str
    _composed: Iterator[Any] = field(default=iter(()), init=False, repr=False, compare=False)
    _index: int | None = field(default=None, init=False, repr=False, compare=False)
    """Of the document at hand; None before the first question."""
    _root: Any = field(default=None, init=False, repr=False, compare=False)

    def place(self, document: int, path: str, entry: str = "") -> tuple[int, int] | None:
        """Line and column (from 1) of `path` in a document, or its nearest parent that exists; None in a long text.

        Parameters
        ----------
        entry
            Of a map at the path: the key that is meant, or the value.
        """
        if len(self.text) > MAX_PLACED:
            return None
        if self._index is None or document < self._index:
            self._composed, self._index = _composed(self.text), -1
        try:
            while self._index < document:
                self._root, self._index = next(self._composed, None), self._index + 1
        except yaml.YAMLError:  # JSON that is no YAML
            self._root, self._index = None, document
        if self._root is None:
            return None
        mark = _descend(self._root, _parts(path), entry)
        return mark.line + 1, mark.column + 1


def load_document(text: bytes, *, json_only: bool = False, max_bytes: int = MAX_BYTES) -> Any:
    """The one document of a text that is no manifest, with the same guards (depth, aliases, NUL, duplicates).

    Returns
    -------
    object
        A mapping, or None for an empty text.

    Raises
    ------
    InvalidManifest
        It cannot be read, is no mapping, or there are several.
    """
    documents = load_documents(text, json_only=json_only, max_bytes=max_bytes)
    if len(documents) > 1:
        raise InvalidManifest("one document is wanted here, not several", document=1, line=documents[1].line)
    return documents[0].value if documents else None


def load_documents(
    text: str | bytes, *, json_only: bool = False, max_bytes: int = MAX_BYTES
) -> list[LoadedDocument]:
    """Read every document of a YAML or JSON text.

    Parameters
    ----------
    text
        What was posted; bytes are UTF-8, or what their byte order mark says.
    json_only
        Refuse what is not JSON.
    max_bytes
        Limit on its size.

    Returns
    -------
    list of LoadedDocument
        Empty documents are left out.

    Raises
    ------
    InvalidManifest
        With document, line, column, path and value as far as they are known.
    """
    size = (
        len(text) if isinstance(text, bytes) or text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    )
    if size > max_bytes:
        words = f"the text has {size:,} bytes, the limit is {max_bytes:,}"
        raise InvalidManifest(words, reason="RequestEntityTooLarge")
    written = decoded(text)
    if json_only or written.lstrip()[:1] == "{":
        try:
            return _load_json(written)
        except json.JSONDecodeError as error:
            if json_only:
                raise InvalidManifest(
                    f"not valid JSON: {error.msg}", document=0, line=error.lineno, column=error.colno
                ) from None
    return _load_yaml(written)


_BY_MARK = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
"""Byte order marks; that of little-endian UTF-32 begins with that of UTF-16."""


def pasted_values(text: str | bytes, what: str) -> list[dict[str, Any]]:
    """The documents of a program's settings as they were pasted.

    Parameters
    ----------
    what : str
        Whose settings they are: the path of an error begins with it.

    Raises
    ------
    InvalidObject
        The text cannot be read.
    """
    try:
        return [document.value for document in load_documents(text)]
    except InvalidManifest as error:
        raise InvalidObject(what, None, f"cannot be read: {error.in_text}") from None


def decoded(text: str | bytes, errors: str = "strict") -> str:
    """A text without its byte order mark, which says its encoding; without one it is UTF-8.

    Parameters
    ----------
    errors
        What to do with bytes that are none of that encoding, as `bytes.decode` takes it.

    Raises
    ------
    InvalidManifest
        The bytes are none of that encoding.
    """
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    encoding = next((name for mark, name in _BY_MARK if text.startswith(mark)), "UTF-8")
    try:
        return text.decode(encoding, errors).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = text[: error.start].decode(encoding, "replace").count("\n") + 1
        raise InvalidManifest(f"the text is not {encoding}", line=line) from None


# --- JSON ---------------------------------------------------------------------------------------------------

# Possessive and never failing after the opening quote: unterminated strings cost one pass, not n².
_JSON_TOKENS = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)


def _load_json(text: str) -> list[LoadedDocument]:
    depth = 0
    for token in _JSON_TOKENS.finditer(text):
        first = text[token.start()]
        if first in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                line, column = _place(text, token.start())
                raise InvalidManifest(
                    f"nested deeper than {MAX_DEPTH} levels", document=0, line=line, column=column
                )
        elif first in "]}":
            depth -= 1
    decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant)
    documents: list[LoadedDocument] = []
    position = _skip_space(text, 0)
    index = 0
    while position < len(text):
        line, _ = _place(text, position)
        try:
            value, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError:
            raise
        except InvalidManifest as error:
            raise InvalidManifest(error.message, document=index, line=line, value=error.value) from None
        except ValueError:  # an integer of more digits than Python turns into one
            raise InvalidManifest("is a number too large", document=index, line=line) from None
        if value is not None:
            documents.append(LoadedDocument(index, line, _checked(value, index, LineMap(text))))
        position = _skip_space(text, end)
        index += 1
    return documents


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _place(text: str, position: int) -> tuple[int, int]:
    start = text.rfind("\n", 0, position) + 1
    return text.count("\n", 0, position) + 1, position - start + 1


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InvalidManifest(f'the key "{key}" is there twice', value=key)
            seen.add(key)
    return result


def _no_constant(name: str) -> Any:
    raise InvalidManifest(f"{name} is not a JSON value", value=name)


# --- YAML ---------------------------------------------------------------------------------------------------


class _KubernetesLoader(_BaseLoader):  # type: ignore[misc]
    """PyYAML's safe loader with the resolvers Kubernetes' tools have."""

    yaml_implicit_resolvers: dict[str, Any] = {}


def _not_constructed(said: str, event: Any) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, said, event.start_mark)


def _not_a_string(event: Any) -> yaml.YAMLError:
    return _not_constructed("a key must be a string", event)


def _resolve(name: str, pattern: str, first: str) -> None:
    _KubernetesLoader.add_implicit_resolver(TAG_PREFIX + name, re.compile(pattern), list(first))


# Order matters: the first match wins, so integers come before floats.
_resolve(
    "bool", r"^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$", "yYnNtTfFoO"
)
_resolve("null", r"^(?:~|null|Null|NULL|)$", "~nN\0")
_KubernetesLoader.add_implicit_resolver(TAG_PREFIX + "null", re.compile(r"^$"), [""])
_resolve("int", r"^[-+]?(?:0b[01]+|0x[0-9a-fA-F]+|0o?[0-7]+|0|[1-9][0-9]*)$", "-+0123456789")
_resolve("float", r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$", "-+.0123456789")


def _loader(text: str) -> Any:
    return _KubernetesLoader(text)


def _load_yaml(text: str) -> list[LoadedDocument]:
    reading = _Reading(text)
    try:
        reading.walk()
    except yaml.YAMLError as error:
        raise _yaml_error(error, text, None) from None
    documents: list[LoadedDocument] = []
    for index, (line, value, problem) in enumerate(reading.documents):
        if isinstance(problem, yaml.YAMLError):
            raise _yaml_error(problem, text, index)
        if problem is not None:
            raise problem
        if value is not None:
            documents.append(LoadedDocument(index, line, _checked(value, index, LineMap(text))))
    return documents


class _Reading:
    """Builds every document of a text from parser events: nothing recurses, and nothing is walked twice.

    What is no YAML, or could do harm, is raised where it stands; what else is wrong with a document is kept with it,
    for of a text that is no YAML that is to be said first.

    Attributes
    ----------
    documents : list of (int, object, InvalidManifest or YAMLError or None)
        The line each begins at, from 1, its data, and the first thing that is wrong with it.
    """

    def __init__(self, text: str) -> None:
        self._loader = _loader(text)
        self._plain: dict[str, Any] = {}
        """What unquoted words stand for: most are written many times."""
        self.documents: list[tuple[int, Any, Exception | None]] = []
        self._begin()

    def _begin(self) -> None:
        self._line, self._root = 0, None
        self._problem: Exception | None = None
        self._around: list[tuple[Any, str | None]] = []
        """The collections around the present one, the outermost first, each with the key that leads on."""
        self._inside: Any = None
        """The collection the next value belongs to, None at the top."""
        self._key: str | None = None
        """The key the next value belongs to; None where a key comes next, or none is wanted."""

    def walk(self) -> None:
        """Read to the end of the text."""
        loader, plain = self._loader, self._plain
        try:
            while (event := loader.get_event()) is not None:
                kind = type(event)
                if kind is yaml.ScalarEvent:
                    if event.tag is not None or (event.implicit[0] and event.value not in plain):
                        value = self._resolved(event)
                    else:
                        value = plain[event.value] if event.implicit[0] else event.value
                    inside, key = self._inside, self._key
                    if type(inside) is not dict:
                        self._put(event, value)
                    elif key is not None:
                        inside[key] = value
                        self._key = None
                    elif type(value) is str and value not in inside:
                        self._key = value
                    else:
                        self._take_key(event, value)
                elif kind is yaml.MappingStartEvent:
                    self._enter(event, {}, "mapping")
                elif kind is yaml.SequenceStartEvent:
                    self._enter(event, [], "sequence")
                elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                    self._inside, self._key = self._around.pop()[0], None
                elif kind is yaml.DocumentEndEvent:
                    self.documents.append((self._line, self._root, self._problem))
                    self._begin()
                elif kind is yaml.AliasEvent:
                    raise self._refused(
                        f"aliases (*{event.anchor}) are not accepted: write the value out", event
                    )
        finally:
            loader.dispose()

    def _put(self, event: Any, value: Any) -> None:
        inside = self._inside
        if type(inside) is dict:
            inside[self._key] = value
            self._key = None
        elif inside is not None:
            inside.append(value)
        else:
            self._root, self._line = value, event.start_mark.line + 1

    def _take_key(self, event: Any, value: Any) -> None:
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, int | float):
            value = event.value
        elif not isinstance(value, str):
            self._note(_not_a_string(event))
            value = event.value
        if value in self._inside:
            mark = event.start_mark
            path = self._path(event.value)
            problem = InvalidManifest(
                f'{path}: the key "{event.value}" is there twice',
                document=len(self.documents),
                line=mark.line + 1,
                column=mark.column + 1,
                path=path,
                value=event.value,
            )
            self._note(problem)
        self._key = value

    def _path(self, key: str) -> str:
        path = ""
        for around, name in self._around[1:]:
            path += f"[{len(around) - 1}]" if name is None else f".{name}"
        if type(self._inside) is dict:
            path += f".{key}"
        return path.removeprefix(".")

    def _enter(self, event: Any, collection: Any, kind: str) -> None:
        self._check_tag(event)
        if event.tag not in (None, "!", _TAG_OF[kind]):
            wanted = next((name for name, tag in _TAG_OF.items() if tag == event.tag), "scalar")
            self._note(_not_constructed(f"expected a {wanted} node, but found {kind}", event))
        if len(self._around) >= MAX_DEPTH:
            raise self._refused(f"nested deeper than {MAX_DEPTH} levels", event)
        if self._key is None and type(self._inside) is dict:
            self._note(_not_a_string(event))
            self._key = ""
        self._around.append((self._inside, self._key))
        self._put(event, collection)
        self._inside = collection

    def _resolved(self, event: Any) -> Any:
        """The value of a scalar that is no quoted string."""
        self._check_tag(event)
        loader, tag, text = self._loader, event.tag, event.value
        if tag is None or tag == "!":
            tag = loader.resolve(yaml.ScalarNode, text, event.implicit)
        node = yaml.ScalarNode(tag, text, event.start_mark, event.end_mark)
        try:
            value = loader.construct_object(node, deep=True)
        except yaml.YAMLError as error:
            self._note(error)
            return None
        except (ValueError, OverflowError, LookupError) as error:
            # LookupError is what PyYAML makes of `!!int ""` and `!!bool maybe`.
            words = (
                f'"{text}" is no {tag.removeprefix(TAG_PREFIX)}' if isinstance(error, LookupError) else error
            )
            self._note(self._refused(f"a value cannot be read: {words}", event))
            return None
        if event.tag is None:
            self._plain[text] = value
        return value

    def _check_tag(self, event: Any) -> None:
        if event.tag is not None and event.tag not in _PLAIN_TAGS and event.tag != "!":
            raise self._refused(f"the tag {event.tag} is not accepted", event, value=event.tag)

    def _note(self, problem: Exception) -> None:
        self._problem = self._problem or problem

    def _refused(self, said: str, event: Any, value: Any = None) -> InvalidManifest:
        mark, document = event.start_mark, len(self.documents)
        return InvalidManifest(
            said, document=document, line=mark.line + 1, column=mark.column + 1, value=value
        )


def _composed(text: str) -> Iterator[Any]:
    """The root of each document, None of an empty one."""
    loader = _loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            empty = isinstance(node, yaml.ScalarNode) and node.value == "" and node.tag == TAG_PREFIX + "null"
            yield None if empty else node
    finally:
        loader.dispose()


def _yaml_error(error: yaml.YAMLError, text: str, document: int | None) -> InvalidManifest:
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    context = getattr(error, "context", None)
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = column = None
    if mark is not None:
        # What is missing at the end is reported one line below it.
        line, column = min(mark.line + 1, max(1, len(text.splitlines()))), mark.column + 1
    elif isinstance(position := getattr(error, "position", None), int):
        line, column = _place(text, position)
    if document is None and line is not None:
        lines = text.splitlines()[: line - 1]
        starts = [at for at, written in enumerate(lines) if written.startswith("---")]
        leading = bool(starts) and not any(
            written.strip() and not written.lstrip().startswith(("#", "%")) for written in lines[: starts[0]]
        )
        document = len(starts) - (1 if leading else 0)
    words = f"{problem} ({context})" if context else f"{problem}"
    return InvalidManifest(f"not valid YAML: {words}", document=document, line=line, column=column)


# --- what holds for both ------------------------------------------------------------------------------------


def _checked(value: Any, document: int, lines: LineMap) -> dict[str, Any]:
    if not isinstance(value, dict):
        place = lines.place(document, "")
        raise InvalidManifest(
            "a document must be an object with apiVersion and kind",
            document=document,
            line=place[0] if place else None,
            value=value if isinstance(value, str | int | float) else None,
        )
    problem = _find_problem(value, "")
    if problem is not None:
        path, reason = problem
        place = lines.place(document, path)
        line, column = place if place else (None, None)
        raise InvalidManifest(f"{path}: {reason}", document=document, line=line, column=column, path=path)
    return value


def _find_problem(value: Any, path: str) -> tuple[str, str] | None:
    """What no database or JSON answer could hold: NUL, lone surrogates, infinite numbers."""
    if isinstance(value, str):
        if not value.isascii() or "\0" in value:
            if "\0" in value:
                return path, "contains the character U+0000"
            if any("\ud800" <= letter <= "\udfff" for letter in value):
                return path, "contains half of a surrogate pair"
    elif isinstance(value, dict):
        for key, item in value.items():
            is_plain = key.isascii() and "\0" not in key
            if is_plain and type(item) is str and item.isascii() and "\0" not in item:
                continue  # most are so
            here = f"{path}.{key}" if path else str(key)
            problem = (None if is_plain else _find_problem(key, here)) or _find_problem(item, here)
            if problem is not None:
                return problem
    elif isinstance(value, list):
        for index, item in enumerate(value):
            problem = _find_problem(item, f"{path}[{index}]")
            if problem is not None:
                return problem
    elif isinstance(value, float) and not math.isfinite(value):
        return path, "is a number too large"
    return None


_PATH = re.compile(r"\[([^\]]*)\]|([^.\[]+)")


def _parts(path: str) -> list[str]:
    return [
        match.group(1) if match.group(1) is not None else match.group(2) for match in _PATH.finditer(path)
    ]


def _descend(node: Any, parts: list[str], entry: str) -> Any:
    """The mark of the field, or of its nearest existing parent; keys with dots are tried joined."""
    mark = node.start_mark
    position = 0
    while position < len(parts):
        if isinstance(node, yaml.SequenceNode):
            index = int(parts[position]) if parts[position].isdigit() else -1
            if not 0 <= index < len(node.value):
                return mark
            node = node.value[index]
            mark = node.start_mark
            position += 1
            continue
        if not isinstance(node, yaml.MappingNode):
            return mark
        for end in range(len(parts), position, -1):
            found = _entry(node, ".".join(parts[position:end]))
            if found is not None:
                key_node, node = found
                mark = key_node.start_mark
                position = end
                break
        else:
            return mark
    if entry and isinstance(node, yaml.MappingNode):
        of_value = (pair for pair in node.value if pair[1].value == entry)
        found = _entry(node, entry) or next(of_value, None)
        return mark if found is None else found[0].start_mark
    return mark


def _entry(node: Any, key: str) -> tuple[Any, Any] | None:
    return next((pair for pair in node.value if pair[0].value == key), None)
