"""Tells somebody of an incident: one POST of its sentence, as ntfy takes it (https://docs.ntfy.sh/publish/).

Owns what ntfy calls title, priority and tags. Never raises and never waits long. An ntfy topic is as good as a
password, so nothing of the URL but its host is ever logged. Knows nothing of when an incident is worth telling.
"""

from __future__ import annotations

import asyncio
import base64
import logging

import httpx

from .incidents import Incident

log = logging.getLogger(__name__)
logging.getLogger("httpx").setLevel(logging.WARNING)  # below that, it logs the whole URL of every request

TIMEOUT_S = 5.0
LAST_PORT = 65535

_told: set[str] = set()  # the failures that were logged since the last success


async def notify(url: str, incident: Incident) -> None:
    """Post the sentence. A failure is logged, once per kind."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            failure = await _post(url, incident)
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError) as error:
        failure = _reason(error)
    if failure is None:
        _told.clear()
    elif failure not in _told:
        _told.add(failure)
        log.warning("an incident could not be told to %s: %s. Check notify_url.", _host(url), failure)


async def _post(url: str, incident: Incident) -> str | None:
    """Why it was not taken. A redirect is not followed: it would send the credentials of the URL on to a stranger."""
    if (httpx.URL(url).port or 0) > LAST_PORT:  # an OverflowError far below, otherwise
        raise httpx.InvalidURL("port")
    async with (
        httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False) as client,
        client.stream("POST", url, content=incident.sentence().encode(), headers=headers(incident)) as answer,
    ):
        if answer.is_success:
            return None
        if answer.has_redirect_location:
            return f"it redirects ({answer.status_code}), and redirects are not followed; give the address it leads to"
        return f"it answers {answer.status_code} {answer.reason_phrase}".rstrip()


def headers(incident: Incident) -> dict[str, str]:
    return {
        "Content-Type": "text/plain; charset=utf-8",
        "Title": _ascii(f"Stentor: {incident.model} {incident.kind.replace('_', ' ')}"),
        "Priority": _priority(incident),
        "Tags": f"{_sign(incident)},stentor,{incident.kind}",
    }


def _priority(incident: Incident) -> str:
    if incident.kind == "recycled":
        return "low"
    if incident.speaks_now is None:
        return "max"
    return "default" if incident.recovered else "high"


def _sign(incident: Incident) -> str:
    """One of ntfy's names of emojis."""
    if incident.speaks_now is None:
        return "rotating_light"
    return "white_check_mark" if incident.recovered else "warning"


def _ascii(title: str) -> str:
    """In one line; where ASCII has no letters for it, as RFC 2047 encodes it, which ntfy documents that it reads."""
    line = " ".join("".join(one if one.isprintable() else " " for one in title).split())
    return line if line.isascii() else f"=?UTF-8?B?{base64.b64encode(line.encode()).decode()}?="


def _host(url: str) -> str:
    try:
        return httpx.URL(url).host or "notify_url"
    except httpx.InvalidURL:
        return "notify_url"


def _reason(error: Exception) -> str:
    """Without what httpx says of an invalid URL: it may quote the password out of it."""
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return f"no answer within {TIMEOUT_S:g} s"
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return "it is no http or https URL"
    return str(error) if isinstance(error, httpx.ConnectError | OSError) and str(error) else type(error).__name__
