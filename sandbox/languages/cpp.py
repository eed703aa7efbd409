"""C++ by g++: compiled once, then run for each test."""

from __future__ import annotations

from sandbox.languages.language import Language

LANGUAGE = Language(
    "cpp",
    "C++",
    ("cpp", "c++", "cxx", "cc"),
    "program.cpp",
    compile=("g++", "-std=gnu++20", "-O2", "-w", "-pipe", "-o", "program", "program.cpp"),
    example="#include <iostream>\nint main() { int n; std::cin >> n; std::cout << n << '\\n'; }",
    idle="int main() {}",
    needs=("g++",),
    shown=("/usr/include",),
    out_of_memory=(b"std::bad_alloc",),
)
