"""How a process is confined: namespaces, mounts, cgroups, Landlock, seccomp."""
