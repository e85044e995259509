"""Random programs, run by glassgrad and by a NumPy reference, compared and shrunk.

    make fuzz                         # fresh seeds, until 2,000 programs have run
    make fuzz PROGRAMS=100000 JOBS=2  # many
    make fuzz SEED=123                # start at a known seed

A program is data (`programs`): leaves and statements over named values. It is executed by exec of
its own Python text, so the text that is printed for a failure is the text that failed. `generate`
grows a program step by step from the table of `ops`, and evaluates each step at once by the
reference (`reference`, in the arithmetic of `stochastic`), so that every program has a known answer that
is well conditioned. `modes` are the ways to run a program; `shrink` makes a failing one small.
"""
