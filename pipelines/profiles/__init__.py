"""Profiles: YAML files of what differs from the defaults in resources/config/profile.py."""
