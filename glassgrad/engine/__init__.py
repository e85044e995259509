"""The conductor: calls the stages in order, keeps what was made, runs it."""
