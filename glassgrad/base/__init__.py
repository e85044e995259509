"""The foundation: dtypes, settings, errors, events, origins. It imports no other folder."""
