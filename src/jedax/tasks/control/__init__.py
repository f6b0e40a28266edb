"""Control tasks: robots that Brax simulates. Needs the extra `jedax[brax]` as soon as something is evaluated."""
