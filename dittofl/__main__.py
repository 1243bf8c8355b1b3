"""`python -m dittofl`: the command line from a source tree that is not installed."""

from dittofl.cli import main

if __name__ == "__main__":
    main()
