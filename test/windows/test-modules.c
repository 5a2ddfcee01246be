// Proves: redirection leaves modules alone whose headers are not those of a module for this process: of another bitness, of
// another kind of file, cut off.
#include "../../src/override/windows_pe.c"

#include "../check.h"
#include "../modes/support.h"

static union {
  IMAGE_DOS_HEADER dos;
  char             bytes[8192];
} file;

static size_t n_slots;

static void count_slot(void** slot, void* arg) {
  (void)slot;
  (void)arg;
  n_slots++;
}

static size_t slots_of(const void* module) {
  mi_windows_image_t image;
  n_slots = 0;
  if (_mi_windows_pe_open(&image, module)) _mi_windows_pe_imports(&image, &count_slot, NULL);
  return n_slots;
}

// The headers of this program; *nt is where they lie.
static IMAGE_NT_HEADERS* take_headers(void) {
  const char* module = (const char*)GetModuleHandleW(NULL);
  memcpy(file.bytes, module, sizeof(file) < 4096 ? sizeof(file) : 4096);
  return (IMAGE_NT_HEADERS*)(file.bytes + file.dos.e_lfanew);
}

static void check_headers(void) {
  mi_windows_image_t image;
  IMAGE_NT_HEADERS*  nt = take_headers();
  CHECK(_mi_windows_pe_open(&image, file.bytes) && image.size == nt->OptionalHeader.SizeOfImage);
  CHECK_EQ(nt->OptionalHeader.Magic, sizeof(void*) == 8 ? 0x20B : 0x10B);
  nt->OptionalHeader.Magic = (sizeof(void*) == 8 ? 0x10B : 0x20B); // the other bitness
  CHECK(!_mi_windows_pe_open(&image, file.bytes) && slots_of(file.bytes) == 0);
  take_headers()->Signature = 0x454C; // "LE", of drivers of old
  CHECK(!_mi_windows_pe_open(&image, file.bytes));
  take_headers();
  file.dos.e_lfanew = 1 << 20;
  CHECK(!_mi_windows_pe_open(&image, file.bytes));
  file.dos.e_magic = 0x457F; // of another system
  CHECK(!_mi_windows_pe_open(&image, file.bytes) && !_mi_windows_pe_open(&image, NULL));
}

// Tables that end outside of the image.
static void check_tables(void) {
  IMAGE_NT_HEADERS* nt = take_headers();
  nt->OptionalHeader.SizeOfImage = 4096;
  nt->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT].VirtualAddress = 4096 - 8;
  CHECK_EQ(slots_of(file.bytes), 0);
  nt->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_EXPORT].VirtualAddress = 0xFFFFFFF0;
  mi_windows_image_t image;
  CHECK(_mi_windows_pe_open(&image, file.bytes) && _mi_windows_pe_export(&image, "malloc") == NULL);
  nt->OptionalHeader.NumberOfRvaAndSizes = 0;
  CHECK_EQ(slots_of(file.bytes), 0);
}

int main(void) {
  CHECK(slots_of(GetModuleHandleW(NULL)) > 0);
  check_headers();
  check_tables();
  return check_result();
}
