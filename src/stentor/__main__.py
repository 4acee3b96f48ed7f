"""`python -m stentor` is `stentor`."""

from .cli import main

if __name__ == "__main__":
    main()
