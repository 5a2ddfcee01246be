// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <stdint.h>
typedef unsigned mach_port_t;
typedef int      kern_return_t;
typedef unsigned mach_msg_type_number_t;
typedef int*     task_info_t;
typedef struct {
  int seconds, microseconds;
} time_value_t;
struct mach_task_basic_info {
  uint64_t     virtual_size, resident_size, resident_size_max;
  time_value_t user_time, system_time;
  int          policy, suspend_count;
};
#define MACH_TASK_BASIC_INFO       20
#define MACH_TASK_BASIC_INFO_COUNT ((mach_msg_type_number_t)(sizeof(struct mach_task_basic_info) / sizeof(int)))
#define KERN_SUCCESS               0
mach_port_t   mach_task_self(void);
kern_return_t task_info(mach_port_t, unsigned, task_info_t, mach_msg_type_number_t*);
