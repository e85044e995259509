"""Plan, addresses -> results: launches run as one native call or one by one."""
