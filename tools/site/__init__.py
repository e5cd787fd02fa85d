"""The documentation site: Sphinx with MyST and furo, and what they do not do by themselves.

build.py       puts the sources of the site together, and has Sphinx build it
conf.py        the configuration of Sphinx
docstrings.py  indented blocks of docstrings, as Sphinx wants them
links.py       links that lead out of docs/
navigation.py  the pages, by the four kinds of documentation
reference.py   pages made from the code: library, command line, HTTP API
sources.py     source files as pages, for the links that lead to code
"""
