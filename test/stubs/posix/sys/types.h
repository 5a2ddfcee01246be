// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <stddef.h>
#include <stdint.h>
typedef long          ssize_t;
typedef long          off_t;
typedef unsigned      mode_t;
typedef int           pid_t;
typedef unsigned      uid_t;
typedef unsigned      gid_t;
typedef long          time_t;
typedef long          suseconds_t;
typedef int           clockid_t;
typedef unsigned long sigset_t;
