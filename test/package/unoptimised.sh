#!/bin/sh
# The compiler without optimisation: for tests of what is built and where it is found, not of the code.  A launcher for CMake.
exec "$@" -O0
