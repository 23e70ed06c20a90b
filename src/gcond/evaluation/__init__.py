"""Score graphs by training models on them and testing these on the source graph; compare, search, advise."""
