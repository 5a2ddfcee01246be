// Declarations for compiling only: test/stubs/README.md.
#pragma once
extern int* stub_errno(void);
#define errno      (*stub_errno())
#define EPERM      1
#define EINTR      4
#define ENOMEM     12
#define EFAULT     14
#define EEXIST     17
#define EINVAL     22
#define ERANGE     34
#define EAGAIN     35
#define EOVERFLOW  75
#define ENOSYS     78
#define ENOTSUP    95
#define EOWNERDEAD 130
