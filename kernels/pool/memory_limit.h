/* How much memory this process may take. */
#ifndef TSR_KERNELS_POOL_MEMORY_LIMIT_H
#define TSR_KERNELS_POOL_MEMORY_LIMIT_H

#include <stdint.h>

/* The machine's memory, or less where this process's cgroup (v1 or v2, or one above it) or its limit of address space
 * allows less, in bytes. */
uint64_t tsr_available_memory(void);

/* What the cgroups named by the file membership ("/proc/self/cgroup") allow, below the folder mount ("/sys/fs/cgroup");
 * UINT64_MAX where they set no limit. */
uint64_t tsr_cgroup_memory(const char *membership, const char *mount);

#endif
