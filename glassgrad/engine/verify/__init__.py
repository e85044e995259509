"""VERIFY=1: every launch compared with the plain loops of its kernel."""
