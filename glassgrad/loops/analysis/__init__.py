"""Facts about a nest that moves and strategies share: patterns in it, and bounds of its masks."""
