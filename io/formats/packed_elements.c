/* Packs DICOM files without streams by the model of elements: short ones as one piece, long ones in blocks.
 * PACKED.md.
 */
#include <stdlib.h>

#include "packed_archive.h"
#include "packed_file.h"
#include "io/bytes/zstd_contexts.h"
#include "io/nodes/elements/elements_blocks.h"

enum { LITTLE = 32 }; /* one byte of as many */

/* Codes a block as a try. TSR_DECLINED: it does not become smaller by an eighth. */
static enum tsr_status try_block(struct tsr_elements_block *block, struct tsr_error *error)
{
    const struct tsr_priced priced = tsr_priced_bytes(block->bytes, block->size);
    const uint64_t price = tsr_price(&priced, UINT64_MAX);
    if (price == 0) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress");
    block->code.limit = (size_t)(price - price / 8);
    const enum tsr_status status = tsr_elements_mix_block(block->bytes, block->size, block->form, &block->code, error);
    return status == TSR_ERROR_CORRUPT ? tsr_decline(error) : status;
}

/* The threads that help, each in memory that is spare. */
static void mix_blocks(struct tsr_packed_file *p, struct tsr_elements_block *block, unsigned count)
{
    unsigned threads = 1;
    while (p->crew.run && threads < count && tsr_input_take_spare(p->source->input, TSR_ELEMENTS_MEMORY)) threads++;
    tsr_elements_mix_blocks(block, count, &p->crew, threads);
    if (threads > 1) tsr_input_return_spare(p->source->input, (threads - 1) * (uint64_t)TSR_ELEMENTS_MEMORY);
}

/* Blocks that become smaller become pieces; the others stay bytes. TSR_DECLINED: together they do not become smaller by
 * an eighth. */
static enum tsr_status put_block_codes(struct tsr_packed_file *p, struct tsr_elements_block *block, unsigned count,
                                       struct tsr_error *error)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) {
        if (block[i].status != TSR_OK && block[i].status != TSR_ERROR_CORRUPT)
            return tsr_fail(error, block[i].status, "no memory to code elements");
        sum += block[i].status == TSR_OK ? block[i].code.size : block[i].size;
    }
    if (sum > p->verbatim - p->verbatim / 8) return tsr_fail(error, TSR_DECLINED, "%s", tsr_no_gain);
    for (unsigned i = 0; i < count; i++) {
        const size_t start = (size_t)(block[i].bytes - p->file);
        struct tsr_bytes code = block[i].code, none = {0};
        if (block[i].status != TSR_OK) continue;
        block[i].code = (struct tsr_bytes){0};
        TSR_TRY(tsr_pack_stream(p, start, start + block[i].size, TSR_PIECE_ELEMENTS, &code, &none, error));
    }
    return TSR_OK;
}

/* Blocks as they are cut. */
struct blocks {
    const uint8_t *bytes;
    struct tsr_elements_block *block;
    unsigned count;
};

static void add_block(void *context, uint64_t start, uint64_t end, unsigned form)
{
    struct blocks *const b = context;
    b->block[b->count++] =
        (struct tsr_elements_block){.bytes = b->bytes + start, .size = (size_t)(end - start), .form = form};
}

/* A long DICOM file, in blocks. The one in the middle is coded first, as a try. */
static enum tsr_status put_blocks(struct tsr_packed_file *p, struct tsr_error *error)
{
    struct tsr_elements_block *const block = calloc(TSR_ELEMENTS_BLOCKS, sizeof *block);
    struct tsr_elements_cut *const cut = tsr_elements_begin_cut(p->file, (uint32_t)p->size);
    struct blocks b = {.bytes = p->file, .block = block};
    if (block && cut) tsr_elements_cut(cut, p->file, p->size, add_block, &b);
    free(cut);
    const unsigned count = b.count;
    enum tsr_status status = count > 0 ? try_block(&block[count / 2], error)
                                       : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to code elements");
    if (status == TSR_OK) {
        for (unsigned i = 0; i < count; i++)
            if (block[i].code.size == 0) block[i].code.limit = block[i].size;
        mix_blocks(p, block, count);
        status = put_block_codes(p, block, count, error);
    }
    for (unsigned i = 0; i < count; i++) tsr_bytes_free(&block[i].code);
    free(block);
    return status;
}

/* What packing takes: the file, its codes, and the coder or a chunk that is measured. */
static uint64_t memory_of(uint64_t size)
{
    if (size <= TSR_ELEMENTS_PLAIN) return 4 * size + TSR_ELEMENTS_MEMORY;
    return 2 * size + tsr_max_u64(TSR_ELEMENTS_MEMORY, tsr_chunk_memory(false, size));
}

/* A DICOM file becomes one piece, or several. TSR_DECLINED: it does not become smaller by an eighth than it is
 * verbatim. Then it stays so, and parts of it can be read without the others: streams of pixels, mostly. The code takes
 * a hundred times longer than zstd. It is not tried on what zstd does not shorten, nor where all that it could save is
 * nearly nothing. */
enum tsr_status tsr_pack_elements(struct tsr_packed_file *p, struct tsr_error *error)
{
    struct tsr_bytes code = {0}, none = {0};
    size_t used;
    if (p->size > TSR_ELEMENTS_LONG) return tsr_fail(error, TSR_DECLINED, "it has too many bytes");
    TSR_TRY(tsr_pack_claim(p, 0, memory_of(p->size), 2 * (uint64_t)p->size, error));
    const struct tsr_priced file = tsr_priced_bytes(p->file, p->size);
    p->verbatim = tsr_price(&file, UINT64_MAX);
    if (p->verbatim == 0) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress");
    if (p->verbatim < p->size / LITTLE || p->verbatim > p->size - p->size / LITTLE)
        return tsr_fail(error, TSR_DECLINED, "%s", tsr_no_gain);
    if (p->size > TSR_ELEMENTS_PLAIN) return put_blocks(p, error);
    code.limit = (size_t)(p->verbatim - p->verbatim / 8);
    const enum tsr_status status =
        tsr_node_elements.split(&(struct tsr_node_work){.room = 0}, p->file, p->size, &used, &code, &none, error);
    if (status == TSR_OK) return tsr_pack_stream(p, 0, p->size, TSR_PIECE_ELEMENTS, &code, &none, error);
    tsr_bytes_free(&code);
    return status == TSR_ERROR_CORRUPT ? tsr_decline(error) : status;
}

/* ---- Longer files -------------------------------------------------------------------------------------------- */

struct listing {
    struct tsr_input *input;
    struct tsr_archive *archive;
    enum tsr_status status;
    struct tsr_error *error;
};

static void list_block(void *context, uint64_t start, uint64_t end, unsigned form)
{
    struct listing *const l = context;
    const struct tsr_archive_member member = {.start = start,
                                              .size = end - start,
                                              .memory = TSR_ELEMENTS_MEMORY + 3 * (end - start),
                                              .kind = TSR_FOUND_ELEMENTS,
                                              .form = form};
    if (l->status == TSR_OK) l->status = tsr_list_member(l->input, l->archive, &member, l->error);
}

/* Cuts the file, which is read in parts of room bytes. */
static enum tsr_status list_blocks(struct listing *l, uint8_t *bytes, size_t room)
{
    const uint64_t size = tsr_input_size(l->input);
    struct tsr_elements_cut *cut = NULL;
    for (uint64_t at = 0; at < size && l->status == TSR_OK;) {
        const size_t now = size - at < room ? (size_t)(size - at) : room;
        l->status = tsr_input_peek(l->input, at, bytes, now, l->error);
        if (l->status == TSR_OK && !cut && !(cut = tsr_elements_begin_cut(bytes, (uint32_t)size)))
            l->status = tsr_fail(l->error, TSR_ERROR_LIMIT, "no memory to cut elements");
        if (l->status == TSR_OK) tsr_elements_cut(cut, bytes, now, list_block, l);
        at += now;
    }
    free(cut);
    return l->status;
}

/* Codes the block in the middle, as a try. */
static enum tsr_status try_middle(const struct listing *l, uint8_t *bytes)
{
    const struct tsr_archive_member *const middle = &l->archive->member[l->archive->count / 2];
    struct tsr_elements_block block = {.bytes = bytes, .size = (size_t)middle->size, .form = middle->form};
    TSR_TRY(tsr_input_peek(l->input, middle->start, bytes, block.size, l->error));
    const enum tsr_status status = try_block(&block, l->error);
    tsr_bytes_free(&block.code);
    return status;
}

enum tsr_status tsr_list_elements(struct tsr_input *input, struct tsr_archive *archive, struct tsr_error *error)
{
    struct listing l = {.input = input, .archive = archive, .error = error};
    *archive = (struct tsr_archive){0};
    if (tsr_input_size(input) > UINT32_MAX) return tsr_fail(error, TSR_DECLINED, "it has too many bytes");
    TSR_TRY(tsr_input_claim_header(input, TSR_ELEMENTS_MEMORY + 4 * (uint64_t)TSR_ELEMENTS_PLAIN, error));
    uint8_t *const bytes = malloc(TSR_ELEMENTS_PLAIN);
    if (!bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to cut elements");
    enum tsr_status status = list_blocks(&l, bytes, TSR_ELEMENTS_PLAIN);
    if (status == TSR_OK) status = try_middle(&l, bytes);
    free(bytes);
    if (status != TSR_OK) tsr_forget_archive(archive);
    return status;
}
