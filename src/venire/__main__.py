"""`python -m venire` is `venire`."""

import sys

from venire.cli import main

if __name__ == "__main__":
    sys.exit(main())
