"""Check that problems are solvable and that their tests are strong enough."""
