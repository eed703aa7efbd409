"""Messages to people, through apprise, each once to each receiver.

In: notices, and the receivers of the profile. Out: messages. What could not be sent is sent by the
next call. On a full disk, where no message can be recorded, each process sends the one about the
disk once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from resources.config.notify import Event, Receiver
from resources.outbox import Notice, Outbox
from resources.registry.ledger_database import LedgerUnreachable
from resources.settings import Settings

SPARE = "notices.db"  # file of the home, for the record while its database cannot be used
_UNRECORDED: dict[str, set[str]] = {}  # receiver -> keys that this process sent meanwhile
KINDS: dict[Event, str] = {"promotion": "success", "refusal": "info", "retraining": "info"}


def deliver(settings: Settings, notices: Sequence[Notice], now: float) -> tuple[int, list[str]]:
    """Send each receiver what it was not sent yet. Return how many messages were sent, and a
    sentence for each receiver that could not be reached, or whose variable is not set.

    notices: all that hold at `now`, in seconds since 1970.
    """
    count, problems, home = 0, list[str](), f"{settings.home.id} "
    notices = [
        replace(notice, key=f"{home}{notice.key}") if notice.at is None else notice
        for notice in notices
    ]
    for receiver in settings.profile.notify.receivers:
        ours = [notice for notice in notices if notice.event in receiver.events]
        sent = _UNRECORDED.setdefault(receiver.url, set())
        problem, outbox = _unset(receiver), None
        try:
            outbox, due = _claimed(settings, receiver, ours, now, home)
        except LedgerUnreachable as error:
            problems.append(str(error))
            due = [each for each in ours if each.event == "disk" and each.key not in sent]
        for notice in due:
            if notice.key not in sent:
                problem = problem or send(receiver, notice)
                count += not problem
            if outbox:
                outbox.settle(receiver.url, notice, now, sent=not problem)
            elif not problem:
                sent.add(notice.key)
        if outbox:
            sent.clear()
        problems += [problem] if problem else []
    return count, problems


def send(receiver: Receiver, notice: Notice) -> str:
    """Send one message. Return why it could not be sent, without the URL, which is secret."""
    import apprise

    name = receiver.url
    if problem := _unset(receiver):
        return problem
    sender = apprise.Apprise()
    if not sender.add(os.environ[name]):
        return f"{name} (notify.receivers) is no URL that apprise knows"
    kind = KINDS.get(notice.event, "warning")
    title = f"ratchet: {notice.title}"
    if not sender.notify(title=title, body=notice.text or notice.title, notify_type=kind):
        return f"the service of {name} (notify.receivers) did not take the message"
    return ""


def _unset(receiver: Receiver) -> str:
    if os.environ.get(receiver.url):
        return ""
    return f"the environment variable {receiver.url} (notify.receivers) is not set"


def _claimed(
    settings: Settings, receiver: Receiver, notices: Sequence[Notice], now: float, home: str
) -> tuple[Outbox, list[Notice]]:
    """Return the claimed notices with the record that has the claim. Raises LedgerUnreachable where
    neither record can be written.
    """
    outbox = Outbox(settings.home.records)
    try:
        return outbox, outbox.claim(receiver.url, notices, now, home)
    except LedgerUnreachable:  # which people have to hear of
        spare = Outbox(settings.home.path / SPARE)
        return spare, spare.claim(receiver.url, notices, now, home)
