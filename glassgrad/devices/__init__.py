"""Source -> Executable: the devices, found by name in `registry.Device`.

CUDA, Metal and OpenCL source (render/) is written and tested as text; no device runs it yet.
"""
