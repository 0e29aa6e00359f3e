/* Hashes by libxxhash, which uses the widest vectors of the processor. */
#define XXH_STATIC_LINKING_ONLY /* for the size of the state */
#include <xxhash.h>
#if TSR_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>
#endif

#include "checksum.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(XXH3_state_t) <= sizeof(struct tsr_hasher), "a hasher must hold xxHash's state");
static_assert(_Alignof(struct tsr_hasher) >= 64, "xxHash's state is aligned to 64 bytes");

bool tsr_hash128_equal(const struct tsr_hash128 *a, const struct tsr_hash128 *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* The 64-bit and the 128-bit hash have the same state. */
void tsr_hasher_init(struct tsr_hasher *hasher)
{
    memset(hasher, 0, sizeof *hasher);
    XXH3_128bits_reset((XXH3_state_t *)hasher->state);
}

void tsr_hasher_add(struct tsr_hasher *hasher, const void *bytes, size_t size)
{
    if (size > 0) XXH3_128bits_update((XXH3_state_t *)hasher->state, bytes, size);
}

uint64_t tsr_hasher_result64(const struct tsr_hasher *hasher)
{
    return XXH3_64bits_digest((const XXH3_state_t *)hasher->state);
}

static struct tsr_hash128 canonical(XXH128_hash_t hash)
{
    struct tsr_hash128 result;
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, hash);
    memcpy(result.bytes, bytes.digest, sizeof result.bytes);
    return result;
}

struct tsr_hash128 tsr_hasher_result128(const struct tsr_hasher *hasher)
{
    return canonical(XXH3_128bits_digest((const XXH3_state_t *)hasher->state));
}

struct tsr_hash128 tsr_hash128_of(const void *bytes, size_t size)
{
    return canonical(XXH3_128bits(bytes, size));
}

uint64_t tsr_hash64_of(const void *bytes, size_t size)
{
    return XXH3_64bits(bytes, size);
}
