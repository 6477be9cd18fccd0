"""The fuzzer is run by hand, with atheris (the extra `fuzz`); what it found stands among the tests of graph files."""

collect_ignore = ["fuzz_graph_files.py"]
