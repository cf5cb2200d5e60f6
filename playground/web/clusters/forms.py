"""Forms that make or rename clusters."""

from typing import Any

from django import forms
from django.conf import settings

from playground.bodies import BodyTooLarge, NotUnpacked, megabytes, size_words, unpacked
from playground.clusters.errors import InvalidManifest
from playground.engine.releases import DEFAULT, release_outlines
from playground.web.fields import AmountsField, NameField, PairsField, QuantityField, TaintsField
from scheduler_core.objects.documents import decoded

MAX_NODES = 5000


def _releases() -> list[tuple[str, str]]:
    return [
        (release.name, f"{release.name} (kube-scheduler {release.patch})")
        for release in reversed(release_outlines())
    ]


class ReleaseField(forms.ChoiceField):
    """Which Kubernetes a new cluster follows."""

    def __init__(self) -> None:
        super().__init__(
            choices=_releases,
            initial=DEFAULT,
            required=False,
            label="Kubernetes release",
            help_text="It can be changed later, under Config.",
        )


class ClusterNameForm(forms.Form):
    """A cluster's name and release."""

    name = forms.CharField(max_length=100, label="Name")
    kubernetes_release = ReleaseField()


class NodePoolForm(forms.Form):
    """A pool of equal nodes, spread over zones in turn."""

    cluster_name = forms.CharField(max_length=100, required=False, label="Cluster name")
    kubernetes_release = ReleaseField()
    pool = NameField(initial="general", label="Pool", help_text="Nodes are called pool-1, pool-2, …")
    count = forms.IntegerField(min_value=1, max_value=MAX_NODES, initial=6, label="Nodes")
    zones = forms.CharField(
        initial="zone-a, zone-b, zone-c", required=False, label="Zones", help_text="Names, in turn"
    )
    cpu = QuantityField(initial="8", label="CPU")
    memory = QuantityField(initial="32Gi", example="32Gi or 512Mi", label="Memory")
    pods = forms.IntegerField(min_value=0, max_value=100_000, initial=110, label="pods")
    extended = AmountsField(required=False, label="Extended resources", help_text="nvidia.com/gpu=4")
    labels = PairsField(required=False, label="Labels", help_text="disk=ssd, pool=general")
    taints = TaintsField(required=False, label="Taints", help_text="gpu=true:NoSchedule")

    def clean_zones(self) -> list[str]:
        """The zones as a list."""
        return [zone.strip() for zone in self.cleaned_data["zones"].split(",") if zone.strip()]


def _as_utf8(data: bytes) -> bytes:
    """A file in UTF-8, whatever its byte order mark says it is, as what PowerShell redirects into a file is UTF-16."""
    try:
        return decoded(data).encode()
    except InvalidManifest:
        return data  # reading it says what is wrong, and where


class ImportForm(forms.Form):
    """Manifests, pasted or from a file, which may be gzip'd; a file wins."""

    cluster_name = forms.CharField(max_length=100, required=False, label="Cluster name")
    kubernetes_release = ReleaseField()
    text = forms.CharField(required=False, widget=forms.Textarea, strip=False, label="YAML or JSON")
    upload = forms.FileField(required=False, label="File")
    without_owners = forms.BooleanField(required=False, label="Leave missing owners out")

    def clean(self) -> dict[str, Any]:
        """Put the file's content into ``manifests`` when there is one, else the pasted text."""
        data = super().clean() or {}
        upload = data.get("upload")
        text = data.get("text") or ""
        size = upload.size if upload else len(text.encode())
        if size > settings.PLAYGROUND_MAX_UPLOAD_BYTES:
            # Not read at all: a file waits on the disk.
            self.add_error("upload" if upload else "text", size_words(megabytes(size)))
            return data
        try:
            data["manifests"] = _as_utf8(unpacked(upload.read())) if upload else text
        except BodyTooLarge as error:
            limit = megabytes(error.limit_bytes)
            self.add_error(
                "upload", f"This file has more than {limit} unpacked, which is the most that is read."
            )
        except NotUnpacked as error:
            self.add_error("upload", f"This file cannot be read: {error}.")
        else:
            if not data["manifests"].strip():
                self.add_error("text", "Paste YAML or JSON, or choose a file.")
        return data
