"""Many runs together: what they did, and what can be said of it."""
