"""`python -m jedax` is the command `jedax`."""

from jedax.cli import main

if __name__ == "__main__":
    main()
