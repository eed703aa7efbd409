"""What a gateway needs for releases: a router, a controller in the background, the page.

In: the home, its ledger, the gateway's versions. Out: functions that `make_app` takes.
"""

from __future__ import annotations

import logging
from threading import Event, Thread

from resources.home import Home
from resources.registry.ledger import Ledger
from resources.registry.releases import Releases
from serving.gateway.catalog import Catalog
from serving.gateway.observations import Observations
from serving.gateway.replicas import GatewayReplicas
from serving.release.controller import Controller
from serving.release.router import ReleaseRouter

logger = logging.getLogger(__name__)


def attached_router(home: Home, ledger: Ledger, catalog: Catalog) -> ReleaseRouter:
    """Return the router of this home's releases, and start its controller in a thread.

    The thread ends with the process, at any point: all state is in the record.
    """
    releases, replicas = Releases(ledger.place), GatewayReplicas(home.gateways)
    router = ReleaseRouter(releases, ledger, catalog.champion, lambda: catalog.loaded)
    controller = Controller(
        releases, ledger, Observations(home.observations, home.database), replicas=replicas
    )

    def then() -> None:
        router.refresh()
        try:
            replicas.report(catalog.loaded, catalog.faults)
            versions = router.versions()
            catalog.out_of_service = replicas.out_of_service(versions, dict(catalog.faults))
        except (OSError, LookupError) as error:  # a full disk; no champion yet
            logger.debug("the other gateways do not know this one: %s", error)
            catalog.out_of_service = ""

    Thread(target=controller.run, args=(Event(), then), daemon=True).start()
    return router
