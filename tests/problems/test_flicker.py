"""Problems whose verdict depends on draws, hashes, clocks, addresses or threads are named."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from problems.schema import Problem
from problems.verification.problem_check import FLICKERS
from problems.verification.repeats import DRAW_RUNS, SET_RUNS, runs_needed
from problems.verification.settings import Verification
from problems.verification.verification import verify
from sandbox.protocol import Limits
from sandbox.sandbox import Sandbox

RULES = Verification(mutants=0)
LIMITS = Limits(wall_s=20.0, cpu_s=2.0, memory_mb=256)
WORDS = ("red", "green", "blue", "white", "black")
TABLE = """
class Node:
    def __init__(self, name): self.name = name
def f(words):
    nodes = [Node(word) for word in words]
"""
RACE = """
import threading
def more(number): return number + 1
def f(words):
    total = [0]
    def add():
        for _ in range(200): total[0] = more(total[0])
    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return len(words) if total[0] == 800 else 0
"""
LOCKED = RACE.replace("): total", "):\n            with lock: total")
LOCKED = LOCKED.replace("total = [0]", "total, lock = [0], threading.Lock()")
# Each returns something else than the expected 5 in some runs.
FLAKY = {
    "random": "import random\ndef f(words): return 5 if random.random() < 0.8 else 0",
    "randint": "from random import randint\ndef f(words): return randint(4, 5)",
    "shuffle": "import random as r\n"
    "def f(words): return r.shuffle(words) or (5 if words[0] != 'red' else 1)",
    "choice": "from random import *\ndef f(words): return 5 if choice(words) != 'blue' else 2",
    "urandom": "import os\ndef f(words): return 5 if os.urandom(1)[0] < 128 else 0",
    "secrets": "import secrets\ndef f(words): return 5 if secrets.randbelow(2) else 0",
    "uuid": "import uuid\ndef f(words): return 5 if uuid.uuid4().int % 2 else 0",
    "hash": "def f(words): return 5 if hash(words[0]) % 3 else 0",
    "order of a set": "def f(words): return 5 if next(iter(set(words))) != 'red' else 1",
    "joined set": "def f(words): return 5 if ''.join({w for w in words}) > 'c' else 1",
    "addresses": TABLE + "    return 5 if min(nodes, key=id).name != 'white' else 1",
    "set of objects": TABLE + "    return 5 if next(iter(set(nodes))).name < 'green' else 1",
    "second": "import time\ndef f(words): return 4 + int(time.time()) % 2",
    "microsecond": "from datetime import datetime\n"
    "def f(words): return 5 if datetime.now().microsecond % 4 else 0",
    "weekday": "from datetime import date\n"
    "def f(words): return 5 if date.today().weekday() < 5 else 0",
    "year": "import datetime as d\n"
    "def f(words): return 5 if d.datetime.utcnow().year < 2028 else 6",
    "time zone": "import time\ndef f(words): return 5 if time.localtime(0).tm_hour < 12 else 0",
    "process": "import os\ndef f(words): return 4 + os.getpid() % 2",
    "threads": RACE,
    "numpy": "import numpy as np\ndef f(words): return 5 if np.random.rand() < 0.8 else 0",
}
# Each uses the same things, and always returns 5.
SOUND = {
    "random pivot": """
import random
def sort(part):
    pivot = random.choice(part) if part else ''
    less, more = [x for x in part if x < pivot], [x for x in part if x > pivot]
    return [*sort(less), pivot, *sort(more)] if part else []
def f(words): return len(sort(words))
""",
    "seeded": "import random\ndef f(words): return 5 + (random.Random(1).random() > 0.5)",
    "sorted set": "def f(words): return len(sorted(set(words)))",
    "equal hashes": "def f(words): return 5 if hash('a' + 'b') == hash('ab') else 0",
    "identity": "def f(words): return 5 if id(words) == id(words) else 0",
    "elapsed": "import time\ndef f(words): return 5 if time.time() <= time.time() else 0",
    "dates": "from datetime import *\n"
    "def f(words): return (date(2024, 3, 5) - date(2024, 2, 29)).days",
    "now": "from datetime import datetime as d, timedelta\n"
    "def f(words): return 5 if abs(d.now() - d.today()) < timedelta(seconds=60) else 0",
    "type": "import datetime as d\n"
    "def f(words): return 5 if type(d.datetime.now()) is d.datetime else 0",
    "utc": "import time\ndef f(words): return 5 if time.gmtime(0).tm_hour == 0 else 0",
    "locked threads": RACE.replace(
        "    def add", "    lock = threading.Lock()\n    def add"
    ).replace("range(200): total", "range(200):\n            with lock: total"),
    "uuid": "import uuid\ndef f(words): return len(str(uuid.uuid4()).split('-'))",
    "order of a dict": "def f(words): return 5 if [*dict.fromkeys(words)] == words else 0",
}


def problem(name: str, solution: str, **changes: Any) -> Problem:
    tests = ({"args": [list(WORDS)], "expected": 5},)
    toy = Problem(f"toy/{name}", "toy", "Count.", "call", tests, "f", limits=LIMITS)
    return dataclasses.replace(toy, solutions=(solution,), **changes)


@pytest.mark.slow
def test_every_planted_flicker_is_named_and_no_other(sandbox: Sandbox, tmp_path: Path) -> None:
    planted = [problem(f"flaky/{name}", source) for name, source in FLAKY.items()]
    sound = [problem(f"sound/{name}", source) for name, source in SOUND.items()]
    verified = verify([*planted, *sound], sandbox, tmp_path / "journal", RULES)
    assert {row.problem_id: row.reason for row in verified.removed} == {
        one.problem_id: FLICKERS for one in planted
    }
    assert verified.problems == sound


@pytest.mark.slow
def test_a_flickering_test_is_named(sandbox: Sandbox, tmp_path: Path) -> None:
    drawn = "import random\ndef check(candidate):\n    assert candidate(random.randint(0, 9)) < 18"
    flaky = problem("test", "def f(x): return 2 * x", style="assert", tests=({"source": drawn},))
    verified = verify([flaky], sandbox, tmp_path / "journal", RULES)
    assert [row.reason for row in verified.removed] == [FLICKERS]


def test_only_programs_that_may_vary_run_often() -> None:
    assert runs_needed(problem("x", "import math\ndef f(x): return math.pi"), "") == 1
    assert runs_needed(problem("x", ""), "def f(x): return {1, 2}") == SET_RUNS
    assert runs_needed(problem("x", ""), "def f(x): return {1: 2}") == 1
    assert runs_needed(problem("x", ""), "from time import *\ndef f(x): return x") == DRAW_RUNS
    unused = problem("x", "", starter_code="import random, datetime")
    assert runs_needed(unused, "def f(x): return x") == 1
    assert runs_needed(unused, "def f(x): return random.random()") == DRAW_RUNS
