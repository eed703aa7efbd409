"""Receivers of messages: the section `notify` of the settings."""

from __future__ import annotations

import re
from typing import Literal, get_args

from pydantic import field_validator

from artifacts.section import Section

Event = Literal[
    "failed_run",
    "failing_sensor",
    "skipped_night",
    "missing_night",
    "silent_daemon",
    "missing_backup",
    "hung_training",
    "disk",
    "champion",
    "promotion",
    "refusal",
    "rollback",
    "retraining",
    "budget",
]
EVENTS: tuple[Event, ...] = get_args(Event)


class Receiver(Section):
    """A place that messages are sent to, and the events that it gets."""

    url: str
    """Environment variable with an apprise URL, such as `mailto://…`, `slack://…`, `ntfy://…` or
    `json://host/path`. The URL holds secrets, so the profile only names the variable.
    """
    events: tuple[Event, ...] = EVENTS
    """Events by name; default: all."""

    @field_validator("url")
    @classmethod
    def a_variable(cls, url: str) -> str:
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", url):
            raise ValueError(
                "name an environment variable that holds the URL, such as RATCHET_NOTIFY, not the "
                "URL, which is secret"
            )
        return url


class Notify(Section):
    """Messages to people. They are sent by the daemon, and by `ratchet watch` outside of it, each
    once.
    """

    receivers: tuple[Receiver, ...] = ()
    """Receivers with their events. Empty: no message is sent."""

    @field_validator("receivers")
    @classmethod
    def named_once(cls, receivers: tuple[Receiver, ...]) -> tuple[Receiver, ...]:
        names = [receiver.url for receiver in receivers]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{twice[0]} is named twice: give it all its events in one entry")
        return receivers
