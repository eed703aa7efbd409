"""The endpoints /releases and /experiments: every release as JSON, and a page for people.

In: the record and the observations. Out: routes for `make_app`. The page loads nothing from
elsewhere and runs nothing inline (Content-Security-Policy).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter, HTTPException
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import Field

from resources.home import Home
from resources.registry.ledger import Ledger, LedgerChanged
from resources.registry.ledger_database import LedgerUnreachable
from resources.registry.releases import Kind, Release, ReleaseMoved, Releases
from serving.gateway.observations import Observations
from serving.gateway.refusals import Refused
from serving.openai import Strict
from serving.page_headers import HEADERS
from serving.release.view import Views, overview

MOVES: dict[str, Kind] = {"pause": "paused", "resume": "resumed", "abort": "aborted"}
FOLDER = Path(__file__).parent


class Reason(Strict):
    """Why a person moves a release; recorded with the event."""

    reason: str = Field("", max_length=500)


def release_routes(home: Home, ledger: Ledger) -> APIRouter:
    """Return the routes. They read the databases in a thread, so that answers do not wait."""
    routes = APIRouter(tags=["Releases"])
    releases, views = Releases(ledger.place), Views(Observations(home.observations, home.database))

    @routes.get("/releases")
    def every_release() -> list[dict[str, Any]]:
        """Every release in short, newest first."""
        with readable():
            return overview(releases)

    @routes.get("/experiments")
    def every_experiment() -> list[dict[str, Any]]:
        """Every experiment in short, newest first. `/releases/{id}` has all of one."""
        with readable():
            return [row for row in overview(releases) if row["strategy"] == "experiment"]

    @routes.get("/releases/page", response_class=HTMLResponse)
    def page() -> Response:
        """The page for people."""
        return _file("page.html.jinja", "text/html")

    @routes.get("/releases/page.css", include_in_schema=False)
    def style() -> Response:
        """The page's style."""
        return _file("page.css", "text/css")

    @routes.get("/releases/page.js", include_in_schema=False)
    def script() -> Response:
        """The page's script."""
        return _file("page.js", "text/javascript")

    @routes.get("/", include_in_schema=False)
    def root() -> Response:
        """Lead a person to the page."""
        return RedirectResponse("/releases/page", 303)

    @routes.post("/releases/{name}/{move}")
    def moved(name: str, move: Literal["pause", "resume", "abort"], body: Reason) -> dict[str, str]:
        """Pause, resume or abort a release, as an operator."""
        release = found(releases, name)
        with readable():
            try:
                releases.append(
                    release.last, MOVES[move], {"reasons": [body.reason or f"{move} by hand"]}
                )
            except ReleaseMoved as error:
                raise Refused(409, "release_moved", str(error)) from error
            return {"id": release.id, "state": found(releases, release.id).state}

    @routes.get("/releases/{name}")
    def one_release(name: str) -> dict[str, Any]:
        """One release: its steps, both versions with intervals, the decision and every event.

        `latest` is the newest one.
        """
        return views.of(found(releases, name))

    return routes


def found(releases: Releases, name: str) -> Release:
    """Return a release by its id, or the `latest`; answer 404 without one."""
    with readable():
        known = releases.all()
    release = next((each for each in known[::-1] if name in (each.id, "latest")), None)
    if release is None:
        raise HTTPException(404, f"no release {name[:80]!r}")
    return release


@contextmanager
def readable() -> Iterator[None]:
    """Answer 503 where the record cannot be read."""
    try:
        yield
    except (LedgerChanged, LedgerUnreachable) as error:
        raise Refused(503, "no_record", str(error), 5) from error


def _file(name: str, kind: str) -> Response:
    return Response((FOLDER / name).read_text(encoding="utf-8"), 200, HEADERS, kind)
