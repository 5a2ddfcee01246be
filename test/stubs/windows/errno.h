#pragma once

#define EPERM        1
#define ENOENT       2
#define EINTR        4
#define EAGAIN       11
#define ENOMEM       12
#define EFAULT       14
#define EBUSY        16
#define EEXIST       17
#define EINVAL       22
#define ERANGE       34
#define EACCES       13
#define ENOTDIR      20
#define ENFILE       23
#define EMFILE       24
#define EFBIG        27
#define ENOSPC       28
#define EROFS        30
#define ENAMETOOLONG 38
#define ENOTSUP      129
#define EOVERFLOW    132

int* _errno(void);
#define errno (*_errno())
