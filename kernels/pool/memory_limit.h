/* How much memory this process may take. */
#ifndef TSR_KERNELS_POOL_MEMORY_LIMIT_H
#define TSR_KERNELS_POOL_MEMORY_LIMIT_H

#include "app/tessera.h" /* tsr_available_memory */

/* The least memory limit, in bytes, of the cgroups that the file membership names ("/proc/self/cgroup"). mount is the
 * folder of all cgroups ("/sys/fs/cgroup"). Returns UINT64_MAX if they set no limit. */
uint64_t tsr_cgroup_memory(const char *membership, const char *mount);

#endif
