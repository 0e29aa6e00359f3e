/* Proves that bytes come back; see prove.h. */
#include "prove.h"

#include <string.h>

#include "io/nodes/deflate/deflate.h"

enum tsr_status tsr_prove_parts(const struct tsr_node *node, const struct tsr_node_work *work,
                                const struct tsr_node_parts *parts, const uint8_t *bytes, size_t size,
                                struct tsr_bytes *again, struct tsr_error *error)
{
    struct tsr_bytes own = {0}, *const made = again ? again : &own;
    struct tsr_node_work whole = *work;
    whole.whole = size;
    made->size = 0;
    made->limit = size;
    enum tsr_status status = node->join(&whole, parts, made, error);
    if (status != TSR_ERROR_LIMIT && (status != TSR_OK || made->size != size || memcmp(made->bytes, bytes, size) != 0))
        status = tsr_fail(error, TSR_DECLINED, "it would not come back as it is");
    tsr_bytes_free(&own);
    return status;
}

static enum tsr_status split_and_join(const struct tsr_node *node, const struct tsr_node_work *work,
                                      const uint8_t *bytes, size_t size, size_t *used, struct tsr_bytes *plain,
                                      struct tsr_bytes *residue, struct tsr_error *error)
{
    const size_t plain_before = plain->size, residue_before = residue->size;
    struct tsr_error damage = {.offset = TSR_NO_OFFSET};
    const enum tsr_status status = node->split(work, bytes, size, used, plain, residue, &damage);
    if (error) *error = damage;
    if (status == TSR_ERROR_CORRUPT) return tsr_decline(error);
    TSR_TRY(status);
    if (work->guessed && *work->guessed && damage.offset == TSR_NO_OFFSET) return TSR_OK;
    const struct tsr_node_parts parts = {plain->bytes ? plain->bytes + plain_before : (const uint8_t *)"",
                                         residue->bytes ? residue->bytes + residue_before : (const uint8_t *)"",
                                         plain->size - plain_before, residue->size - residue_before};
    const enum tsr_status proof = tsr_prove_parts(node, work, &parts, bytes, *used, NULL, error);
    if (proof != TSR_DECLINED || damage.offset == TSR_NO_OFFSET) return proof;
    if (error) *error = damage; /* is why it does not come back */
    return tsr_decline(error);
}

enum tsr_status tsr_prove(const struct tsr_node *node, const struct tsr_node_work *work, const uint8_t *bytes,
                          size_t size, size_t *used, struct tsr_bytes *plain, struct tsr_bytes *residue,
                          struct tsr_error *error)
{
    struct deflate_coder *coder = NULL;
    struct tsr_node_work own = *work;
    bool guessed = false;
    if (!own.kept) own.kept = &coder;
    if (own.guessed) own.guessed = &guessed; /* by this node */
    const enum tsr_status status = split_and_join(node, &own, bytes, size, used, plain, residue, error);
    if (guessed) *work->guessed = true;
    tsr_deflate_forget(coder);
    return status;
}
