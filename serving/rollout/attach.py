"""What a gateway needs for rollouts: a router, a controller in the background, the page.

In: the home, its ledger, the gateway's versions. Out: functions that `make_app` takes.
"""

from __future__ import annotations

from threading import Event, Thread

from resources.home import Home
from resources.registry.ledger import Ledger
from resources.registry.rollouts import Rollouts
from serving.gateway.catalog import Catalog
from serving.gateway.observations import Observations
from serving.rollout.controller import Controller
from serving.rollout.router import RolloutRouter


def attached_router(home: Home, ledger: Ledger, catalog: Catalog) -> RolloutRouter:
    """Return the router of this home's rollouts, and start its controller in a thread.

    The thread ends with the process, at any point: all state is in the record.
    """
    rollouts = Rollouts(ledger.place)
    router = RolloutRouter(rollouts, ledger, catalog.champion, lambda: catalog.loaded)
    controller = Controller(
        rollouts, ledger, Observations(home.observations), faults=catalog.faults
    )
    Thread(target=controller.run, args=(Event(), router.refresh), daemon=True).start()
    return router
