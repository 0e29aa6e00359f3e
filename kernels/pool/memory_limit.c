/* The limits that cgroups set to memory (cgroups(7)). */
#include "memory_limit.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number in a file. Returns UINT64_MAX if the file has no number ("max") or cannot be read. */
static uint64_t read_limit(const char *path)
{
    uint64_t value = UINT64_MAX;
    FILE *file = fopen(path, "r");
    if (!file) return UINT64_MAX;
    if (fscanf(file, "%" SCNu64, &value) != 1) value = UINT64_MAX;
    fclose(file);
    return value;
}

/* The least limit of a cgroup and of all its ancestors. In a container the group's path may not exist below the mount:
 * then only the limit of the mount itself counts. */
static uint64_t least_limit(const char *mount, const char *controller, char *group, const char *name)
{
    uint64_t least = UINT64_MAX;
    for (;;) {
        char path[4400];
        const int length = snprintf(path, sizeof path, "%s%s%s/%s", mount, controller, group, name);
        const uint64_t limit = length < (int)sizeof path ? read_limit(path) : UINT64_MAX;
        if (limit < least) least = limit;
        char *const slash = strrchr(group, '/');
        if (!slash) return least;
        *slash = '\0';
    }
}

static bool is_of_memory(const char *controllers)
{
    for (const char *at = controllers; (at = strstr(at, "memory")); at++)
        if ((at == controllers || at[-1] == ',') && (at[6] == '\0' || at[6] == ',')) return true;
    return false;
}

uint64_t tsr_cgroup_memory(const char *membership, const char *mount)
{
    char line[4200];
    uint64_t least = UINT64_MAX;
    FILE *file = fopen(membership, "r");
    while (file && fgets(line, sizeof line, file)) { /* "0::/path" (v2), "4:memory:/path" (v1) */
        line[strcspn(line, "\n")] = '\0';
        char *const controllers = strchr(line, ':');
        char *const group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group = '\0';
        uint64_t limit = UINT64_MAX;
        if (controllers[1] == '\0')
            limit = least_limit(mount, "", group + 1, "memory.max");
        else if (is_of_memory(controllers + 1))
            limit = least_limit(mount, "/memory", group + 1, "memory.limit_in_bytes");
        if (limit < least) least = limit;
    }
    if (file) fclose(file);
    return least;
}

uint64_t tsr_available_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t available = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
    const uint64_t cgroup = tsr_cgroup_memory("/proc/self/cgroup", "/sys/fs/cgroup");
    struct rlimit space;
    if (cgroup < available) available = cgroup;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY && space.rlim_cur < available)
        available = space.rlim_cur;
    return available;
}
