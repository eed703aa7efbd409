"""Profiles: YAML files with the differences from the defaults in resources/config/profile.py."""
