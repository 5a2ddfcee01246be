#include "inject.h"

#include <stdlib.h>
#include <string.h>

enum { MARK_SIZE = 24, OS_PAGE_SIZE = 4096, MAX_FILE_ALIGNMENT = 65536, MAX_SECTIONS = 96 };
enum { SECTION_IS_DATA = 0x40, SECTION_CAN_READ = 0x40000000 };
#define SECTION_CAN_WRITE 0x80000000u
static const char section_name[9] = ".minject"; // all 8 characters
static const char mark_text[9] = "minject1";

// What is known once the executable has been checked.
typedef struct plan_s {
  size_t   n_imports;   // all that there are, ours too if it is there
  size_t   ours;        // the index of ours, n_imports if it is not there
  size_t   raw_end;     // of all sections, in the file
  size_t   overlay_end; // without certificates
  uint32_t address;     // of the new section
  size_t   section_size;
  size_t   new_raw, new_end; // of the new section, in the new file
  size_t   headers_end;      // with the new section's header
} plan_t;

// ---- words ----------------------------------------------------------------------------------------------------------------

static void store_u16(uint8_t* p, uint16_t word) {
  p[0] = (uint8_t)word;
  p[1] = (uint8_t)(word >> 8);
}

static void store_u32(uint8_t* p, uint32_t word) {
  store_u16(p, (uint16_t)word);
  store_u16(p + 2, (uint16_t)(word >> 16));
}

static void store_u64(uint8_t* p, uint64_t word) {
  store_u32(p, (uint32_t)word);
  store_u32(p + 4, (uint32_t)(word >> 32));
}

static uint64_t round_up(uint64_t n, uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

static bool is_power_of_two(uint32_t n) {
  return n != 0 && (n & (n - 1)) == 0;
}

inject_mark_t inject_mark_of(const uint8_t* bytes, size_t size) {
  inject_mark_t mark = {size, 0xcbf29ce484222325u}; // FNV-1a
  for (size_t i = 0; i < size; i++) {
    mark.hash = (mark.hash ^ bytes[i]) * 0x100000001b3u;
  }
  return mark;
}

bool inject_find_mark(const pe_t* pe, inject_mark_t* mark) {
  if (pe->n_sections == 0) return false;
  const size_t header = pe_section(pe, pe->n_sections - 1);
  const size_t raw = pe_u32(pe, header + PE_SECTION_RAW);
  if (memcmp(pe->bytes + header, section_name, 8) != 0 || raw > pe->size || pe->size - raw < MARK_SIZE) return false;
  if (memcmp(pe->bytes + raw, mark_text, 8) != 0) return false;
  mark->size = pe_u64(pe, raw + 8);
  mark->hash = pe_u64(pe, raw + 16);
  return true;
}

// ---- checks ---------------------------------------------------------------------------------------------------------------

static bool check_kind(pe_t* pe, bool force) {
  uint32_t       size;
  const uint16_t subsystem = pe_u16(pe, pe->optional + PE_OPTIONAL_SUBSYSTEM);
  if (pe_is_dll(pe)) return pe_fail(pe, "a library (DLL): the import has to be in the executable that uses it");
  if (subsystem != PE_SUBSYSTEM_WINDOW && subsystem != PE_SUBSYSTEM_CONSOLE)
    return pe_fail(pe, "no program for windows or the console (subsystem %u): it cannot load libraries", subsystem);
  if (pe_directory(pe, PE_DIRECTORY_CLI, &size) != 0)
    return pe_fail(pe, "a .NET program: its memory is that of the runtime, which does not use the table of imports");
  if (pe->n_directories <= PE_DIRECTORY_IMPORT) return pe_fail(pe, "its headers have no room for a table of imports");
  if (!force && pe_directory(pe, PE_DIRECTORY_CERTIFICATES, &size) != 0)
    return pe_fail(pe, "it is signed, and a changed file has no valid signature; --force removes the signature");
  if (!force && (pe_u16(pe, pe->optional + PE_OPTIONAL_DLL_FLAGS) & PE_DLL_FLAG_FORCE_INTEGRITY) != 0)
    return pe_fail(pe, "Windows loads it only with a valid signature (FORCE_INTEGRITY); --force removes that demand");
  return true;
}

static bool check_alignment(pe_t* pe) {
  const uint32_t in_memory = pe_optional_u32(pe, PE_OPTIONAL_SECTION_ALIGNMENT);
  const uint32_t in_file = pe_optional_u32(pe, PE_OPTIONAL_FILE_ALIGNMENT);
  if (!is_power_of_two(in_memory) || !is_power_of_two(in_file) || in_file > MAX_FILE_ALIGNMENT || in_file > in_memory)
    return pe_fail(pe, "its headers are broken: sections are aligned to 0x%x, in the file to 0x%x", in_memory, in_file);
  if (in_memory < OS_PAGE_SIZE)
    return pe_fail(pe, "its sections are not aligned to OS pages (but to 0x%x), so that no section can be added",
                   in_memory);
  if (in_file < 512) return pe_fail(pe, "its headers are broken: sections are aligned to 0x%x in the file", in_file);
  return true;
}

// Sections come in the order of their addresses, and are in the file.  Sets where they end.
static bool check_sections(pe_t* pe, plan_t* plan) {
  const uint32_t alignment = pe_optional_u32(pe, PE_OPTIONAL_SECTION_ALIGNMENT);
  uint64_t       end = round_up(pe_optional_u32(pe, PE_OPTIONAL_HEADERS_SIZE), alignment);
  plan->raw_end = pe_optional_u32(pe, PE_OPTIONAL_HEADERS_SIZE);
  if (pe->n_sections == 0) return pe_fail(pe, "it has no sections");
  for (size_t i = 0; i < pe->n_sections; i++) {
    const size_t   header = pe_section(pe, i);
    const uint32_t address = pe_u32(pe, header + PE_SECTION_ADDRESS);
    const uint32_t raw = pe_u32(pe, header + PE_SECTION_RAW);
    const uint32_t raw_size = pe_u32(pe, header + PE_SECTION_RAW_SIZE);
    if (address < end || address % alignment != 0)
      return pe_fail(pe, "its table of sections is broken: section %zu is at address 0x%x", i, address);
    end = round_up((uint64_t)address + pe_section_span(pe, i), alignment);
    if (raw == 0 || raw_size == 0) continue;
    if (raw % 512 != 0)
      return pe_fail(pe, "its table of sections is broken: section %zu is at 0x%x in the file", i, raw);
    if (raw > pe->size || raw_size > pe->size - raw)
      return pe_fail(pe, "the file is truncated: section %zu ends at 0x%llx, the file at 0x%zx", i,
                     (unsigned long long)raw + raw_size, pe->size);
    if ((size_t)raw + raw_size > plan->raw_end) plan->raw_end = (size_t)raw + raw_size;
  }
  if (plan->raw_end > pe->size) return pe_fail(pe, "the file is truncated: its headers are not complete");
  if (end > INT32_MAX) return pe_fail(pe, "it takes 2 GiB of address space: no section can be added");
  plan->address = (uint32_t)end;
  return true;
}

// Is there room for one more header in the table of sections?  Old linkers put the table of bound imports there, which goes.
static bool check_room(pe_t* pe, plan_t* plan) {
  plan->headers_end = pe_section(pe, pe->n_sections) + PE_SECTION_SIZE;
  size_t   limit = pe_u32(pe, pe_section(pe, 0) + PE_SECTION_ADDRESS);
  uint32_t bound_size;
  size_t   bound = pe_directory(pe, PE_DIRECTORY_BOUND_IMPORT, &bound_size);
  for (size_t i = 0; i < pe->n_sections; i++) {
    const size_t raw = pe_u32(pe, pe_section(pe, i) + PE_SECTION_RAW);
    if (raw != 0 && raw < limit) limit = raw;
  }
  bool is_free = plan->headers_end <= limit && plan->headers_end <= plan->raw_end && pe->n_sections < MAX_SECTIONS;
  for (size_t at = plan->headers_end - PE_SECTION_SIZE; is_free && at < plan->headers_end; at++) {
    if (bound == 0 || at < bound || at - bound >= bound_size) is_free = pe->bytes[at] == 0;
  }
  return is_free ||
         pe_fail(pe,
                 "there is no room in its headers for another section (it has %zu): link it with mimalloc.dll instead",
                 pe->n_sections);
}

static bool check_imports(pe_t* pe, const char* library, plan_t* plan) {
  pe_import_t import;
  pe_found_t  found;
  plan->ours = SIZE_MAX;
  for (plan->n_imports = 0; (found = pe_import(pe, plan->n_imports, &import)) == PE_FOUND; plan->n_imports++) {
    if (plan->ours == SIZE_MAX && pe_same_name(import.name, library)) plan->ours = plan->n_imports;
  }
  if (found == PE_BROKEN) return false;
  if (plan->ours == 0) return pe_fail(pe, "%.100s is its first import already", library);
  inject_mark_t mark;
  if (inject_find_mark(pe, &mark))
    return pe_fail(pe, "minject has changed it before, and added another library; undo that first");
  if (plan->ours == SIZE_MAX) plan->ours = plan->n_imports;
  return true;
}

// Bytes behind the sections that are kept: all but certificates, if these are last, as they should be.
static bool check_overlay(pe_t* pe, plan_t* plan) {
  uint32_t       size;
  const uint32_t at = pe_directory(pe, PE_DIRECTORY_CERTIFICATES, &size);
  plan->overlay_end = pe->size;
  if (at == 0 || size == 0) return true;
  if (at < plan->raw_end || at > pe->size || size > pe->size - at)
    return pe_fail(pe, "its headers are broken: the signature is not behind the sections");
  if (pe->size - at - size < 8) plan->overlay_end = at;
  return true;
}

// ---- the new section --------------------------------------------------------------------------------------------------------

static size_t word_size(const pe_t* pe) {
  return pe->is_64 ? 8 : 4;
}

static bool plan_section(pe_t* pe, const inject_t* what, plan_t* plan) {
  const uint32_t alignment = pe_optional_u32(pe, PE_OPTIONAL_FILE_ALIGNMENT);
  const size_t   names = 2 + strlen(what->function) + 2 + strlen(what->library) + 1;
  plan->section_size = MARK_SIZE + (plan->n_imports + 2) * PE_IMPORT_SIZE + 8 + 4 * word_size(pe) + names;
  plan->new_raw = (size_t)round_up(plan->raw_end, alignment);
  plan->new_end = plan->new_raw + (size_t)round_up(plan->section_size, alignment);
  const size_t added = plan->new_end - plan->raw_end;
  if (plan->overlay_end > UINT32_MAX - added || plan->section_size > INT32_MAX - plan->address)
    return pe_fail(pe, "the file would be larger than a PE executable can be");
  return true;
}

static void store_entry(uint8_t* to, const pe_import_t* import) {
  memcpy(to, import->descriptor, PE_IMPORT_SIZE);
  // Bound imports hold for the libraries of the machine that bound them; the loader looks the functions up instead.
  store_u32(to + PE_IMPORT_TIME, 0);
  store_u32(to + PE_IMPORT_FORWARDER, 0);
}

// An entry with one function, and behind the table what it refers to.
static void store_ours(const pe_t* pe, const inject_t* what, const plan_t* plan, uint8_t* section, uint8_t* entry) {
  const size_t table_end = MARK_SIZE + (plan->n_imports + 2) * PE_IMPORT_SIZE;
  const size_t lookup = (size_t)round_up(table_end, 8), addresses = lookup + 2 * word_size(pe);
  const size_t function = addresses + 2 * word_size(pe); // a hint of 2 bytes, which is 0, then the name
  const size_t library = (size_t)round_up(function + 2 + strlen(what->function) + 1, 2);
  store_u32(section + lookup, plan->address + (uint32_t)function);
  store_u32(section + addresses, plan->address + (uint32_t)function);
  memcpy(section + function + 2, what->function, strlen(what->function));
  memcpy(section + library, what->library, strlen(what->library));
  store_u32(entry + PE_IMPORT_LOOKUP, plan->address + (uint32_t)lookup);
  store_u32(entry + PE_IMPORT_ADDRESSES, plan->address + (uint32_t)addresses);
  store_u32(entry + PE_IMPORT_NAME, plan->address + (uint32_t)library);
}

static void store_section(pe_t* pe, const inject_t* what, const plan_t* plan, uint8_t* section) {
  const inject_mark_t mark = inject_mark_of(pe->bytes, pe->size);
  memcpy(section, mark_text, 8);
  store_u64(section + 8, mark.size);
  store_u64(section + 16, mark.hash);
  uint8_t*    entry = section + MARK_SIZE;
  pe_import_t import;
  if (plan->ours < plan->n_imports) {
    pe_import(pe, plan->ours, &import);
    store_entry(entry, &import);
  }
  else store_ours(pe, what, plan, section, entry);
  for (size_t i = 0; i < plan->n_imports; i++) {
    if (i == plan->ours || pe_import(pe, i, &import) != PE_FOUND) continue;
    entry += PE_IMPORT_SIZE;
    store_entry(entry, &import);
  }
}

static void store_section_header(const pe_t* pe, const plan_t* plan, uint8_t* to) {
  uint8_t* header = to + pe_section(pe, pe->n_sections);
  memset(header, 0, PE_SECTION_SIZE);
  memcpy(header, section_name, 8);
  store_u32(header + PE_SECTION_VIRTUAL_SIZE, (uint32_t)plan->section_size);
  store_u32(header + PE_SECTION_ADDRESS, plan->address);
  store_u32(header + PE_SECTION_RAW_SIZE, (uint32_t)(plan->new_end - plan->new_raw));
  store_u32(header + PE_SECTION_RAW, (uint32_t)plan->new_raw);
  // Writable: the loader stores the addresses of our import there.
  store_u32(header + PE_SECTION_FLAGS, SECTION_IS_DATA | SECTION_CAN_READ | SECTION_CAN_WRITE);
}

// ---- what else changes ------------------------------------------------------------------------------------------------------

static void store_directory(const pe_t* pe, uint8_t* to, size_t i, uint32_t address, uint32_t size) {
  if (i >= pe->n_directories) return;
  store_u32(to + pe->directories + i * 8, address);
  store_u32(to + pe->directories + i * 8 + 4, size);
}

static void store_headers(const pe_t* pe, const plan_t* plan, uint8_t* to) {
  uint8_t*       optional = to + pe->optional;
  const uint32_t alignment = pe_optional_u32(pe, PE_OPTIONAL_SECTION_ALIGNMENT);
  const uint32_t data = pe_optional_u32(pe, PE_OPTIONAL_INITIALIZED_SIZE);
  store_u16(to + pe->coff + PE_COFF_SECTIONS, (uint16_t)(pe->n_sections + 1));
  store_u32(optional + PE_OPTIONAL_INITIALIZED_SIZE, data + (uint32_t)(plan->new_end - plan->new_raw));
  store_u32(optional + PE_OPTIONAL_IMAGE_SIZE, (uint32_t)round_up(plan->address + plan->section_size, alignment));
  if (plan->headers_end > pe_optional_u32(pe, PE_OPTIONAL_HEADERS_SIZE))
    store_u32(optional + PE_OPTIONAL_HEADERS_SIZE, (uint32_t)round_up(plan->headers_end, 512));
  const uint16_t flags = pe_u16(pe, pe->optional + PE_OPTIONAL_DLL_FLAGS);
  store_u16(optional + PE_OPTIONAL_DLL_FLAGS, (uint16_t)(flags & ~PE_DLL_FLAG_FORCE_INTEGRITY));
  store_directory(pe, to, PE_DIRECTORY_IMPORT, plan->address + MARK_SIZE,
                  (uint32_t)(plan->n_imports + 2) * PE_IMPORT_SIZE);
  store_directory(pe, to, PE_DIRECTORY_BOUND_IMPORT, 0, 0);
  store_directory(pe, to, PE_DIRECTORY_CERTIFICATES, 0, 0);
}

// Where the header does not say which addresses the loader fills, it makes the section of the table of imports writable; that
// is not theirs any more.
static void make_addresses_writable(pe_t* pe, const plan_t* plan, uint8_t* to) {
  uint32_t size;
  if (pe_directory(pe, PE_DIRECTORY_ADDRESSES, &size) != 0 && size != 0) return;
  pe_import_t import;
  for (size_t i = 0; i < plan->n_imports && pe_import(pe, i, &import) == PE_FOUND; i++) {
    const uint8_t* p = import.descriptor + PE_IMPORT_ADDRESSES;
    const size_t   section =
        pe_find_section(pe, p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
    if (section == pe->n_sections) continue;
    const size_t flags = pe_section(pe, section) + PE_SECTION_FLAGS;
    store_u32(to + flags, pe_u32(pe, flags) | SECTION_CAN_WRITE);
  }
}

// A place in the file that the headers name: what is behind the sections moves.
static void move_place(const pe_t* pe, const plan_t* plan, size_t field, uint8_t* to_field) {
  const size_t place = pe_u32(pe, field);
  if (place >= plan->raw_end && place <= plan->overlay_end)
    store_u32(to_field, (uint32_t)(place + (plan->new_end - plan->raw_end)));
}

static void move_places(const pe_t* pe, const plan_t* plan, uint8_t* to) {
  enum { DEBUG_SIZE = 28, DEBUG_RAW = 24 };
  move_place(pe, plan, pe->coff + PE_COFF_SYMBOLS, to + pe->coff + PE_COFF_SYMBOLS);
  for (size_t i = 0; i < pe->n_sections; i++) {
    const size_t header = pe_section(pe, i);
    move_place(pe, plan, header + PE_SECTION_RELOCATIONS, to + header + PE_SECTION_RELOCATIONS);
    move_place(pe, plan, header + PE_SECTION_LINES, to + header + PE_SECTION_LINES);
  }
  uint32_t       size;
  const uint32_t debug = pe_directory(pe, PE_DIRECTORY_DEBUG, &size);
  const size_t   section = pe_find_section(pe, debug);
  if (debug == 0 || section == pe->n_sections) return;
  const size_t header = pe_section(pe, section);
  const size_t distance = debug - pe_u32(pe, header + PE_SECTION_ADDRESS), raw = pe_u32(pe, header + PE_SECTION_RAW);
  const size_t raw_size = pe_u32(pe, header + PE_SECTION_RAW_SIZE);
  for (size_t at = distance; raw != 0 && at - distance + DEBUG_SIZE <= size && at + DEBUG_SIZE <= raw_size;
       at += DEBUG_SIZE) {
    move_place(pe, plan, raw + at + DEBUG_RAW, to + raw + at + DEBUG_RAW);
  }
}

// The sum of all 16-bit words with the carry added again, and the size.
static void store_checksum(const pe_t* pe, uint8_t* bytes, size_t size) {
  const size_t at = pe->optional + PE_OPTIONAL_CHECKSUM;
  store_u32(bytes + at, 0);
  uint32_t sum = 0;
  for (size_t i = 0; i < size; i += 2) {
    sum += bytes[i] | (i + 1 < size ? (uint32_t)bytes[i + 1] << 8 : 0);
    sum = (sum & 0xffff) + (sum >> 16);
  }
  store_u32(bytes + at, sum + (uint32_t)size);
}

bool inject(pe_t* pe, const inject_t* what, injected_t* to) {
  plan_t plan = {0};
  if (!check_kind(pe, what->force) || !check_alignment(pe) || !check_sections(pe, &plan) || !check_room(pe, &plan) ||
      !check_imports(pe, what->library, &plan) || !check_overlay(pe, &plan) || !plan_section(pe, what, &plan))
    return false;
  uint32_t size;
  to->was_signed = pe_directory(pe, PE_DIRECTORY_CERTIFICATES, &size) != 0;
  to->was_bound = pe_directory(pe, PE_DIRECTORY_BOUND_IMPORT, &size) != 0;
  to->was_there = plan.ours < plan.n_imports;
  to->overlay_size = plan.overlay_end - plan.raw_end;
  to->size = plan.new_end + to->overlay_size;
  to->bytes = (uint8_t*)calloc(1, to->size);
  if (to->bytes == NULL) return pe_fail(pe, "out of memory");
  memcpy(to->bytes, pe->bytes, plan.raw_end);
  memcpy(to->bytes + plan.new_end, pe->bytes + plan.raw_end, to->overlay_size);
  store_section(pe, what, &plan, to->bytes + plan.new_raw);
  store_section_header(pe, &plan, to->bytes);
  store_headers(pe, &plan, to->bytes);
  make_addresses_writable(pe, &plan, to->bytes);
  move_places(pe, &plan, to->bytes);
  store_checksum(pe, to->bytes, to->size);
  return true;
}
