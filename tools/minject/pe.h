// Reads executables and libraries of Windows: PE32 (32 bits) and PE32+ (64 bits).
//
// The file may be anything: every access is checked against its size.  Addresses in a file are relative to where the image is
// loaded (RVA); sections say where they are in the file.
//
//   +-----+----------+-----------------+-------------+-------+----------------------+----------------------------------+
//   | DOS | PE, COFF | optional header | directories | table | sections, in the     | what no section has: overlay,    |
//   |     | header   |                 |             | of s. | order of the table   | symbols, certificates            |
//   +-----+----------+-----------------+-------------+-------+----------------------+----------------------------------+
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Entries of the table of directories.
enum {
  PE_DIRECTORY_IMPORT = 1,
  PE_DIRECTORY_CERTIFICATES = 4, // its address is a place in the file
  PE_DIRECTORY_DEBUG = 6,
  PE_DIRECTORY_BOUND_IMPORT = 11,
  PE_DIRECTORY_ADDRESSES = 12, // what the loader fills with addresses of imports
  PE_DIRECTORY_DELAY_IMPORT = 13,
  PE_DIRECTORY_CLI = 14,
  PE_DIRECTORIES = 16
};

// Offsets of fields.
enum {
  PE_COFF_MACHINE = 0,
  PE_COFF_SECTIONS = 2,
  PE_COFF_SYMBOLS = 8,
  PE_COFF_OPTIONAL_SIZE = 16,
  PE_COFF_FLAGS = 18,
  PE_COFF_SIZE = 20,

  PE_OPTIONAL_INITIALIZED_SIZE = 8,
  PE_OPTIONAL_SECTION_ALIGNMENT = 32,
  PE_OPTIONAL_FILE_ALIGNMENT = 36,
  PE_OPTIONAL_IMAGE_SIZE = 56,
  PE_OPTIONAL_HEADERS_SIZE = 60,
  PE_OPTIONAL_CHECKSUM = 64,
  PE_OPTIONAL_SUBSYSTEM = 68,
  PE_OPTIONAL_DLL_FLAGS = 70,

  PE_SECTION_VIRTUAL_SIZE = 8,
  PE_SECTION_ADDRESS = 12,
  PE_SECTION_RAW_SIZE = 16,
  PE_SECTION_RAW = 20,
  PE_SECTION_RELOCATIONS = 24,
  PE_SECTION_LINES = 28,
  PE_SECTION_FLAGS = 36,
  PE_SECTION_SIZE = 40,

  PE_IMPORT_LOOKUP = 0, // names of functions
  PE_IMPORT_TIME = 4,   // not 0: bound
  PE_IMPORT_FORWARDER = 8,
  PE_IMPORT_NAME = 12,
  PE_IMPORT_ADDRESSES = 16,
  PE_IMPORT_SIZE = 20
};

enum { PE_MAGIC_32 = 0x10b, PE_MAGIC_64 = 0x20b };
enum { PE_FLAG_DLL = 0x2000 };
enum { PE_DLL_FLAG_FORCE_INTEGRITY = 0x80 };
enum { PE_MACHINE_X86 = 0x14c, PE_MACHINE_ARM = 0x1c4, PE_MACHINE_X64 = 0x8664, PE_MACHINE_ARM64 = 0xaa64 };
enum { PE_SUBSYSTEM_WINDOW = 2, PE_SUBSYSTEM_CONSOLE = 3 };

#define PE_NAME_MAX 260 // names of libraries and functions, with the 0 at the end

typedef struct pe_s {
  const uint8_t* bytes;
  size_t         size;
  size_t         coff, optional, directories, sections; // places in the file
  size_t         n_directories, n_sections;
  bool           is_64;
  char           why[200]; // what is wrong, after a function has returned false
} pe_t;

// False: this is no executable of Windows, or a part of its headers is missing.
bool pe_open(pe_t* pe, const uint8_t* bytes, size_t size);
// Sets `why`, and returns false.
bool pe_fail(pe_t* pe, const char* format, ...);

// Words in the file.  Callers know that they are there.
uint16_t pe_u16(const pe_t* pe, size_t at);
uint32_t pe_u32(const pe_t* pe, size_t at);
uint64_t pe_u64(const pe_t* pe, size_t at);

uint32_t    pe_optional_u32(const pe_t* pe, size_t field);
size_t      pe_section(const pe_t* pe, size_t i);      // the place of its header
uint32_t    pe_section_span(const pe_t* pe, size_t i); // how much of the address space it takes, in whole OS pages
uint32_t    pe_directory(const pe_t* pe, size_t i, uint32_t* size); // its address, 0 if there is none
uint16_t    pe_machine(const pe_t* pe);
const char* pe_machine_name(uint16_t machine);
bool        pe_is_dll(const pe_t* pe);

// The section with that address; n_sections if there is none.
size_t pe_find_section(const pe_t* pe, uint32_t address);
// What the image has at an address once it is loaded, before imports are resolved.  False: nothing is there.
bool   pe_read(const pe_t* pe, uint32_t address, void* to, size_t size);
bool   pe_read_string(const pe_t* pe, uint32_t address, char* to, size_t size);

typedef struct pe_import_s {
  uint32_t at;                         // address of its descriptor
  uint8_t  descriptor[PE_IMPORT_SIZE]; // as in the file; that of a delayed import in this form, too
  char     name[PE_NAME_MAX];
} pe_import_t;

typedef enum pe_found_e { PE_FOUND, PE_END, PE_BROKEN } pe_found_t; // PE_BROKEN: see `why`

// The i-th library that the image imports, at once or when it is first used.
pe_found_t pe_import(pe_t* pe, size_t i, pe_import_t* import);
pe_found_t pe_delayed_import(pe_t* pe, size_t i, pe_import_t* import);
// The i-th function of an import; "#7" for one that has a number only.
pe_found_t pe_import_function(pe_t* pe, const pe_import_t* import, size_t i, char name[PE_NAME_MAX]);
// Does a library export this function by its name?
bool       pe_exports(const pe_t* pe, const char* name);

bool pe_same_name(const char* a, const char* b); // of files, for Windows: without regard to case
