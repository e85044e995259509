"""Source -> Executable: the machines, found by name in `registry.Device`."""
