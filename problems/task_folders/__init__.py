"""Folders of tasks, such as Harbor's: what is in them, and what their image would hold.

A folder is not trusted: its files are read without following links, and nothing of it runs here.
"""
