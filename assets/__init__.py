"""The graph: one thin file a stage; it reads, calls the domain code, writes, and attaches what a person wants to look at."""
