"""A list that is written row by row has the bytes of json.dumps."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from problems.dataset.rows_json import json_list

values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(st.lists(values, max_size=4))
def test_rows_have_the_text_of_json_dumps(rows: list[Any]) -> None:
    assert "".join(json_list(iter(rows))) == json.dumps(rows, indent=1)
    nested = f'{{\n "rows": {"".join(json_list(iter(rows), depth=2))}\n}}'
    assert nested == json.dumps({"rows": rows}, indent=1)
