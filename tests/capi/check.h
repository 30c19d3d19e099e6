/* What the C API's tests share: checks, a pattern that depends on the position, short names. */
#ifndef WEFT_TESTS_CAPI_CHECK_H
#define WEFT_TESTS_CAPI_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

/* Ends the test: what follows would build on something that is not there. */
#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

/* The call succeeds; otherwise its error is printed. The call names &error as its last argument. */
#define OK(call)                                                                               \
  do {                                                                                         \
    weft_error* error = NULL;                                                                  \
    if ((call) != WEFT_OK) {                                                                   \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, weft_error_string(error)); \
      exit(1);                                                                                 \
    }                                                                                          \
    CHECK(error == NULL);                                                                      \
  } while (0)

/* The call fails with that code, and its error tells more. */
#define REFUSED(code, call)                                                                      \
  do {                                                                                           \
    weft_error* error = NULL;                                                                    \
    const weft_code got = (call);                                                                \
    if (got != (code)) {                                                                         \
      fprintf(stderr, "%s:%d: %s gives %s and not %s: %s\n", __FILE__, __LINE__, #call,          \
              weft_code_name(got), weft_code_name(code), error ? weft_error_string(error) : ""); \
      exit(1);                                                                                   \
    }                                                                                            \
    CHECK(error != NULL && weft_error_code(error) == got);                                       \
    CHECK(strlen(weft_error_message(error)) > 0);                                                \
    CHECK(strstr(weft_error_string(error), weft_error_message(error)) != NULL);                  \
    weft_error_free(error);                                                                      \
  } while (0)

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const int64_t patience = INT64_C(20000000000);

static inline unsigned char pattern(uint64_t position, uint64_t seed) {
  uint64_t x = position * UINT64_C(0x9e3779b97f4a7c15) + seed;
  x = (x ^ (x >> 31)) * UINT64_C(0xbf58476d1ce4e5b9);
  return (unsigned char)(x >> 56);
}

static inline void fill_pattern(unsigned char* data, size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes; ++i) data[i] = pattern(i, seed);
}

/* A configuration with one option set. */
static inline weft_config* config_with(const char* option, const char* text) {
  weft_config* config = NULL;
  OK(weft_config_create(&config, &error));
  OK(weft_config_set(config, option, text, &error));
  return config;
}

/* An engine with that one provider, listening on loopback. */
static inline weft_engine* open_engine(const char* provider, const char* transport,
                                       const char* progress) {
  weft_config* config = config_with("providers", provider);
  OK(weft_config_set(config, "transport", transport, &error));
  OK(weft_config_set(config, "progress", progress, &error));
  OK(weft_config_set(config, "peer_events", "true", &error));
  weft_engine* engine = NULL;
  OK(weft_engine_open(config, &engine, &error));
  weft_config_free(config);
  return engine;
}

#endif
