"""Settings of the playground, read from the environment.

Two modes. *Embedded* (the default) is one person on one machine: SQLite, the broker in a folder, only
loopback addresses, no login. *Team* is a served site: its secrets, hosts and servers are stated.

========================  ========================================================================
PLAYGROUND_MODE           ``embedded`` (default) or ``team``
PLAYGROUND_DATA           folder for the databases and the generated secret key (default ``var/`` of the checkout; of
                          an installed wheel the platform's folder for a user's data)
PLAYGROUND_HOSTS          comma-separated host names the site answers to (team mode: required)
PLAYGROUND_SECRET_KEY     Django's secret key (team mode: required; embedded: generated once)
PLAYGROUND_DEBUG          ``1`` for Django's debug pages
PLAYGROUND_HTTPS          ``1`` (default in team mode): secure cookies and HSTS
PLAYGROUND_LOG            ``text`` (default) or ``json``
PLAYGROUND_EXTENDER_HOSTS comma-separated ``host`` or ``host:port`` that scheduler extenders may have although
                          they are inside this server's network; in team mode no other host may be called
PLAYGROUND_PLUGINS        comma-separated names of scheduler plugins that installed packages may bring in, or ``*`` for
                          all (default: all when embedded, none in team mode)
PLAYGROUND_PLUGIN_SECONDS  processor time one call of such a plugin may take before it fails its cycle (default 5)
PLAYGROUND_MAX_OBJECTS    objects one cluster may have (default 100000)
PLAYGROUND_MAX_UPLOAD_MB  size of the manifests of one request (default 16); gzip'd ones may have eight times as much
                          unpacked
PLAYGROUND_MAX_SCENARIO_MB  size of one shared scenario (default 8: a cluster of 1,500 nodes and 8,000 pods has 3)
PLAYGROUND_MAX_CLUSTERS   team mode: clusters one person may have made, those of teams too (default 100)
PLAYGROUND_MAX_SHARES     team mode: scenarios one person may share (default 500)
PLAYGROUND_MAX_STORED_MB  team mode: what one person's clusters, shares and comparisons may store (default 2048)
PLAYGROUND_REQUEST_RATE   team mode: requests to the two APIs one person may make (default ``1200/min``)
PLAYGROUND_WRITE_RATE     team mode: requests, of pages too, that may change something (default ``300/min``)
PLAYGROUND_TRUSTED_PROXIES  comma-separated addresses or networks (``10.0.0.0/8``, ``unix`` for a Unix socket) whose
                          X-Forwarded-For is believed; without it everybody behind a proxy is one address to the
                          login's limits (uvicorn itself believes a proxy on 127.0.0.1, see its --forwarded-allow-ips)
PLAYGROUND_MAIL_HOST      server that takes mail for password resets and invitations; without it an administrator
                          hands out links. Also PLAYGROUND_MAIL_PORT (default 587), PLAYGROUND_MAIL_USER,
                          PLAYGROUND_MAIL_PASSWORD, PLAYGROUND_MAIL_SECURITY (``starttls``, ``tls`` or ``none``)
PLAYGROUND_MAIL_FROM      sender of that mail (default ``playground@`` the site's first host)
PLAYGROUND_KEEP_AUDIT_DAYS  days the audit list of accounts goes back (default 365)
PLAYGROUND_ASK_SECONDS    processor seconds one turn of a question may use (default 120)
PLAYGROUND_MAKE_SECONDS   processor seconds the run of a share, a comparison or a search may use (default 240)
PLAYGROUND_WORK_MEMORY_MB memory each of these may use (default 2048)
PLAYGROUND_KEEP_TRACES_DAYS  days before traces are dropped, to be made again on demand (default 14)
PLAYGROUND_KEEP_LOG_DAYS  days before superseded outcomes are dropped from the logs of clusters; inputs, from which all
                          is decided again, stay (default 0: nothing is dropped)
PLAYGROUND_FOLLOW_DAYS    days that a cluster which follows a live one keeps what happened there (default 7)
PLAYGROUND_FOLLOW_MB      megabytes that this may take; then less is kept (default 500)
PLAYGROUND_OWN_URL        how workers reach the site, for its mock extenders (default ``http://127.0.0.1:8000``;
                          `manage.py play` sets it)
PLAYGROUND_PAGE           folder that `kube-scheduler-playground page` wrote, served at ``/page/`` (default: none)
PLAYGROUND_EMBED_IN       whose pages may show public and unlisted shares in a frame: ``*`` (default), origins with
                          spaces between (``https://wiki.example``), or ``none``; no other page is ever framed
DATABASE_URL              e.g. ``postgresql://user:password@host/name`` (default: SQLite in the data folder)
CELERY_BROKER_URL         e.g. ``redis://host:6379/0``, ``amqp://user:password@host//``
========================  ========================================================================
"""

from __future__ import annotations

import os
import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from platformdirs import user_data_path

from playground import broker
from playground.clusters import lanes
from playground.secret import load_or_create_secret_key
from scheduler_core.schema.tables import table_beside

BASE_DIR = Path(__file__).resolve().parent.parent
IN_CHECKOUT = (BASE_DIR / "manage.py").is_file()
# Templates, static files and the manual: at the top of a checkout, inside of the package where it is installed.
RESOURCES = BASE_DIR if IN_CHECKOUT else Path(__file__).resolve().parent / "resources"


_FIXED = table_beside("playground", "settings.yaml")
_FIXED["TEMPLATES"][0]["DIRS"] = [RESOURCES / "templates"]
if os.environ.get("PLAYGROUND_LOG") == "json":
    _FIXED["LOGGING"]["handlers"]["stderr"]["formatter"] = "json"
globals().update(_FIXED)


def _flag(name: str, *, default: bool = False) -> bool:
    return os.environ.get(name, "1" if default else "0").lower() in ("1", "true", "yes", "on")


def _whole(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if text and not (text.isascii() and text.isdecimal() and int(text)):
        raise ImproperlyConfigured(f'{name}: "{text}" is not a whole number above 0')
    return int(text or default)


def _names(name: str, default: str = "") -> list[str]:
    return [one.strip() for one in os.environ.get(name, default).split(",") if one.strip()]


def _one_of(name: str, *allowed: str) -> str:
    text = os.environ.get(name, allowed[0])
    if text not in allowed:
        raise ImproperlyConfigured(f'{name}: "{text}" is none of {", ".join(allowed)}')
    return text


def _network(name: str, text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise ImproperlyConfigured(f'{name}: "{text}" is neither an address nor a network') from None


def _rate(name: str, default: str) -> str:
    text = os.environ.get(name, default)
    if not re.fullmatch(r"[1-9][0-9]*/(s|sec|min|h|hour|day)", text):
        raise ImproperlyConfigured(f'{name}: "{text}" is not a number, "/", and one of sec, min, hour, day')
    return text


MODE = _one_of("PLAYGROUND_MODE", "embedded", "team")
EMBEDDED = MODE == "embedded"

_USUAL_DATA_DIR = BASE_DIR / "var" if IN_CHECKOUT else user_data_path("kube-scheduler-playground")
DATA_DIR = Path(os.environ.get("PLAYGROUND_DATA") or _USUAL_DATA_DIR).resolve()
DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)

DEBUG = _flag("PLAYGROUND_DEBUG")

LOOPBACK_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
if EMBEDDED:
    SECRET_KEY = os.environ.get("PLAYGROUND_SECRET_KEY") or load_or_create_secret_key(DATA_DIR / "secret-key")
    ALLOWED_HOSTS = LOOPBACK_HOSTS
else:
    SECRET_KEY = os.environ.get("PLAYGROUND_SECRET_KEY", "")
    ALLOWED_HOSTS = _names("PLAYGROUND_HOSTS")
    if not SECRET_KEY or not ALLOWED_HOSTS:
        raise ImproperlyConfigured("team mode needs PLAYGROUND_SECRET_KEY and PLAYGROUND_HOSTS")


DATABASES = {
    "default": dj_database_url.parse(
        os.environ.get("DATABASE_URL") or f"sqlite:///{DATA_DIR / 'playground.sqlite3'}",
        conn_max_age=60,
        conn_health_checks=True,
    )
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = _FIXED["SQLITE_OPTIONS"]
    # A file, not memory: servers and workers started by tests are threads and processes of their own.
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
PLAYGROUND_KEEP_AUDIT_DAYS = _whole("PLAYGROUND_KEEP_AUDIT_DAYS", 365)

# Whose X-Forwarded-For is believed (accounts/addresses.py).
_PROXIES = _names("PLAYGROUND_TRUSTED_PROXIES")
PLAYGROUND_TRUST_UNIX_SOCKET = "unix" in _PROXIES
PLAYGROUND_TRUSTED_PROXIES = [
    _network("PLAYGROUND_TRUSTED_PROXIES", name) for name in _PROXIES if name != "unix"
]

# Mail. Embedded mode has no accounts; what it would send is put into a folder.
PLAYGROUND_MAIL = not EMBEDDED and bool(os.environ.get("PLAYGROUND_MAIL_HOST"))
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if PLAYGROUND_MAIL else 'filebased'}.EmailBackend"
EMAIL_FILE_PATH = DATA_DIR / "mail"
EMAIL_HOST = os.environ.get("PLAYGROUND_MAIL_HOST", "")
EMAIL_PORT = _whole("PLAYGROUND_MAIL_PORT", 587)
EMAIL_HOST_USER = os.environ.get("PLAYGROUND_MAIL_USER", "")
EMAIL_HOST_PASSWORD = os.environ.get("PLAYGROUND_MAIL_PASSWORD", "")
_MAIL_SECURITY = _one_of("PLAYGROUND_MAIL_SECURITY", "starttls", "tls", "none")
EMAIL_USE_TLS = _MAIL_SECURITY == "starttls"
EMAIL_USE_SSL = _MAIL_SECURITY == "tls"
DEFAULT_FROM_EMAIL = os.environ.get("PLAYGROUND_MAIL_FROM") or f"playground@{ALLOWED_HOSTS[0]}"

STATICFILES_DIRS = [
    RESOURCES / "static",
    ("pictures", RESOURCES / "docs" / "pictures"),  # of the manual
    # What standalone files have inside; a page that opens a link reads it in the same way.
    ("standalone", BASE_DIR / "scheduler_core/scenario/standalone/page"),
]
WHITENOISE_AUTOREFRESH = DEBUG

# Manifests of one request. The request around them may be larger: a form's encoding inflates what it carries.
PLAYGROUND_MAX_UPLOAD_BYTES = _whole("PLAYGROUND_MAX_UPLOAD_MB", 16) * 2**20
PLAYGROUND_MAX_UNPACKED_BYTES = 8 * PLAYGROUND_MAX_UPLOAD_BYTES
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * PLAYGROUND_MAX_UPLOAD_BYTES
PLAYGROUND_MAX_SCENARIO_BYTES = _whole("PLAYGROUND_MAX_SCENARIO_MB", 8) * 2**20
PLAYGROUND_EMBED_IN = os.environ.get("PLAYGROUND_EMBED_IN", "*")
if not re.fullmatch(r"\*|none|https?://[\w.*:-]+( https?://[\w.*:-]+)*", PLAYGROUND_EMBED_IN):
    raise ImproperlyConfigured("PLAYGROUND_EMBED_IN is *, none, or origins such as https://wiki.example")
if PLAYGROUND_EMBED_IN == "none":
    PLAYGROUND_EMBED_IN = "'none'"
# A folder that `kube-scheduler-playground page` wrote, served at /page/.
PLAYGROUND_PAGE = Path(os.environ["PLAYGROUND_PAGE"]) if os.environ.get("PLAYGROUND_PAGE") else None
# Objects of one cluster, pods of controllers included, Events not.
PLAYGROUND_MAX_OBJECTS = _whole("PLAYGROUND_MAX_OBJECTS", 100_000)

# Quotas of one person, in team mode (clusters/log/quotas.py).
PLAYGROUND_MAX_CLUSTERS = _whole("PLAYGROUND_MAX_CLUSTERS", 100)
PLAYGROUND_MAX_SHARES = _whole("PLAYGROUND_MAX_SHARES", 500)
PLAYGROUND_MAX_STORED_BYTES = _whole("PLAYGROUND_MAX_STORED_MB", 2048) * 2**20

# Extenders are addresses people write and this server calls; engine/outbound.py says who may be called.
PLAYGROUND_EXTENDER_HOSTS = [host.lower() for host in _names("PLAYGROUND_EXTENDER_HOSTS")]
# None lets in the plugins of every installed package.
_PLUGINS = _names("PLAYGROUND_PLUGINS", "*" if EMBEDDED else "")
PLAYGROUND_PLUGINS = None if _PLUGINS == ["*"] else _PLUGINS
PLAYGROUND_PLUGIN_SECONDS = float(os.environ.get("PLAYGROUND_PLUGIN_SECONDS", "5"))
PLAYGROUND_OWN_URL = os.environ.get("PLAYGROUND_OWN_URL", "http://127.0.0.1:8000")
# The name the site answers to where that is not the one it is reached by.
PLAYGROUND_OWN_HOST = "" if EMBEDDED else ALLOWED_HOSTS[0]

if not EMBEDDED and _flag("PLAYGROUND_HTTPS", default=True):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_SSL_REDIRECT = True
    # A monitor asks the process directly, without the proxy that speaks HTTPS.
    SECURE_REDIRECT_EXEMPT = [r"^healthz/?$", r"^readyz/?$", r"^metrics/?$", r"^mock-extenders/"]
    # Whether the whole domain speaks HTTPS is for its owner to say, not for one site in it.
    SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

# Team mode: requests of one person, and how many may change something. Counted in the database (accounts/limits.py).
PLAYGROUND_REQUEST_RATE = _rate("PLAYGROUND_REQUEST_RATE", "1200/min")
PLAYGROUND_WRITE_RATE = _rate("PLAYGROUND_WRITE_RATE", "300/min")

CELERY_BROKER_URL = os.environ.get("CELERY_BROKER_URL") or broker.url_for(DATA_DIR / "messages")
CELERY_TASK_QUEUES = broker.queues(CELERY_BROKER_URL, lanes.LANES)
CELERY_TASK_DEFAULT_QUEUE = lanes.DECIDE
for _name, _value in broker.celery_settings(CELERY_BROKER_URL).items():
    globals()[f"CELERY_{_name.upper()}"] = _value

# What one turn of one question (ask), or of one share, comparison or search (make) may use.
_WORK_MEMORY_MB = _whole("PLAYGROUND_WORK_MEMORY_MB", 2048)
PLAYGROUND_LANE_LIMITS = {
    lane: lanes.limits_of(_whole(f"PLAYGROUND_{lane.upper()}_SECONDS", seconds), _WORK_MEMORY_MB)
    for lane, seconds in ((lanes.ASK, 120), (lanes.MAKE, 240))
}
# Traces are dropped after this long and decided again when asked for; of the log only superseded outcomes are.
PLAYGROUND_KEEP_TRACES_DAYS = float(os.environ.get("PLAYGROUND_KEEP_TRACES_DAYS", "14"))
PLAYGROUND_FOLLOW_DAYS = float(os.environ.get("PLAYGROUND_FOLLOW_DAYS", "7"))
PLAYGROUND_FOLLOW_MB = float(os.environ.get("PLAYGROUND_FOLLOW_MB", "500"))
PLAYGROUND_KEEP_LOG_DAYS = float(os.environ.get("PLAYGROUND_KEEP_LOG_DAYS", "0"))
