"""The paper's experiments, each a table that stands beside the paper's own figures."""
