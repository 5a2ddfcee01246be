// Declarations for compiling only: test/stubs/README.md.
#pragma once
extern int* stub_errno(void);
#define errno        (*stub_errno())
#define EPERM        1
#define EINTR        4
#define ENOMEM       12
#define EFAULT       14
#define EEXIST       17
#define EINVAL       22
#define ERANGE       34
#define EAGAIN       35
#define EOVERFLOW    75
#define ENOSYS       78
#define ENOTSUP      95
#define EOWNERDEAD   130
#define ENOENT       2
#define EIO          5
#define EACCES       13
#define EBUSY        16
#define ENOTDIR      20
#define ENFILE       23
#define EMFILE       24
#define EFBIG        27
#define ENOSPC       28
#define EROFS        30
#define ENAMETOOLONG 63
#define ESRCH        3
