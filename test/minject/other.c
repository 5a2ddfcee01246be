// A program with a library of its own, which minject must put its library before.
#include <stdio.h>

__declspec(dllimport) int other_function(void);

int main(void) {
  printf("main %d\n", other_function());
  return 5;
}
