#include "pe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DOS_SIZE = 64, DOS_PE_AT = 60, SIGNATURE_SIZE = 4 };
enum { OPTIONAL_DIRECTORIES_32 = 96, OPTIONAL_DIRECTORIES_64 = 112 };
enum { DELAY_SIZE = 32, DELAY_FLAGS = 0, DELAY_NAME = 4, DELAY_ADDRESSES = 12, DELAY_LOOKUP = 16 };
enum { EXPORT_SIZE = 40, EXPORT_N_NAMES = 24, EXPORT_NAMES = 32 };
enum { OS_PAGE_SIZE = 4096 };
enum { SECTOR_SIZE = 512 }; // sections in a file begin at a multiple, whatever the header says
enum { DIRECTORY_EXPORT = 0 };

bool pe_fail(pe_t* pe, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(pe->why, sizeof(pe->why), format, arguments);
  va_end(arguments);
  return false;
}

// ---- words ----------------------------------------------------------------------------------------------------------------

static uint16_t load_u16(const uint8_t* p) {
  return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t load_u32(const uint8_t* p) {
  return load_u16(p) | (uint32_t)load_u16(p + 2) << 16;
}

static bool has(const pe_t* pe, size_t at, size_t size) {
  return at <= pe->size && size <= pe->size - at;
}

uint16_t pe_u16(const pe_t* pe, size_t at) {
  return load_u16(pe->bytes + at);
}

uint32_t pe_u32(const pe_t* pe, size_t at) {
  return load_u32(pe->bytes + at);
}

uint64_t pe_u64(const pe_t* pe, size_t at) {
  return pe_u32(pe, at) | (uint64_t)pe_u32(pe, at + 4) << 32;
}

// ---- headers --------------------------------------------------------------------------------------------------------------

static bool open_signature(pe_t* pe) {
  if (!has(pe, 0, 2) || pe->bytes[0] != 'M' || pe->bytes[1] != 'Z')
    return pe_fail(pe, "not an executable of Windows: it does not begin with MZ");
  if (!has(pe, 0, DOS_SIZE)) return pe_fail(pe, "the file is truncated: its DOS header is not complete");
  const size_t at = pe_u32(pe, DOS_PE_AT);
  if (!has(pe, at, SIGNATURE_SIZE + PE_COFF_SIZE))
    return pe_fail(pe, "a program of DOS, or truncated: there is no PE header in the file");
  if (memcmp(pe->bytes + at, "PE\0\0", SIGNATURE_SIZE) != 0)
    return pe_fail(pe, "not a PE executable: a program of DOS, or of another system");
  pe->coff = at + SIGNATURE_SIZE;
  pe->optional = pe->coff + PE_COFF_SIZE;
  return true;
}

static bool open_optional(pe_t* pe) {
  const size_t size = pe_u16(pe, pe->coff + PE_COFF_OPTIONAL_SIZE);
  if (!has(pe, pe->optional, size)) return pe_fail(pe, "the file is truncated: its optional header is not complete");
  const uint16_t magic = size >= 2 ? pe_u16(pe, pe->optional) : 0;
  if (magic != PE_MAGIC_32 && magic != PE_MAGIC_64)
    return pe_fail(pe, "neither PE32 nor PE32+: its optional header has magic number 0x%x", magic);
  pe->is_64 = magic == PE_MAGIC_64;
  const size_t before = pe->is_64 ? OPTIONAL_DIRECTORIES_64 : OPTIONAL_DIRECTORIES_32;
  if (size < before) return pe_fail(pe, "its optional header is too small");
  pe->directories = pe->optional + before;
  pe->n_directories = pe_u32(pe, pe->directories - 4);
  if (pe->n_directories > PE_DIRECTORIES) pe->n_directories = PE_DIRECTORIES;
  if (pe->n_directories > (size - before) / 8)
    return pe_fail(pe, "its optional header is too small for its directories");
  pe->sections = pe->optional + size;
  return true;
}

bool pe_open(pe_t* pe, const uint8_t* bytes, size_t size) {
  memset(pe, 0, sizeof(*pe));
  pe->bytes = bytes;
  pe->size = size;
  if (!open_signature(pe) || !open_optional(pe)) return false;
  pe->n_sections = pe_u16(pe, pe->coff + PE_COFF_SECTIONS);
  if (!has(pe, pe->sections, pe->n_sections * PE_SECTION_SIZE))
    return pe_fail(pe, "the file is truncated: its table of sections is not complete");
  return true;
}

uint32_t pe_optional_u32(const pe_t* pe, size_t field) {
  return pe_u32(pe, pe->optional + field);
}

size_t pe_section(const pe_t* pe, size_t i) {
  return pe->sections + i * PE_SECTION_SIZE;
}

uint32_t pe_section_span(const pe_t* pe, size_t i) {
  uint32_t size = pe_u32(pe, pe_section(pe, i) + PE_SECTION_VIRTUAL_SIZE);
  if (size == 0) size = pe_u32(pe, pe_section(pe, i) + PE_SECTION_RAW_SIZE);
  return size > UINT32_MAX - (OS_PAGE_SIZE - 1) ? size : (size + OS_PAGE_SIZE - 1) & ~(uint32_t)(OS_PAGE_SIZE - 1);
}

uint32_t pe_directory(const pe_t* pe, size_t i, uint32_t* size) {
  *size = 0;
  if (i >= pe->n_directories) return 0;
  *size = pe_u32(pe, pe->directories + i * 8 + 4);
  return pe_u32(pe, pe->directories + i * 8);
}

uint16_t pe_machine(const pe_t* pe) {
  return pe_u16(pe, pe->coff + PE_COFF_MACHINE);
}

const char* pe_machine_name(uint16_t machine) {
  switch (machine) {
    case PE_MACHINE_X86: return "x86 (32-bit)";
    case PE_MACHINE_X64: return "x64 (64-bit)";
    case PE_MACHINE_ARM: return "ARM (32-bit)";
    case PE_MACHINE_ARM64: return "ARM64 (64-bit)";
    default: return "another processor";
  }
}

bool pe_is_dll(const pe_t* pe) {
  return (pe_u16(pe, pe->coff + PE_COFF_FLAGS) & PE_FLAG_DLL) != 0;
}

// ---- addresses ------------------------------------------------------------------------------------------------------------

size_t pe_find_section(const pe_t* pe, uint32_t address) {
  size_t i = 0;
  for (; i < pe->n_sections; i++) {
    const uint32_t start = pe_u32(pe, pe_section(pe, i) + PE_SECTION_ADDRESS);
    if (address >= start && address - start < pe_section_span(pe, i)) break;
  }
  return i;
}

// What is loaded there: `n` bytes from a place in the file on, or, with SIZE_MAX, that many which the loader fills with zero.
// False: nothing is there.
static bool find_run(const pe_t* pe, uint32_t address, size_t* at, size_t* n) {
  const uint32_t headers = pe_optional_u32(pe, PE_OPTIONAL_HEADERS_SIZE);
  size_t         end = headers; // in the file
  *at = address;
  *n = 0;
  if (address >= headers) {
    const size_t i = pe_find_section(pe, address);
    if (i == pe->n_sections) return false;
    const size_t   header = pe_section(pe, i);
    const uint32_t distance = address - pe_u32(pe, header + PE_SECTION_ADDRESS);
    const uint32_t raw_size = pe_u32(pe, header + PE_SECTION_RAW_SIZE);
    if (distance >= raw_size) {
      *at = SIZE_MAX;
      *n = pe_section_span(pe, i) - distance;
      return true;
    }
    const size_t raw = pe_u32(pe, header + PE_SECTION_RAW) & ~(uint32_t)(SECTOR_SIZE - 1);
    *at = raw + distance;
    end = raw + (raw_size < pe_section_span(pe, i) ? raw_size : pe_section_span(pe, i));
  }
  if (end > pe->size) end = pe->size;
  if (*at >= end) return false;
  *n = end - *at;
  return true;
}

bool pe_read(const pe_t* pe, uint32_t address, void* to, size_t size) {
  uint8_t* p = (uint8_t*)to;
  while (size > 0) {
    size_t at, n;
    if (!find_run(pe, address, &at, &n)) return false;
    if (n > size) n = size;
    if (n < size && n > UINT32_MAX - address) return false;
    if (at == SIZE_MAX) memset(p, 0, n);
    else memcpy(p, pe->bytes + at, n);
    p += n;
    address += (uint32_t)n;
    size -= n;
  }
  return true;
}

bool pe_read_string(const pe_t* pe, uint32_t address, char* to, size_t size) {
  size_t at, n, length = 0;
  while (length < size && find_run(pe, address, &at, &n)) {
    if (at == SIZE_MAX) {
      to[length] = 0;
      return true;
    }
    for (size_t i = 0; i < n && length < size; i++) {
      to[length] = (char)pe->bytes[at + i];
      if (to[length++] == 0) return true;
    }
    if (n > UINT32_MAX - address) return false;
    address += (uint32_t)n;
  }
  return false;
}

// ---- imports --------------------------------------------------------------------------------------------------------------

static pe_found_t read_name(pe_t* pe, size_t i, uint32_t address, pe_import_t* import) {
  if (pe_read_string(pe, address, import->name, sizeof(import->name)) && import->name[0] != 0) return PE_FOUND;
  pe_fail(pe, "its table of imports is broken: entry %zu has no name", i);
  return PE_BROKEN;
}

// The i-th entry of a table, of `size` bytes.
static bool read_entry(pe_t* pe, uint32_t table, size_t i, void* entry, size_t size, uint32_t* at) {
  if (i < (UINT32_MAX - table) / size) {
    *at = table + (uint32_t)(i * size);
    if (pe_read(pe, *at, entry, size)) return true;
  }
  return pe_fail(pe, "its table of imports is broken: entry %zu is not in the image", i);
}

pe_found_t pe_import(pe_t* pe, size_t i, pe_import_t* import) {
  uint32_t       table_size;
  const uint32_t table = pe_directory(pe, PE_DIRECTORY_IMPORT, &table_size);
  if (table == 0) return PE_END;
  if (!read_entry(pe, table, i, import->descriptor, PE_IMPORT_SIZE, &import->at)) return PE_BROKEN;
  const uint32_t name = load_u32(import->descriptor + PE_IMPORT_NAME);
  // The loader stops at either.
  if (name == 0 || load_u32(import->descriptor + PE_IMPORT_ADDRESSES) == 0) return PE_END;
  return read_name(pe, i, name, import);
}

pe_found_t pe_delayed_import(pe_t* pe, size_t i, pe_import_t* import) {
  uint32_t       table_size;
  const uint32_t table = pe_directory(pe, PE_DIRECTORY_DELAY_IMPORT, &table_size);
  if (table == 0) return PE_END;
  uint8_t entry[DELAY_SIZE];
  if (!read_entry(pe, table, i, entry, DELAY_SIZE, &import->at)) return PE_BROKEN;
  const uint32_t name = load_u32(entry + DELAY_NAME);
  if (name == 0) return PE_END;
  if ((load_u32(entry + DELAY_FLAGS) & 1) == 0) {
    pe_fail(pe, "its delayed imports are in the form of Visual C++ 6, which minject does not read");
    return PE_BROKEN;
  }
  memset(import->descriptor, 0, sizeof(import->descriptor));
  memcpy(import->descriptor + PE_IMPORT_LOOKUP, entry + DELAY_LOOKUP, 4);
  memcpy(import->descriptor + PE_IMPORT_ADDRESSES, entry + DELAY_ADDRESSES, 4);
  return read_name(pe, i, name, import);
}

pe_found_t pe_import_function(pe_t* pe, const pe_import_t* import, size_t i, char name[PE_NAME_MAX]) {
  uint32_t table = load_u32(import->descriptor + PE_IMPORT_LOOKUP);
  if (table == 0) table = load_u32(import->descriptor + PE_IMPORT_ADDRESSES);
  const size_t size = pe->is_64 ? 8 : 4;
  uint8_t      entry[8] = {0};
  uint32_t     at;
  if (!read_entry(pe, table, i, entry, size, &at)) return PE_BROKEN;
  const uint32_t word = load_u32(entry);
  if (word == 0 && load_u32(entry + 4) == 0) return PE_END;
  if ((entry[size - 1] & 0x80) != 0) {
    snprintf(name, PE_NAME_MAX, "#%u", (unsigned)(word & 0xffff));
    return PE_FOUND;
  }
  if (word <= UINT32_MAX - 2 && pe_read_string(pe, word + 2, name, PE_NAME_MAX))
    return PE_FOUND; // 2: a hint is before it
  pe_fail(pe, "its imports of %s are broken: function %zu has no name", import->name, i);
  return PE_BROKEN;
}

bool pe_exports(const pe_t* pe, const char* name) {
  uint32_t       size;
  const uint32_t at = pe_directory(pe, DIRECTORY_EXPORT, &size);
  uint8_t        table[EXPORT_SIZE];
  if (at == 0 || !pe_read(pe, at, table, sizeof(table))) return false;
  const uint32_t names = load_u32(table + EXPORT_NAMES);
  const uint32_t n = load_u32(table + EXPORT_N_NAMES);
  for (uint32_t i = 0; i < n && i < (UINT32_MAX - names) / 4; i++) {
    uint8_t word[4];
    char    found[PE_NAME_MAX];
    if (!pe_read(pe, names + i * 4, word, sizeof(word))) return false;
    if (pe_read_string(pe, load_u32(word), found, sizeof(found)) && strcmp(found, name) == 0) return true;
  }
  return false;
}

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

bool pe_same_name(const char* a, const char* b) {
  while (*a != 0 && lower(*a) == lower(*b)) {
    a++;
    b++;
  }
  return lower(*a) == lower(*b);
}
