"""Dagster definitions: jobs, schedules and sensors; starting, watching and ending their runs.

In: a command, a tick of a schedule or sensor. Out: a run of a job, and its exit code.
"""
