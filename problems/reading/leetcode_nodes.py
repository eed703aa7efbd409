"""Linked lists and binary trees of LeetCode's problems, as its tests write them.

A test builds them from the site's lists, `list_node([1, 2])` and `tree_node([1, None, 2])`, and
compares them with `is_same_list` and `is_same_tree`.
"""

from __future__ import annotations

import re

_USED = re.compile(r"\b(list_node|tree_node|is_same_list|is_same_tree|ListNode|TreeNode)\b")
NODES = """
class ListNode:
    def __init__(self, val=0, next=None):
        self.val = val
        self.next = next

class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val = val
        self.left = left
        self.right = right

def list_node(values):
    head = None
    for value in reversed(values):
        head = ListNode(value, head)
    return head

def tree_node(values):
    nodes = [None if value is None else TreeNode(value) for value in values]
    children = iter(nodes[1:])
    for node in nodes:
        if node is not None:
            node.left, node.right = next(children, None), next(children, None)
    return nodes[0] if nodes else None

def is_same_list(one, other):
    while one and other and one.val == other.val:
        one, other = one.next, other.next
    return one is None and other is None

def is_same_tree(one, other):
    if one is None or other is None:
        return one is other
    return (
        one.val == other.val
        and is_same_tree(one.left, other.left)
        and is_same_tree(one.right, other.right)
    )
"""


def nodes_for(source: str) -> str:
    """Return the definitions if a test's source uses any of them, else an empty text."""
    return NODES if _USED.search(source) else ""
