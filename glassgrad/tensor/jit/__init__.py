"""function -> TinyJit: captured at its second call, replayed as one native call from then on.

`function` decides between replaying and capturing, `guards` compare the Python values that a
function can reach, `trace` compares what two calls computed, `checks` refuses what a replay could
not repeat, `capture` sorts memory and is what is replayed, `fast_path` replays without asking more
than necessary. `export` and `load` write captures to files and read them.
"""
