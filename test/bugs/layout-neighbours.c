// Does the next block of a size follow on the last one?
#include "bug.h"

#define N 64

int main(void) {
  int       n_following = 0;
  uintptr_t last = (uintptr_t)malloc(64);
  for (int i = 0; i < N; i++) {
    uintptr_t next = (uintptr_t)malloc(64);
    n_following += ((next > last ? next - last : last - next) <= 128);
    last = next;
  }
  return n_following > N / 2 ? undetected() : prevented(true);
}
