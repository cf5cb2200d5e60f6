"""What a server does before its first request, so that nobody waits for it: views imported, templates compiled."""

import gc
from pathlib import Path

from django.conf import settings
from django.template import TemplateSyntaxError
from django.template.loader import get_template
from django.urls import reverse

from playground.engine.profiles import outline


def warm() -> None:
    """Import what the paths lead to, compile every template, and load the default configuration once."""
    reverse("web:home")  # imports every view, and reads every path
    reverse("api:index")  # the same for paths within a prefix
    for folder in (Path(directory) for directory in settings.TEMPLATES[0]["DIRS"]):
        for file in sorted(folder.rglob("*.html")):
            try:
                get_template(str(file.relative_to(folder)))
            except TemplateSyntaxError:
                # Whoever asks for that page is told; the others are served.
                continue
    outline(None)
    # What is there now stays for the life of the process: the collector need not look at it in some later request.
    gc.collect()
    gc.freeze()
