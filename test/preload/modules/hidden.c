// A library for test-deepbind, in a directory where only the search path of caller.c looks.
int hidden_answer(void);

int hidden_answer(void) {
  return 42;
}
