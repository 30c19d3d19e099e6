/* A program in C against the installed library: the header is C11 and the library links. */
#include <weft/weft.h>

int main(void) {
  return 0;
}
