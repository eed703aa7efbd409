"""The settings of this code location, read once when Dagster loads it."""

from resources.settings import Settings

SETTINGS = Settings.read()
