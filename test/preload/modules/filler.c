// A library for test-dlopen that takes 8 bytes of the space for thread-local variables that must be there from the start.
void* filler_variable(void);

static _Thread_local long long filler __attribute__((tls_model("initial-exec")));

void* filler_variable(void) {
  return &filler;
}
