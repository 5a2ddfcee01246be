// Constructors of all priorities, in the order of their levels, from 0 to 5.  To be included behind at_level(level), which each of
// them calls.
#pragma once

__attribute__((constructor(101))) static void at_101(void) {
  at_level(0);
}
__attribute__((constructor(102))) static void at_102(void) {
  at_level(1);
}
__attribute__((constructor(200))) static void at_200(void) {
  at_level(2);
}
__attribute__((constructor(1000))) static void at_1000(void) {
  at_level(3);
}
__attribute__((constructor(65535))) static void at_65535(void) {
  at_level(4);
}
__attribute__((constructor)) static void at_last(void) {
  at_level(5);
}
