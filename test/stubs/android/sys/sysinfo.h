// Declarations for compiling only: test/stubs/README.md.
#pragma once
struct sysinfo {
  unsigned long totalram;
  unsigned int  mem_unit;
};
int sysinfo(struct sysinfo*);
