"""Runs untrusted programs against tests and reports the results.

Input: a `Job` (a program, its tests, its limits). Output: a `Report` (a verdict, a result for each
test, time, memory, and the isolation in force).
The package imports nothing else of Ratchet and can be used as a library of its own.

The way of one job, backend `local`; a line of dashes is another process:

1. protocol.py: `Job.read` checks a record by the file of its style (styles/) and by limits.py
2. sandbox.py: `Sandbox.run` hands `Job.payload()` to a backend (backends/local.py)
   --- worker_process.py, one for each worker, over frames of wire.py
3. worker_process.py: `Worker.judge` gives the job to a free slot (worker/slot.py)
   --- child/zygote.py, one for each slot: confined once, it forks a process for each program
4. the attempt of the job's style (`run`, in styles/) sends the program, then each test, through
   worker/attempt_processes.py
   --- child/program.py, the program's own process, which is not trusted
5. the attempt decides each test: it reads answers by worker/messages.py and compares values by
   worker/compare.py; the answer returns through 3 and 2 as a `Report` (`Report.of_answer`)
"""
