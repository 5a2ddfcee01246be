// The table of size classes.  Layer: page.
#include "size_class.h"

#include "../base/mode.h"

// clang-format off
const mi_class_info_t _mi_size_class_info[MI_CLASS_COUNT] = {
// block size  a page    outbox room   claim
//         blocks slices             own others
  {     8, 8192,  1, 32, 64, 256, 2048},

  {    16, 4096,  1, 32, 64, 128, 1024},
#if MI_MIN_ALIGN_8
  {    24, 2730,  1, 32, 64,  85,  682},
#endif
  {    32, 2048,  1, 32, 64,  64,  512},
#if MI_MIN_ALIGN_8
  {    40, 1638,  1, 32, 64,  51,  409},
#endif
  {    48, 1365,  1, 32, 64,  42,  341},
#if MI_MIN_ALIGN_8
  {    56, 1170,  1, 32, 64,  36,  292},
#endif
  {    64, 1024,  1, 32, 64,  32,  256},
  {    80,  819,  1, 32, 64,  25,  204},
  {    96,  682,  1, 32, 64,  21,  170},
  {   112,  585,  1, 32, 64,  18,  146},
  {   128,  512,  1, 32, 64,  16,  128},
  {   144,  455,  1, 28, 64,  14,  113},
  {   160,  409,  1, 25, 64,  12,  102},
  {   176,  372,  1, 23, 64,  11,   93},
  {   192,  341,  1, 21, 64,  10,   85},
  {   208,  315,  1, 19, 64,   9,   78},
  {   224,  292,  1, 18, 64,   9,   73},
  {   240,  273,  1, 17, 64,   8,   68},
  {   256,  256,  1, 16, 64,   8,   64},

  {   288,  227,  1, 14, 56,   7,   56},
  {   320,  204,  1, 12, 51,   6,   51},
  {   352,  186,  1, 11, 46,   5,   46},
  {   384,  170,  1, 10, 42,   5,   42},
  {   416,  157,  1,  9, 39,   4,   39},
  {   448,  146,  1,  9, 36,   4,   36},
  {   480,  136,  1,  8, 34,   4,   34},
  {   512,  128,  1,  8, 32,   4,   32},

  {   576,  113,  1,  7, 28,   3,   28},
  {   640,  102,  1,  6, 25,   3,   25},
  {   704,   93,  1,  5, 23,   2,   23},
  {   768,   85,  1,  5, 21,   2,   21},
  {   832,   78,  1,  4, 19,   2,   19},
  {   896,   73,  1,  4, 18,   2,   18},
  {   960,   68,  1,  4, 17,   2,   17},
  {  1024,   64,  1,  4, 16,   2,   16},

  {  1152,   56,  1,  3, 14,   4,    8},
  {  1280,   51,  1,  3, 12,   4,    8},
  {  1408,   46,  1,  2, 11,   4,    8},
  {  1536,   42,  1,  2, 10,   4,    8},
  {  1664,   39,  1,  2,  9,   4,    8},
  {  1792,   36,  1,  2,  9,   4,    8},
  {  1920,   34,  1,  2,  8,   4,    8},
  {  2048,   32,  1,  2,  8,   4,    8},

  {  2304,   28,  1,  1,  7,   4,    8},
  {  2560,   25,  1,  1,  6,   4,    8},
  {  2816,   23,  1,  1,  5,   4,    8},
  {  3072,   21,  1,  1,  5,   4,    7},
  {  3328,   19,  1,  1,  4,   4,    7},
  {  3584,   18,  1,  1,  4,   4,    6},
  {  3840,   17,  1,  1,  4,   4,    6},
  {  4096,   16,  1,  1,  4,   4,    6},

  {  5376,   12,  1,  1,  3,   3,    4},
  {  6528,   10,  1,  1,  2,   3,    3},
  {  7168,    9,  1,  1,  2,   3,    3},
  {  8192,    8,  1,  1,  2,   2,    3},

  { 10880,   12,  2,  1,  1,   3,    4},
  { 13056,   10,  2,  1,  1,   3,    3},
  { 14464,    9,  2,  1,  1,   3,    3},
  { 16384,    8,  2,  1,  1,   2,    3},

  { 21760,    9,  3,  1,  1,   3,    3},
  { 24576,    8,  3,  1,  1,   2,    2},
  { 29056,    9,  4,  1,  1,   3,    3},
  { 32768,    8,  4,  1,  1,   2,    2},

  { 40960,    8,  5,  1,  1,   2,    2},
  { 49152,    8,  6,  1,  1,   2,    2},
  { 57344,    8,  7,  1,  1,   2,    2},
  { 65536,    8,  8,  1,  1,   2,    2},

  { 87296,    6,  8,  1,  1,   2,    2},
  {104832,    5,  8,  1,  1,   2,    2},
  {114688,    4,  7,  1,  1,   1,    1},
  {131072,    4,  8,  1,  1,   1,    1},

  {174720,    3,  8,  1,  1,   1,    1},
  {196608,    2,  6,  1,  1,   1,    1},
  {229376,    2,  7,  1,  1,   1,    1},
  {262144,    2,  8,  1,  1,   1,    1},

  {327680,    1,  5,  1,  1,   1,    1},
  {393216,    1,  6,  1,  1,   1,    1},
  {458752,    1,  7,  1,  1,   1,    1},
  {524288,    1,  8,  1,  1,   1,    1},
};
// Classes are counted here as without MI_MIN_ALIGN_8: 16 bytes is 1, 32 is 2, 48 is 3, ...  With it there is one of 24, 40
// and 56 below 32, 48 and 64, for the first eight of their sixteen sizes.
#define CLASS(cls) ((cls) + MI_MIN_ALIGN_8 * (((cls) >= 2) + ((cls) >= 3) + ((cls) >= 4)))
#define R1(cls)  CLASS(cls) << MI_BIN_SHIFT,
#define B1(cls)  (CLASS(cls) - MI_MIN_ALIGN_8) << MI_BIN_SHIFT,
#define H16(cls) B1(cls) B1(cls) B1(cls) B1(cls) B1(cls) B1(cls) B1(cls) B1(cls) R8(cls)
#define R2(cls)  R1(cls) R1(cls)
#define R4(cls)  R2(cls) R2(cls)
#define R8(cls)  R4(cls) R4(cls)
#define R16(cls) R8(cls) R8(cls)
#define R32(cls) R16(cls) R16(cls)
#define R64(cls) R32(cls) R32(cls)

// Sizes 0 to 1024.  With padding the smallest block has 16 bytes (padding.h, D3).
const uint16_t _mi_size_class_small[] = {
  R8(MI_PADDING) R1(MI_PADDING) R8(1) H16(2) H16(3) H16(4) R16(5) R16(6) R16(7) R16(8) R16(9) R16(10) R16(11) R16(12) R16(13) R16(14)
  R16(15) R16(16) R32(17) R32(18) R32(19) R32(20) R32(21) R32(22) R32(23) R32(24) R64(25) R64(26) R64(27) R64(28)
  R64(29) R64(30) R64(31) R64(32)
};

// Sizes 1 to 128, 129 to 256, ...; the first eight entries, up to 1024, are not used.
const uint16_t _mi_size_class_medium[] = {
  R8(0) R1(33) R1(34) R1(35) R1(36) R1(37) R1(38) R1(39) R1(40) R2(41) R2(42) R2(43) R2(44) R2(45) R2(46) R2(47) R2(48)
  R8(49) R2(49) R8(50) R1(50) R4(51) R1(51) R8(52) R16(53) R4(53) R1(53) R16(54) R1(54) R8(55) R2(55) R1(55) R8(56)
  R4(56) R2(56) R1(56) R32(57) R8(57) R2(57) R16(58) R4(58) R2(58) R32(59) R2(59) R1(59) R16(60) R8(60) R4(60) R1(60)
};
#undef CLASS
#undef B1
#undef H16
#undef R1
#undef R2
#undef R4
#undef R8
#undef R16
#undef R32
#undef R64
// clang-format on

mi_static_assert(sizeof(_mi_size_class_small) == (MI_SMALL_MAX + 1) * sizeof(uint16_t), "an entry for each size");
mi_static_assert(sizeof(_mi_size_class_medium) == MI_MEDIUM_MAX / 128 * sizeof(uint16_t), "an entry for 128 bytes");

mi_static_assert(MI_CLASS_COUNT - MI_CLASS_WIDE <= 32, "a bit for each wide class");

size_t _mi_size_class_aligned_from(size_t cls, size_t align) {
  while (cls < MI_CLASS_COUNT && (_mi_size_class_info[cls].block_size & (align - 1)) != 0) cls++;
  return cls < MI_CLASS_COUNT ? cls : MI_CLASS_NONE;
}
