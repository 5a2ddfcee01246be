// What both tests of the scheduler do with the library, and expect of it.
#pragma once

#include "schedule.h"
#include "support/stat.h"

int64_t library_live(mi_live_count_t* count);

// As the library's thread makes one.
void library_round(void);

// A failure, with what is wrong, if the heap is damaged.
void library_check(void);

// A failure, with all pages that there are, if n of those are left.
void library_expect_none(const char* what, int64_t n);

// The same for pages, large blocks and kept slices.
void library_expect_no_pages(void);
