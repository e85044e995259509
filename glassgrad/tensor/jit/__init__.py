"""Function -> TinyJit: captured at its second call, replayed as one native call from then on.

`function` decides between replay and capture. `guards` compare the Python values that the function
can reach, `trace` compares what two calls computed, `checks` refuses effects that a replay could
not repeat. `capture` classifies memory and is what is replayed; `fast_path` replays with the fewest
checks. `export` and `load` write captures to files and read them.
"""
