"""Small Harbor tasks without a fault, for measurements/audit_folders.py."""

from __future__ import annotations

from pathlib import Path

TOML = """\
schema_version = "1.4"

[metadata]

[verifier]
timeout_sec = 60.0

[agent]
timeout_sec = 60.0
"""
DOCKERFILE = """\
FROM python:3.12-slim
RUN pip install --no-cache-dir pytest==8.4.1
WORKDIR /app
COPY data/ /app/data/
"""
TEST = """\
#!/bin/bash
mkdir -p /logs/verifier
cd /tests
if pytest --noconftest -q /tests/test_outputs.py; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
"""
SALES = "day,amount\n" + "".join(f"{day},{day * 7 % 23 + 1}\n" for day in range(1, 30))
WORDS = "amber\nbirch\ncedar\namber\ndelta\ncedar\namber\nember\nbirch\nfjord\n"
# name -> instruction, solution, tests, name of the output
BASES: dict[str, tuple[str, str, str, str]] = {
    "total": (
        "Add up the column amount of /app/data/input.csv and write the sum to /app/total.txt.",
        """\
import csv
with open('/app/data/input.csv') as file:
    amounts = [int(row['amount']) for row in csv.DictReader(file)]
with open('/app/total.txt', 'w') as file:
    file.write(f'{sum(amounts)}\\n')
""",
        """\
import csv


def test_total():
    with open('/app/data/input.csv') as file:
        rows = list(csv.DictReader(file))
    with open('/app/total.txt') as file:
        assert int(file.read()) == sum(int(row['amount']) for row in rows)
""",
        "total.txt",
    ),
    "large": (
        "Write the rows of /app/data/input.csv with an amount over 10 to /app/large.csv, "
        "with the header.",
        """\
with open('/app/data/input.csv') as file:
    header, *lines = file.read().splitlines()
large = [line for line in lines if int(line.split(',')[1]) > 10]
with open('/app/large.csv', 'w') as file:
    file.write('\\n'.join([header, *large]) + '\\n')
""",
        """\
import csv


def rows(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def test_rows():
    wanted = [row for row in rows('/app/data/input.csv') if int(row['amount']) > 10]
    assert rows('/app/large.csv') == wanted
""",
        "large.csv",
    ),
    "summary": (
        "Write /app/summary.json with the keys count, largest and smallest of the amounts "
        "in /app/data/input.csv.",
        """\
import json
with open('/app/data/input.csv') as file:
    amounts = [int(line.split(',')[1]) for line in file.read().splitlines()[1:]]
summary = {'count': len(amounts), 'largest': max(amounts), 'smallest': min(amounts)}
with open('/app/summary.json', 'w') as file:
    json.dump(summary, file, indent=2)
""",
        """\
import json


def test_summary():
    with open('/app/data/input.csv') as file:
        amounts = [int(line.split(',')[1]) for line in file.read().splitlines()[1:]]
    with open('/app/summary.json') as file:
        got = json.load(file)
    assert got == {'count': len(amounts), 'largest': max(amounts), 'smallest': min(amounts)}
""",
        "summary.json",
    ),
    "module": (
        "Write /app/spans.py with a function merged(spans) that joins the overlapping "
        "pairs of a list of pairs.",
        """\
text = '''def merged(spans):
    joined = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([start, end])
    return [tuple(span) for span in joined]
'''
with open('/app/spans.py', 'w') as file:
    file.write(text)
""",
        """\
import sys

sys.path.insert(0, '/app')


def test_spans():
    from spans import merged

    assert merged([(5, 9), (1, 3), (2, 4)]) == [(1, 4), (5, 9)]
    assert merged([]) == []
    assert merged([(1, 2), (2, 3), (9, 9)]) == [(1, 3), (9, 9)]
""",
        "spans.py",
    ),
    "counts": (
        "Count the words of /app/data/words.txt and write /app/counts.txt: one word and "
        "its count a line, by word.",
        """\
from collections import Counter
with open('/app/data/words.txt') as file:
    counts = Counter(file.read().split())
with open('/app/counts.txt', 'w') as file:
    for word in sorted(counts):
        file.write(f'{word} {counts[word]}\\n')
""",
        """\
from collections import Counter


def test_counts():
    with open('/app/data/words.txt') as file:
        counts = Counter(file.read().split())
    with open('/app/counts.txt') as file:
        lines = [line.split() for line in file.read().splitlines()]
    assert lines == [[word, str(counts[word])] for word in sorted(counts)]
""",
        "counts.txt",
    ),
}


def write_base(folder: Path, name: str) -> None:
    instruction, solution, tests, _ = BASES[name]
    files = {
        "task.toml": TOML, "instruction.md": f"{instruction}\n",
        "environment/Dockerfile": DOCKERFILE,
        "environment/data/input.csv": SALES, "environment/data/words.txt": WORDS,
        "solution/solve.sh": f"#!/bin/bash\nset -euo pipefail\npython3 - <<'PY'\n{solution}PY\n",
        "tests/test.sh": TEST, "tests/test_outputs.py": tests,
    }  # fmt: skip
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
