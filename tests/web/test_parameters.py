"""A misspelt query parameter of a page is refused, one of no field is passed over."""

import re
from pathlib import Path

import pytest
from django.test import Client

import playground.web
from playground.clusters.lifecycle import create_cluster
from playground.clusters.models import Cluster
from playground.web.config import classes
from playground.web.site import KNOWN, OF_WEIGHTS, misspelt
from tests.tables import table

READ = re.compile(
    r"""(?:request\.GET|asked|query)(?:\.get\(|\.getlist\(|\[)\s*"([^"]+)"|"(\w+)" (?:not )?in request\.GET"""
)
SOURCES = Path(playground.web.__file__).parent
TEMPLATES = SOURCES.parents[1] / "templates"


@pytest.fixture
def cluster(db: None) -> Cluster:
    return create_cluster(name="one", seed=1)


@pytest.mark.parametrize(("path", "wrong", "near"), table(__file__, "a_misspelt_parameter_is_refused"))
def test_a_misspelt_parameter_is_refused(
    client: Client, cluster: Cluster, path: str, wrong: str, near: str
) -> None:
    answer = client.get(f"/c/{cluster.public_id}/{path}", {wrong: "x"})
    text = answer.content.decode()
    assert answer.status_code == 400
    assert f"“{wrong}”" in text and f"“{near}”" in text


def test_it_changes_nothing(client: Client, cluster: Cluster) -> None:
    path = f"/c/{cluster.public_id}/cluster/rename/"
    assert client.post(f"{path}?titel=x", {"name": "two"}).status_code == 400
    cluster.refresh_from_db()
    assert cluster.name == "one"


@pytest.mark.parametrize(
    "name", ["utm_source", "utm_campaign", "fbclid", "gclid", "ref", "si", "igshid", "x"]
)
def test_what_others_add_to_a_link_is_passed_over(client: Client, cluster: Cluster, name: str) -> None:
    assert client.get(f"/c/{cluster.public_id}/", {name: "x"}).status_code == 200


def test_every_parameter_that_a_page_reads_is_known() -> None:
    read = {
        name
        for path in SOURCES.rglob("*.py")
        for found in READ.findall(path.read_text())
        for name in found
        if name
    }
    assert len(read) > 30
    assert read <= KNOWN


def test_every_field_of_a_form_that_is_sent_in_an_address_is_known() -> None:
    names = {name for form in (classes.PriorityClassForm, classes.BudgetForm) for name in form.base_fields}
    forms = re.compile(r"<form[^>]*method=\"get\".*?</form>", re.S)
    fields = re.compile(r"<(?:input|select|textarea|button)[^>]*?\sname=\"([^\"]+)\"", re.S)
    for path in TEMPLATES.rglob("*.html"):
        for form in forms.findall(path.read_text()):
            names |= set(fields.findall(form))
    unknown = {name for name in names if not name.startswith((OF_WEIGHTS, "{{")) and misspelt(name)}
    assert unknown == set()
    assert {"q", "outcome"} <= names
