// A parent that counts the system calls of its child.  Takes no privilege.
#ifndef LANDSCAPE_TRACER_H
#define LANDSCAPE_TRACER_H

#include <sys/types.h>

// In the parent, before the child is there.
void tracer_prepare(void);

// In the child: the parent traces from here on.
void tracer_start(void);

// In the child: the calling thread is counted from here on, or is not.
void tracer_toggle(void);

// What both share.
long* tracer_count(void);

// In the parent: counts until the child ends.  What waitpid says of its end, -1 if it cannot be traced.
int tracer_run(pid_t child);

#endif
