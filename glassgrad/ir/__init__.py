"""The node type of all stages: ops, nodes, derived facts, rewrite rules, and a spec per stage."""
