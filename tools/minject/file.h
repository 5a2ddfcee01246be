// Files by name, on Windows with names in UTF-8, and the arguments of the program likewise.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Arguments that are the user's, whatever the code page of the console; they are never freed.
void        file_arguments(int* argc, char*** argv);
// The whole file, to be freed.  NULL: errno says why.
uint8_t*    file_read(const char* name, size_t* size);
// Makes the file, or replaces its contents; it keeps owner and permissions.  False: errno says why.
bool        file_write(const char* name, const uint8_t* bytes, size_t size);
bool        file_exists(const char* name);
bool        file_remove(const char* name);
// The part of a path behind the last separator.
const char* file_name(const char* path);
// Where the extension of a path begins, with its dot; the end of the path if it has none.
size_t      file_stem_length(const char* path);
