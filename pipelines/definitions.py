"""All Dagster definitions of Ratchet, for `dagster dev` and `dagster job execute`.

In: services that replace the default ones, for a code location of your own. Out: `Definitions`.
"""

from __future__ import annotations

import warnings
from typing import Any

import dagster as dg

from assets.augmented_problems import augmented_tests_are_strong
from assets.benchmark_scores import benchmark_scores
from assets.checkpoint import healthy_training, no_growing_gap, whole_checkpoint
from assets.clean_problems import no_gated_problem, no_heldout_function, no_secret
from assets.contestant_scores import scores_are_sane
from assets.deployment import deployment
from assets.difficulty_rankings import reward_battery
from assets.promotion import champion_is_whole
from assets.raw_problems import problem_sources, schema_holds
from assets.synthetic_problems import synthetic_tests_are_strong
from assets.verified_problems import verified_tests_are_strong
from pipelines.asset_selection import read_newer_tables
from pipelines.freshness import with_freshness
from pipelines.jobs import JOBS, PIPELINE_ASSETS
from pipelines.schedules import SCHEDULES
from pipelines.sensors import sensors
from pipelines.settings import SETTINGS
from resources.run_context import RunContext

CHECKS = [
    schema_holds,
    verified_tests_are_strong,
    augmented_tests_are_strong,
    synthetic_tests_are_strong,
    no_gated_problem,
    no_heldout_function,
    no_secret,
    reward_battery,
    whole_checkpoint,
    no_growing_gap,
    healthy_training,
    scores_are_sane,
    champion_is_whole,
]


def definitions(**replaced: dg.ConfigurableResource[Any]) -> dg.Definitions:
    """Return all definitions. Raises TypeError for an unknown key.

    replaced: services in place of the default ones, by their keys.
    """
    read_newer_tables()
    assets = with_freshness([*PIPELINE_ASSETS, benchmark_scores, deployment])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        linked = dg.with_source_code_references(assets)  # the UI links to the file of each asset
    return dg.Definitions(
        assets=[problem_sources, *linked],
        asset_checks=CHECKS,
        jobs=JOBS,
        schedules=SCHEDULES,
        sensors=sensors(),
        resources=RunContext.of(SETTINGS, **replaced).resources,
    )


defs = definitions()
