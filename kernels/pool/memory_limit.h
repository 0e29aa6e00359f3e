/* How much memory this process may take. */
#ifndef TSR_KERNELS_POOL_MEMORY_LIMIT_H
#define TSR_KERNELS_POOL_MEMORY_LIMIT_H

#include "app/tessera.h" /* tsr_available_memory */

/* What the cgroups named by the file membership ("/proc/self/cgroup") allow, below the folder mount ("/sys/fs/cgroup");
 * UINT64_MAX where they set no limit. */
uint64_t tsr_cgroup_memory(const char *membership, const char *mount);

#endif
