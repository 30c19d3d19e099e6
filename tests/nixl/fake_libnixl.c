/* Stands for libnixl.so: an address within it tells where it lies. */
void an_address(void);
void an_address(void) {}
