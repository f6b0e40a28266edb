"""Search methods as pure functions of their state, one file each."""
