"""What runs and when: definitions, jobs, schedules, sensors, profiles, the command line."""
