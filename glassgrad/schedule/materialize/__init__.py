"""Graph -> Statements: which values get memory, and which are computed where they are used."""
