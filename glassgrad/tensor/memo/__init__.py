"""What a repeated computation reuses: graph keys, the step cache, numbers made arguments."""
