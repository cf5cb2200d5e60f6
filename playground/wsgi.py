"""The site as a WSGI application; pages update by polling under it."""

import os

from django.core.wsgi import get_wsgi_application

from playground import encoding

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "playground.settings")

application = encoding.wsgi(get_wsgi_application())

from playground.web.site import warm  # noqa: E402 (the apps are there only now)

warm()
