// The table of size classes.  Layer: page.
#include "size_class.h"

#include "../base/assert.h"

// clang-format off
// Blocks up to 8 KiB lie in pages of 64 KiB, up to 64 KiB in 512 KiB, up to 512 KiB in 4 MiB.
const mi_class_info_t _mi_class_info[MI_CLASS_COUNT] = {
// block size   a page    outbox  room  claim
//           blocks slices
  {     8, 8192,  1, 32, 64, 512},

  {    16, 4096,  1, 32, 64, 256},
  {    32, 2048,  1, 32, 64, 128},
  {    48, 1365,  1, 32, 64,  85},
  {    64, 1024,  1, 32, 64,  64},
  {    80,  819,  1, 32, 64,  51},
  {    96,  682,  1, 32, 64,  42},
  {   112,  585,  1, 32, 64,  36},
  {   128,  512,  1, 32, 64,  32},
  {   144,  455,  1, 28, 64,  28},
  {   160,  409,  1, 25, 64,  25},
  {   176,  372,  1, 23, 64,  23},
  {   192,  341,  1, 21, 64,  21},
  {   208,  315,  1, 19, 64,  19},
  {   224,  292,  1, 18, 64,  18},
  {   240,  273,  1, 17, 64,  17},
  {   256,  256,  1, 16, 64,  16},

  {   288,  227,  1, 14, 56,  14},
  {   320,  204,  1, 12, 51,  12},
  {   352,  186,  1, 11, 46,  11},
  {   384,  170,  1, 10, 42,  10},
  {   416,  157,  1,  9, 39,   9},
  {   448,  146,  1,  9, 36,   9},
  {   480,  136,  1,  8, 34,   8},
  {   512,  128,  1,  8, 32,   8},

  {   576,  113,  1,  7, 28,   7},
  {   640,  102,  1,  6, 25,   6},
  {   704,   93,  1,  5, 23,   5},
  {   768,   85,  1,  5, 21,   5},
  {   832,   78,  1,  4, 19,   4},
  {   896,   73,  1,  4, 18,   4},
  {   960,   68,  1,  4, 17,   4},
  {  1024,   64,  1,  4, 16,   4},

  {  1152,   56,  1,  3, 14,   3},
  {  1280,   51,  1,  3, 12,   3},
  {  1408,   46,  1,  2, 11,   2},
  {  1536,   42,  1,  2, 10,   2},
  {  1664,   39,  1,  2,  9,   2},
  {  1792,   36,  1,  2,  9,   2},
  {  1920,   34,  1,  2,  8,   2},
  {  2048,   32,  1,  2,  8,   2},

  {  2304,   28,  1,  1,  7,   1},
  {  2560,   25,  1,  1,  6,   1},
  {  2816,   23,  1,  1,  5,   1},
  {  3072,   21,  1,  1,  5,   1},
  {  3328,   19,  1,  1,  4,   1},
  {  3584,   18,  1,  1,  4,   1},
  {  3840,   17,  1,  1,  4,   1},
  {  4096,   16,  1,  1,  4,   1},

  {  5376,   12,  1,  1,  3,   1},
  {  6528,   10,  1,  1,  2,   1},
  {  7168,    9,  1,  1,  2,   1},
  {  8192,    8,  1,  1,  2,   1},

  { 10240,   51,  8,  1,  1,   3},
  { 12480,   42,  8,  1,  1,   2},
  { 14464,   36,  8,  1,  1,   2},
  { 16384,   32,  8,  1,  1,   2},

  { 20864,   25,  8,  1,  1,   1},
  { 24960,   21,  8,  1,  1,   1},
  { 29056,   18,  8,  1,  1,   1},
  { 32768,   16,  8,  1,  1,   1},

  { 43648,   12,  8,  1,  1,   1},
  { 52416,   10,  8,  1,  1,   1},
  { 58240,    9,  8,  1,  1,   1},
  { 65536,    8,  8,  1,  1,   1},

  { 81920,   51, 64,  1,  1,   3},
  { 98304,   42, 64,  1,  1,   2},
  {114688,   36, 64,  1,  1,   2},
  {131072,   32, 64,  1,  1,   2},

  {163840,   25, 64,  1,  1,   1},
  {196608,   21, 64,  1,  1,   1},
  {229376,   18, 64,  1,  1,   1},
  {262144,   16, 64,  1,  1,   1},

  {348160,   12, 64,  1,  1,   1},
  {417792,   10, 64,  1,  1,   1},
  {462848,    9, 64,  1,  1,   1},
  {524288,    8, 64,  1,  1,   1},
};
// clang-format on

uint16_t _mi_bin_offset_small[MI_SMALL_MAX + 1];
uint16_t _mi_bin_offset_medium[MI_MEDIUM_MAX / 128];

// Index of the first class with block size >= size, searching upwards from class `from`.
static size_t size_class_from(size_t from, size_t size) {
  while (_mi_class_info[from].block_size < size) from++;
  return from;
}

void _mi_size_class_init(void) {
  size_t cls = 0;
  for (size_t size = 0; size <= MI_SMALL_MAX; size++) {
    cls = size_class_from(cls, size);
    _mi_bin_offset_small[size] = (uint16_t)(cls << MI_BIN_SHIFT);
  }
  for (size_t i = MI_SMALL_MAX / 128; i < MI_MEDIUM_MAX / 128; i++) {
    cls = size_class_from(cls, (i + 1) * 128);
    _mi_bin_offset_medium[i] = (uint16_t)(cls << MI_BIN_SHIFT);
  }
}

size_t _mi_size_class_of(size_t size) {
  mi_assert_internal(size <= MI_CLASS_SIZE_MAX);
  return size <= 4 * MI_KiB ? size_class_from(0, size) : _mi_size_class_of_big(size);
}

size_t _mi_size_class_aligned(size_t size, size_t align) {
  size = mi_max(size, align);
  if (size > MI_CLASS_SIZE_MAX) return MI_CLASS_NONE;
  for (size_t cls = _mi_size_class_of(size); cls < MI_CLASS_COUNT; cls++) {
    if ((_mi_class_info[cls].block_size & (align - 1)) == 0) return cls;
  }
  return MI_CLASS_NONE;
}
