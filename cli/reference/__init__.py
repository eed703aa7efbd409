"""The reference pages, generated from the code: `python -m cli.reference` writes them."""
