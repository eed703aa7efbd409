"""The exploit battery: a reward is tested on known completions and searched for exploits.

In: a reward and a sandbox. Out: a row for each property, with the exploit where one was found
(`battery`). The other files hold the known completions and make the variants of the search.
"""
