"""The configuration page: switches and weights become a document that runs exactly so."""

import pytest
from django.urls import reverse

from playground.engine.configuration import loaded
from playground.web.config import present
from playground.web.config.present import edited
from tests.manifests import scheduler_config
from tests.markup import html_of
from tests.tables import table
from tests.web.cases import by_attribute
from tests.web.test_pages import get

view_profile = by_attribute(present.view_profile)
pytestmark = pytest.mark.django_db


def fields(profile):
    """What the page posts when nothing is touched."""
    posted = {f"on:{point}:{name}": "on" for point, names in profile.plugins.items() for name in names}
    return posted | {f"w:{name}": str(weight) for name, weight in profile.weights.items()}


def test_an_untouched_page_changes_nothing():
    profile = loaded(None).plans[0]
    assert loaded(edited(None, profile, fields(profile))).plans[0] == profile


@pytest.mark.parametrize(
    ("point", "plugin"),
    [("filter", "TaintToleration"), ("score", "ImageLocality"), ("preScore", "PodTopologySpread")],
)
def test_a_plugin_is_switched_off_and_on_again(point, plugin):
    profile = loaded(None).plans[0]
    posted = fields(profile)
    del posted[f"on:{point}:{plugin}"]
    document = edited(None, profile, posted)
    without = loaded(document).plans[0]
    assert without.plugins[point] == tuple(name for name in profile.plugins[point] if name != plugin)
    view = view_profile(without)
    assert f"{plugin} off, default on at {point[0].upper()}{point[1:]}" in view.differences
    again = edited(
        document,
        without,
        fields(without) | {f"on:{point}:{plugin}": "on", f"w:{plugin}": str(profile.weights.get(plugin, 1))},
    )
    assert loaded(again).plans[0].plugins == profile.plugins


def test_a_weight_is_changed():
    profile = loaded(None).plans[0]
    document = edited(None, profile, fields(profile) | {"w:NodeResourcesFit": "7"})
    changed = loaded(document).plans[0]
    assert changed.weights["NodeResourcesFit"] == 7
    assert {**changed.weights, "NodeResourcesFit": 1} == dict(profile.weights)
    assert "NodeResourcesFit default × 1 at Score" in view_profile(changed).differences


def test_what_was_written_besides_stays():
    written = scheduler_config(profiles=table(__file__, "what_was_written_besides_stays"))
    profile = loaded(written).plans[0]
    assert any("MostAllocated" in words for words in view_profile(profile).differences)
    document = edited(written, profile, fields(profile) | {"w:ImageLocality": "3"})
    assert document["profiles"][0]["pluginConfig"] == written["profiles"][0]["pluginConfig"]
    assert loaded(document).plans[0].weights["ImageLocality"] == 3


def test_the_page_saves_switches_and_refuses_nonsense(client, cluster):
    url = reverse("web:config", args=[cluster.public_id])
    posted = fields(loaded(None).plans[0]) | {"action": "points", "profile": "default-scheduler"}
    del posted["on:score:ImageLocality"]
    assert client.post(url, posted).status_code == 302
    cluster.refresh_from_db()
    assert cluster.config["profiles"][0]["plugins"]["score"]["disabled"] == [{"name": "ImageLocality"}]
    html = html_of(get(client, "config", cluster.public_id))
    assert "1 difference" in html and "off, default on" in html
    response = client.post(url, fields(loaded(None).plans[0]) | {"action": "points", "w:NodeAffinity": "-4"})
    assert response.status_code == 400 and "error" in html_of(response)


def test_extenders_are_listed(client, cluster):
    text = table(__file__, "extenders_are_listed")
    response = client.post(reverse("web:config", args=[cluster.public_id]), {"text": text})
    assert response.status_code == 302
    html = html_of(get(client, "config", cluster.public_id))
    assert "http://127.0.0.1:9/quota" in html and "ignorable" in html
