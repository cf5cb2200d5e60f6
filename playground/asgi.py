"""The site as an ASGI application; this is what `manage.py play` serves."""

import os
import warnings

from django.core.asgi import get_asgi_application

from playground import encoding

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "playground.settings")

# WhiteNoise reads files synchronously; Django says so once per file, and a file read is short.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")

application = encoding.asgi(get_asgi_application())

from playground.web.site import warm  # noqa: E402 (the apps are there only now)

warm()
