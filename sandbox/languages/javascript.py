"""JavaScript by node: a script (CommonJS, so with `require`) that reads standard input."""

from __future__ import annotations

from sandbox.languages.language import Language

# Its default may be a file that programs cannot read, which ends node.
NODE = ("node", "--openssl-config=/dev/null")
# node writes to a pipe without waiting: what is left when the program calls `process.exit` is lost.
BLOCKING = (
    "data:text/javascript,for(const s of[process.stdout,process.stderr])"
    "if(s._handle)s._handle.setBlocking(true)"
)
LANGUAGE = Language(
    "javascript",
    "JavaScript",
    ("javascript", "js", "node", "nodejs"),
    "program.js",
    compile=(*NODE, "--check", "program.js"),
    # The heap ends where the memory limit is, so that garbage is collected before it.
    run=(*NODE, "--import", BLOCKING, "--max-old-space-size={memory_mb}", "program.js"),
    example="console.log(Number(require('fs').readFileSync(0, 'utf8')))",
    idle=";",
    needs=("node",),
    out_of_memory=(b"JavaScript heap out of memory", b"Array buffer allocation failed"),
    least={"processes": 16, "memory_mb": 64},  # node has 7 to 11 threads
    address_mb=2048,
)
