// Declarations for compiling only: test/stubs/README.md.
#pragma once
#define TARGET_OS_OSX    0
#define TARGET_OS_IPHONE 1
