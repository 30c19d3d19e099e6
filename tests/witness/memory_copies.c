// Preloaded into a program: counts the bytes that memcpy and memmove copy, in whatever library, and
// at the end writes their sum to the file that WITNESS_COPIES names. Small copies are left out:
// they are heads and entries of queues, not payload.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef void* Copy(void*, const void*, size_t);

static const size_t smallest = 1024;
static atomic_ullong bytes;
static _Atomic(Copy*) move_memory;

// Before the program's own is found, as looking for it copies too.
static void* copy_slowly(void* to, const void* from, size_t length) {
  volatile unsigned char* out = to;
  const volatile unsigned char* in = from;
  const int backwards = out > in;
  for (size_t i = 0; i < length; ++i) {
    const size_t at = backwards ? length - 1 - i : i;
    out[at] = in[at];
  }
  return to;
}

static void* copy(void* to, const void* from, size_t length) {
  if (length >= smallest) atomic_fetch_add_explicit(&bytes, length, memory_order_relaxed);
  Copy* const found = atomic_load_explicit(&move_memory, memory_order_relaxed);
  return found != NULL ? found(to, from, length) : copy_slowly(to, from, length);
}

void* memcpy(void* to, const void* from, size_t length) {
  return copy(to, from, length);
}

void* memmove(void* to, const void* from, size_t length) {
  return copy(to, from, length);
}

void* __memcpy_chk(void* to, const void* from, size_t length, size_t room) {
  if (length > room) abort();
  return copy(to, from, length);
}

void* __memmove_chk(void* to, const void* from, size_t length, size_t room) {
  if (length > room) abort();
  return copy(to, from, length);
}

__attribute__((constructor)) static void begin(void) {
  atomic_store(&move_memory, (Copy*)dlsym(RTLD_NEXT, "memmove"));
}

__attribute__((destructor)) static void tell(void) {
  const char* name = getenv("WITNESS_COPIES");
  FILE* file = name != NULL ? fopen(name, "w") : NULL;
  if (file == NULL) return;
  fprintf(file, "%llu\n", (unsigned long long)atomic_load(&bytes));
  fclose(file);
}
