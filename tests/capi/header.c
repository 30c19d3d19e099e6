/* The header by itself is C11 and, compiled as C++, C++11: built with all warnings as errors. */
#include <weft/weft.h>

int main(void) {
  weft_option option;
  option.size = sizeof option;
  return weft_option_info(0, &option, NULL) == WEFT_OK && weft_version() != NULL ? 0 : 1;
}
