"""Whatever stands in a body: every write of the Kubernetes API answers 400 with a Status, and nothing has changed."""

from collections.abc import Iterator

from playground.clusters.models import LogEntry
from playground.kube_api.requests import PATCH_TYPES
from playground.kube_api.reviews import REVIEWS
from tests.api.hostile_bodies import HOSTILE
from tests.kube_api.conftest import PODS, SERVED, Kube

JSON = "application/json"
# A JSON patch is a list.
LISTS = ("a list",)
# An apply is YAML.
YAML = ("single quotes", "a comma too many", "two byte order marks")


def writes() -> Iterator[tuple[str, str, str]]:
    """Method, path and media type of every write there is, of every kind."""
    for api_version in SERVED.api_versions():
        for kind in SERVED.in_version(api_version):
            if "create" not in kind.verbs or not kind.is_stored:
                continue
            group = "/api/" if api_version == "v1" else "/apis/"
            within = "/namespaces/default" if kind.namespaced else ""
            many = f"{group}{api_version}{within}/{kind.plural}"
            yield "POST", many, JSON
            for path in (f"{many}/p1", f"{many}/p1/status"):
                yield "PUT", path, JSON
                yield from (("PATCH", path, media) for media in PATCH_TYPES)
            yield "DELETE", f"{many}/p1", JSON
            if "deletecollection" in kind.verbs:
                yield "DELETE", many, JSON
    for part in ("binding", "eviction"):
        yield "POST", f"{PODS}/p1/{part}", JSON
    yield "PUT", "/apis/apps/v1/namespaces/default/deployments/p1/scale", JSON
    yield from (("POST", f"/{path}", JSON) for path in REVIEWS if "/localsubject" not in path)


def test_the_walk_takes_in_every_kind_of_write() -> None:
    assert len(list(writes())) > 150
    assert {method for method, _, _ in writes()} == {"POST", "PUT", "PATCH", "DELETE"}


def test_every_write_refuses_every_one_of_them_with_a_status(kube: Kube) -> None:
    before = LogEntry.objects.count()
    wrong = []
    for number, (method, path, media) in enumerate(writes()):
        # Creating a pod gets every body; the others, which share its code, one each by turns.
        bodies = list(HOSTILE.items())
        for name, body in bodies if (method, path) == ("POST", PODS) else [bodies[number % len(bodies)]]:
            if (name in LISTS and "json-patch" in media) or (name in YAML and "yaml" in media):
                continue
            query = "?fieldManager=tester" if "apply" in media else ""
            answer = kube.send(method, path + query, body, media=media)
            if answer.status_code == 404 or (answer.status_code == 405 and path.endswith("/status")):
                continue
            told = answer.json() if answer["Content-Type"] == JSON else {}
            if (answer.status_code, told.get("kind"), told.get("code")) != (400, "Status", 400):
                wrong.append(
                    f"{method} {path} {media}, {name}: {answer.status_code} {answer.content[:150]!r}"
                )
    assert wrong == []
    assert LogEntry.objects.count() == before
