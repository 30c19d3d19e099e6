/* The header by itself is C11 and, compiled as C++, C++11: built with all warnings as errors. */
#include <weft/weft.h>

int main(void) {
  weft_config config;
  weft_config_init(&config, sizeof config);
  return config.size == sizeof config && weft_version() != NULL ? 0 : 1;
}
