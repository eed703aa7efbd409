"""The child processes: the zygote, the program, and the judge of a program's tests."""
