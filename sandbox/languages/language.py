"""A language of programs: its file, its commands, and a program that shows that they work here."""

from __future__ import annotations

from dataclasses import dataclass, field

from sandbox.limits import Limits

# A compiler's work is not the program's: a program that exceeds these does not compile. CPU time
# and memory end what computes; nothing that a program can name makes a compiler wait.
COMPILING = Limits(wall_s=120.0, cpu_s=10.0, memory_mb=1024, output_kb=256)


@dataclass(frozen=True)
class Language:
    """One language, in a file of this folder. Commands are searched in /usr/bin and Python's own
    folder, and run in the scratch folder.

    title: its name for people.
    fences: names of its Markdown blocks; the first is used in prompts.
    file: the name of the program's file.
    compile: the command that checks or compiles the file; it fails if the language does not
        accept the program.
    run: the command that runs the file, formatted with the limits. Empty: what `compile` wrote to
        the file `program` is run.
    example: a program that prints the number that it reads. A worker runs it once: where it fails,
        the machine lacks `needs`, and no program is judged.
    idle: a program that does nothing.
    needs: what has to be installed.
    shown: what programs may read besides the files that every program sees.
    out_of_memory: what the runtime writes to stderr where an allocation fails.
    least: the lowest limits with which an empty program runs.
    address_mb: address space that the runtime reserves and does not use.
    """

    name: str
    title: str
    fences: tuple[str, ...]
    file: str
    compile: tuple[str, ...]
    example: str
    idle: str
    needs: tuple[str, ...]
    run: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    out_of_memory: tuple[bytes, ...] = ()
    least: dict[str, int] = field(default_factory=dict)
    address_mb: int = 0
