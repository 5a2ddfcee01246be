// What a replay cost, told on stderr in one line, KEY=VALUE ...:
//
//   cpu_s, wall_s, faults   of the calls alone, not of reading the tables
//   peak_kib                the largest resident memory, less that of the replayer itself at the start
//   live_peak_kib           the most bytes in live blocks at once, in the recording
//   end_kib, live_end_kib   resident memory and bytes in live blocks after the last call
//   rss_live                the sum of resident memory over the sum of live bytes, of all samples
//   rss_live_at_peak        the same in the sample with the most live bytes
//   samples                 how many: one for each REPORT_STEP records of a thread
#pragma once

#include "trace.h"

#define REPORT_STEP 1024

void report_start(void);
void report_sample(int64_t live_change); // the bytes that the thread has allocated since its last, less those freed
void report_end(const trace_header_t* header);
