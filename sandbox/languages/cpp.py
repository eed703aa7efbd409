"""C++ by g++: compiled once, then run for each test."""

from __future__ import annotations

from sandbox.languages.language import Language

# Without `-pipe`: the compiler would wait for ever for a program that includes its own pipe.
LANGUAGE = Language(
    "cpp",
    "C++",
    ("cpp", "c++", "cxx", "cc"),
    "program.cpp",
    compile=("g++", "-std=gnu++20", "-O2", "-w", "-o", "program", "program.cpp"),
    example="#include <iostream>\nint main() { int n; std::cin >> n; std::cout << n << '\\n'; }",
    idle="int main() {}",
    needs=("g++",),
    shown=("/usr/include",),
    out_of_memory=(b"std::bad_alloc",),
)
