# Prints in one line what to do on a machine that cannot run Ratchet: it needs Linux x86-64 and Python 3.11 or 3.12 with venv.
elsewhere='run it in a Linux container: docker run --platform linux/amd64 -it -v "$PWD":/ratchet -w /ratchet python:3.11 make demo (on Windows, WSL does as well)'
if [ "$(uname -s) $(uname -m)" != "Linux x86_64" ]; then
    echo "Ratchet needs Linux x86-64, this is $(uname -s) $(uname -m): $elsewhere" >&2
    exit 1
fi
if ! "$PYTHON" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null; then
    echo "Ratchet needs Python 3.11 or 3.12 with venv, and $PYTHON is not one: install it, name it (make demo PYTHON=/path/to/python3.11), or $elsewhere" >&2
    exit 1
fi
