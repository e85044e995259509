"""VERIFY=1: compares every launch with the plain loops of its kernel."""
