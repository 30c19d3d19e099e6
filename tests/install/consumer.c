/* A program in C against the installed library: the header is C11, the library links and runs. */
#include <stdio.h>
#include <weft/weft.h>

int main(void) {
  const int64_t second = INT64_C(1000000000);
  weft_engine* engine = NULL;
  weft_error* error = NULL;
  if (weft_engine_open(NULL, &engine, &error) != WEFT_OK ||
      weft_engine_close(engine, 5 * second, &error) != WEFT_OK) {
    fprintf(stderr, "the installed libweft does not work: %s\n", weft_error_string(error));
    weft_error_free(error);
    weft_engine_free(engine);
    return 1;
  }
  weft_engine_free(engine);
  return 0;
}
