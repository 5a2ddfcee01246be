#include "file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
  #include <windows.h>
  #include <shellapi.h>

static wchar_t* wide(const char* text) {
  const int n = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
  wchar_t*  to = (wchar_t*)malloc((size_t)(n > 0 ? n : 1) * sizeof(wchar_t));
  if (to != NULL && (n <= 0 || MultiByteToWideChar(CP_UTF8, 0, text, -1, to, n) != n)) to[0] = 0;
  return to;
}

static FILE* file_open(const char* name, const char* mode) {
  wchar_t* const wide_name = wide(name);
  wchar_t* const wide_mode = wide(mode);
  FILE* const    file = wide_name != NULL && wide_mode != NULL ? _wfopen(wide_name, wide_mode) : NULL;
  const int      error = errno;
  free(wide_name);
  free(wide_mode);
  errno = error;
  return file;
}

bool file_remove(const char* name) {
  wchar_t* const wide_name = wide(name);
  const bool     is_done = wide_name != NULL && _wremove(wide_name) == 0;
  free(wide_name);
  return is_done;
}

void file_arguments(int* argc, char*** argv) {
  SetConsoleOutputCP(CP_UTF8);
  int             n = 0;
  wchar_t** const from = CommandLineToArgvW(GetCommandLineW(), &n);
  char** const    to = (char**)calloc((size_t)n + 1, sizeof(char*));
  if (from == NULL || to == NULL) return;
  for (int i = 0; i < n; i++) {
    const int size = WideCharToMultiByte(CP_UTF8, 0, from[i], -1, NULL, 0, NULL, NULL);
    to[i] = (char*)calloc((size_t)size + 1, 1);
    if (to[i] == NULL) return;
    WideCharToMultiByte(CP_UTF8, 0, from[i], -1, to[i], size, NULL, NULL);
  }
  *argc = n;
  *argv = to;
}

static bool is_separator(char c) {
  return c == '/' || c == '\\' || c == ':';
}

#else

static FILE* file_open(const char* name, const char* mode) {
  return fopen(name, mode);
}

bool file_remove(const char* name) {
  return remove(name) == 0;
}

void file_arguments(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
}

static bool is_separator(char c) {
  return c == '/';
}

#endif

// Grows as it reads: the size of a pipe, say, is not known before.
uint8_t* file_read(const char* name, size_t* size) {
  FILE* const file = file_open(name, "rb");
  if (file == NULL) return NULL;
  size_t   room = 1 << 16;
  uint8_t* bytes = (uint8_t*)malloc(room);
  *size = 0;
  errno = 0;
  while (bytes != NULL) {
    *size += fread(bytes + *size, 1, room - *size, file);
    if (*size < room) break;
    room *= 2;
    uint8_t* const more = (uint8_t*)realloc(bytes, room);
    if (more == NULL) free(bytes);
    bytes = more;
  }
  int error = bytes == NULL ? ENOMEM : ferror(file) ? errno : 0;
  if (bytes != NULL && ferror(file)) { // a directory, for instance
    free(bytes);
    bytes = NULL;
    if (error == 0) error = EIO;
  }
  fclose(file);
  errno = error;
  return bytes;
}

bool file_write(const char* name, const uint8_t* bytes, size_t size) {
  FILE* const file = file_open(name, "wb");
  if (file == NULL) return false;
  errno = 0;
  const bool is_written = fwrite(bytes, 1, size, file) == size && fflush(file) == 0;
  const int  error = errno;
  const bool is_closed = fclose(file) == 0;
  if (!is_written) errno = error != 0 ? error : EIO;
  return is_written && is_closed;
}

bool file_exists(const char* name) {
  FILE* const file = file_open(name, "rb");
  if (file != NULL) fclose(file);
  return file != NULL || errno != ENOENT;
}

const char* file_name(const char* path) {
  const char* name = path;
  for (; *path != 0; path++) {
    if (is_separator(*path)) name = path + 1;
  }
  return name;
}

size_t file_stem_length(const char* path) {
  const char* const name = file_name(path);
  const char* const dot = strrchr(name, '.');
  return dot != NULL && dot != name ? (size_t)(dot - path) : strlen(path);
}
