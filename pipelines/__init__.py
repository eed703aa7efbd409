"""What runs and when: definitions, jobs, schedules, sensors, profiles, the command line.

In: a command, a tick of the clock, a changed file. Out: a run of a job, and its exit code.
"""
