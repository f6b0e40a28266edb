"""One search: the loop, its compiled programs, its directory, and how to look at it afterwards."""
