"""Gradient matching: the parts that the methods which learn share, one idea per file."""
