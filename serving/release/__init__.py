"""Release of a new version: steps with more and more traffic, and automatic rollback.

In: the record of releases, the observations of answered requests. Out: the version for each request
(router.py), and the events that move a release (controller.py). All state is in the record, so any
process can be killed at any time.
"""
