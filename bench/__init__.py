"""Benchmarks: speed as a ratio beside peers in one run. `python -m bench` lists them."""
