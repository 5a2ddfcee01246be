// Reading images in memory.  Layer: override.
#include "windows_pe.h"

#include <string.h>
#include <windows.h>

// The part of the image at an offset, NULL if it does not have that many bytes.
static const void* pe_at(const mi_windows_image_t* image, size_t offset, size_t n) {
  return offset != 0 && offset <= image->size && n <= image->size - offset ? image->base + offset : NULL;
}

static const IMAGE_NT_HEADERS* pe_headers(const void* base) {
  const IMAGE_DOS_HEADER* dos = (const IMAGE_DOS_HEADER*)base;
  if (dos->e_magic != IMAGE_DOS_SIGNATURE || dos->e_lfanew <= 0 || dos->e_lfanew > 4096) return NULL;
  const IMAGE_NT_HEADERS* nt = (const IMAGE_NT_HEADERS*)((const char*)base + dos->e_lfanew);
  return nt->Signature == IMAGE_NT_SIGNATURE && nt->OptionalHeader.Magic == IMAGE_NT_OPTIONAL_HDR_MAGIC ? nt : NULL;
}

bool _mi_windows_pe_open(mi_windows_image_t* image, const void* base) {
  const IMAGE_NT_HEADERS* nt = (base == NULL ? NULL : pe_headers(base));
  if (nt == NULL) return false;
  image->base = (const unsigned char*)base;
  image->size = nt->OptionalHeader.SizeOfImage;
  return true;
}

static IMAGE_DATA_DIRECTORY pe_directory(const mi_windows_image_t* image, size_t i) {
  const IMAGE_DATA_DIRECTORY none = {0, 0};
  const IMAGE_NT_HEADERS*    nt = pe_headers(image->base);
  return i < nt->OptionalHeader.NumberOfRvaAndSizes ? nt->OptionalHeader.DataDirectory[i] : none;
}

// ---- exports ----------------------------------------------------------------------------------------------------------

static bool pe_is_named(const mi_windows_image_t* image, size_t offset, const char* name) {
  size_t      n = strlen(name) + 1;
  const void* text = pe_at(image, offset, n);
  return text != NULL && memcmp(text, name, n) == 0;
}

void* _mi_windows_pe_export(const mi_windows_image_t* image, const char* name) {
  IMAGE_DATA_DIRECTORY          where = pe_directory(image, IMAGE_DIRECTORY_ENTRY_EXPORT);
  const IMAGE_EXPORT_DIRECTORY* table =
      (const IMAGE_EXPORT_DIRECTORY*)pe_at(image, where.VirtualAddress, sizeof(*table));
  if (table == NULL) return NULL;
  size_t       n_names = table->NumberOfNames, n = table->NumberOfFunctions;
  const DWORD* names = (const DWORD*)pe_at(image, table->AddressOfNames, n_names * sizeof(DWORD));
  const WORD*  numbers = (const WORD*)pe_at(image, table->AddressOfNameOrdinals, n_names * sizeof(WORD));
  const DWORD* functions = (const DWORD*)pe_at(image, table->AddressOfFunctions, n * sizeof(DWORD));
  if (names == NULL || numbers == NULL || functions == NULL) return NULL;
  for (size_t i = 0; i < n_names; i++) {
    if (!pe_is_named(image, names[i], name) || numbers[i] >= n) continue;
    size_t offset = functions[numbers[i]];
    bool   is_elsewhere = (offset - where.VirtualAddress < where.Size); // what is there is the name of another image
    return is_elsewhere ? NULL : (void*)(uintptr_t)pe_at(image, offset, 1);
  }
  return NULL;
}

// ---- imports ----------------------------------------------------------------------------------------------------------

static void pe_slots(const mi_windows_image_t* image, size_t offset, mi_windows_visit_t visit, void* arg) {
  for (;; offset += sizeof(void*)) {
    void** slot = (void**)(uintptr_t)pe_at(image, offset, sizeof(void*));
    if (slot == NULL || *slot == NULL) return;
    visit(slot, arg);
  }
}

void _mi_windows_pe_imports(const mi_windows_image_t* image, mi_windows_visit_t visit, void* arg) {
  size_t offset = pe_directory(image, IMAGE_DIRECTORY_ENTRY_IMPORT).VirtualAddress;
  for (;; offset += sizeof(IMAGE_IMPORT_DESCRIPTOR)) {
    const IMAGE_IMPORT_DESCRIPTOR* from = (const IMAGE_IMPORT_DESCRIPTOR*)pe_at(image, offset, sizeof(*from));
    if (from == NULL || from->FirstThunk == 0) break;
    pe_slots(image, from->FirstThunk, visit, arg);
  }
  offset = pe_directory(image, IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT).VirtualAddress;
  for (;; offset += sizeof(IMAGE_DELAYLOAD_DESCRIPTOR)) {
    const IMAGE_DELAYLOAD_DESCRIPTOR* from = (const IMAGE_DELAYLOAD_DESCRIPTOR*)pe_at(image, offset, sizeof(*from));
    if (from == NULL || from->DllNameRVA == 0) break;
    if (from->Attributes.RvaBased) pe_slots(image, from->ImportAddressTableRVA, visit, arg);
  }
}
