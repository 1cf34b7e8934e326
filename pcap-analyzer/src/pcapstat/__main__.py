"""`python -m pcapstat`: the command line, where its folder is not on the path."""

from pcapstat.cli import main

if __name__ == "__main__":
    main()
