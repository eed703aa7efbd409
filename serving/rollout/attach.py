"""What a gateway needs for rollouts: a router, a controller in the background, the page.

In: the home and its ledger. Out: functions that `make_app` takes.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from resources.home import Home
from resources.registry.ledger import Ledger
from resources.registry.rollouts import Rollouts
from serving.gateway.observations import Observations
from serving.rollout.controller import Controller
from serving.rollout.router import RolloutRouter


def attached_router(home: Home, ledger: Ledger, champion: Callable[[], int]) -> RolloutRouter:
    """Return the router of this home's rollouts, and start its controller in a thread.

    champion: returns the version of the ledger's champion that answers. The thread ends with the
    process, at any point: all state is in the record.
    """
    rollouts = Rollouts(ledger.place)
    router = RolloutRouter(rollouts, ledger, champion)
    controller = Controller(rollouts, ledger, Observations(home.observations))
    Thread(target=controller.run, args=(Event(), router.refresh), daemon=True).start()
    return router
