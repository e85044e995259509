"""BEAM=n: benchmarks recipes in a separate process, and stores the winner."""
