"""python -m bench.accuracy: measure everything and write docs/accuracy.md."""

from bench.accuracy.page import main

main()
