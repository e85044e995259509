"""The graph and everything said about it: ops, nodes, facts, rules, and what is legal at each
stage.
"""
