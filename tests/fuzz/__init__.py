"""Random programs, run by glassgrad and by a NumPy reference, compared and shrunk.

    make fuzz                         # 2,000 programs of fresh seeds
    make fuzz PROGRAMS=100000 JOBS=2  # many
    make fuzz SEED=123                # start at a known seed

A program is data (`programs`): leaves and statements over named values. It is run by exec of its
Python text, so that the text printed for a failure is the text that failed. `generate` adds
statements from the table of `ops`, and evaluates each at once by the reference (`reference`, in the
stochastic arithmetic of `stochastic`), so that every program has a well-conditioned known answer.
`modes` are the ways to run a program; `shrink` minimises a failing one.
"""
