"""Write the reference pages, and the manifests of a cluster."""

from cli.reference.pages import pages

for path, text in pages().items():
    path.write_text(text, encoding="utf-8")
