"""Take the import of a solution out of a test module.

The judge takes the names that the module lacks from the program.
"""

from __future__ import annotations

import ast


def take_imports(tree: ast.Module, module: str) -> list[str]:
    """Remove the top-level imports of `module` from the tree, and return the names that it used.

    `from module import a as b` becomes `b = a`, and `module.a` becomes `a`.
    """
    names, body, aliases = list[str](), list[ast.stmt](), set[str]()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == module:
            names += [alias.name for alias in node.names if alias.name != "*"]
            body += [
                ast.Assign([ast.Name(alias.asname, ast.Store())], ast.Name(alias.name, ast.Load()))
                for alias in node.names
                if alias.asname and alias.asname != alias.name
            ]
        elif isinstance(node, ast.Import) and module in [alias.name for alias in node.names]:
            aliases |= {each.asname or each.name for each in node.names if each.name == module}
            others = [alias for alias in node.names if alias.name != module]
            body += [ast.Import(others)] if others else []
        else:
            body.append(node)
    tree.body = body
    members = _Members(aliases)
    members.visit(tree)
    ast.fix_missing_locations(tree)
    return list(dict.fromkeys([*names, *members.names]))


class _Members(ast.NodeTransformer):
    """Replace `module.a` by `a`."""

    def __init__(self, modules: set[str]) -> None:
        self.modules, self.names = modules, list[str]()

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in self.modules:
            self.names.append(node.attr)
            return ast.Name(node.attr, node.ctx)
        return node
