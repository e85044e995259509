"""Source -> Executable: the devices, found by name in `registry.Device`."""
