"""Schedule -> Plan: launches, their memory, and lifted arguments."""
