// The recording of this process: its file, the numbers of threads and blocks, and the records.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Begins a recording, as the environment says. Called once, before any of the other functions.
void recording_start(void);

// Whether calls are recorded: false before the start, and after the end or the limit of the file.
bool recording_is_on(void);

// A block that the allocator has just returned. `align` is 0 except for TRACE_ALIGNED.
void recording_add(int kind, void* block, size_t size, size_t align);

// A block that is about to be freed.
void recording_remove(void* block);

// A block that is about to be resized: its slot, which belongs to nobody until recording_resized; 0 if it is unknown.
uint32_t recording_resize(void* block);
void     recording_resized(uint32_t slot, void* block, size_t size); // the call has returned `block`
void     recording_restored(uint32_t slot, void* block);             // it has failed, and the block is as before
void     recording_freed(uint32_t slot);                             // it has freed the block
