"""Speed, side by side with others, as ratios of best times in one run. Never part of the tests."""
