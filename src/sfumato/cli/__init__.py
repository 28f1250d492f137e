"""The commands: thin over the library, one exit code per kind of ending, nothing but JSON on standard output
with --json.
"""
