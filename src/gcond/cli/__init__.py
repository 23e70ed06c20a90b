"""The command line, one command per file.

Modules here import nothing heavy when they are imported: ``gcond --help`` must answer at once, so torch,
NumPy and pydantic come in inside the commands.
"""
