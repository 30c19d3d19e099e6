/* A libfabric that has a version, and nothing else. */
#include <errno.h>
#include <rdma/fabric.h>

uint32_t fi_version(void) {
  return FI_VERSION(FAKE_MAJOR, FAKE_MINOR);
}

int fi_getinfo(uint32_t version, const char* node, const char* service, uint64_t flags,
               const struct fi_info* hints, struct fi_info** info) {
  (void)version, (void)node, (void)service, (void)flags, (void)hints, (void)info;
  return -ENOSYS;
}

struct fi_info* fi_dupinfo(const struct fi_info* info) {
  (void)info;
  return NULL;
}

void fi_freeinfo(struct fi_info* info) {
  (void)info;
}

#ifndef FAKE_LACKS_FABRIC
int fi_fabric(struct fi_fabric_attr* attributes, struct fid_fabric** fabric, void* context) {
  (void)attributes, (void)fabric, (void)context;
  return -ENOSYS;
}
#endif

const char* fi_strerror(int code) {
  (void)code;
  return "a fake's error";
}
