"""``python -m paretomkl`` is the ``paretomkl`` command."""

from .cli import main

if __name__ == "__main__":
    main()
