"""What everything stands on: dtypes, settings, errors, events, origins. Imports nothing of ours."""
