"""What happened on the road -> a page in a browser that follows it, from line to machine code."""
