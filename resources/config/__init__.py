"""The typed settings: profiles, their sections and the search space."""
