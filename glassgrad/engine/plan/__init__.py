"""Schedule -> Plan: which launches there are, their memory, and what becomes an argument."""
