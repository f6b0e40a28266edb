"""Control tasks: robots that Brax simulates. Evaluating them needs the extra `jedax[brax]`."""
