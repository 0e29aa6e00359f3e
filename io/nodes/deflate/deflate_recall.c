/* What the model predicted while a stream was read, kept for who makes the same stream again at once: the proof before
 * the file is written does not search again. Who verifies the file on the disk searches by itself.
 *
 * An entry is literals << 24 | (length - 3) << 16 | distance - 1: so many literals, and then a match; with
 * LITERALS_ALONE as its lower half there is no match. */
#include <stdlib.h>
#include <string.h>

#include "deflate_parts.h"
#include "io/bytes/checksum.h"

enum {
    MOST_LITERALS = 255,
    LITERALS_ALONE = 0xffff,
    FIRST = 1 << 12, /* entries */
    FIXED = 1 << 18  /* bytes that coding takes besides coders and tokens */
};

static bool make_room(struct deflate_record *r)
{
    const size_t capacity = r->capacity ? 2 * r->capacity : FIRST;
    if (r->capacity + capacity > r->most) return false;
    uint32_t *const grown = realloc(r->entries, capacity * sizeof *grown);
    if (!grown) return false;
    r->entries = grown;
    r->capacity = capacity;
    return true;
}

/* What is after a record is searched for. So it ends with a match, after which the model carries none. */
static void put(struct deflate_model *m, uint32_t entry)
{
    struct deflate_record *const r = m->record;
    if (r->count == r->capacity && !make_room(r)) {
        while (r->count > 0 && (r->entries[r->count - 1] & 0xffff) == LITERALS_ALONE) r->count--;
        r->literals = 0; /* who makes the stream again begins with none */
        m->record = NULL;
        return;
    }
    r->entries[r->count++] = entry;
    r->literals = 0;
}

void tsr_deflate_note(struct deflate_model *m, uint32_t token)
{
    struct deflate_record *const r = m->record;
    if (token > 0) {
        put(m, r->literals << 24 | (deflate_length(token) - DEFLATE_LEAST) << 16 | ((token & 65535) - 1));
        return;
    }
    if (r->literals == MOST_LITERALS) put(m, (uint32_t)MOST_LITERALS << 24 | LITERALS_ALONE);
    if (m->record) r->literals++;
}

void tsr_deflate_note_literals(struct deflate_model *m, uint32_t literals)
{
    while (m->record && literals > 0) {
        struct deflate_record *const r = m->record;
        if (r->literals == MOST_LITERALS) put(m, (uint32_t)MOST_LITERALS << 24 | LITERALS_ALONE);
        const uint32_t room = MOST_LITERALS - r->literals, count = literals < room ? literals : room;
        if (m->record) r->literals += count;
        literals -= count;
    }
}

/* The model has gone through all: the literals at the end are noted, too. */
void tsr_deflate_end_record(struct deflate_model *m)
{
    if (m->record && m->record->literals > 0) put(m, m->record->literals << 24 | LITERALS_ALONE);
    m->record = NULL;
}

/* The next entry is to be said. False: there is none. */
static bool next_entry(struct deflate_record *r)
{
    if (r->at == r->count) return false;
    const uint32_t entry = r->entries[r->at++];
    r->literals = entry >> 24;
    if ((entry & 0xffff) != LITERALS_ALONE)
        r->match = deflate_match((entry >> 16 & 255) + DEFLATE_LEAST, (entry & 0xffff) + 1);
    return true;
}

uint32_t tsr_deflate_noted_literals(struct deflate_model *m)
{
    struct deflate_record *const r = m->replay;
    while (r->literals == 0 && r->match == 0 && next_entry(r)) continue;
    return r->literals;
}

bool tsr_deflate_replay(struct deflate_model *m, uint32_t *token)
{
    const uint32_t literals = tsr_deflate_noted_literals(m);
    struct deflate_record *const r = m->replay;
    if (literals == 0 && r->match == 0) {
        m->replay = NULL;
        return false;
    }
    m->carried = 0;
    *token = 0;
    if (literals > 0) {
        r->literals--;
    } else {
        *token = r->match;
        r->match = 0;
    }
    return true;
}

void tsr_deflate_begin_record(struct deflate_model *m, struct deflate_record *record, size_t most)
{
    record->count = record->at = 0;
    record->literals = record->match = 0;
    record->most = most;
    m->record = record;
}

void tsr_deflate_forget_recall(struct deflate_recall *recall)
{
    for (size_t i = 0; i < recall->count; i++) free(recall->records[i].entries);
    free(recall->records);
    *recall = (struct deflate_recall){0};
}

size_t tsr_deflate_most_entries(uint64_t plain, uint64_t coders, uint64_t tokens)
{
    const uint64_t all = tsr_deflate_memory(plain),
                   taken = FIXED + coders * sizeof(struct deflate_coder) + tokens * sizeof(uint32_t);
    return all > taken ? (size_t)((all - taken) / sizeof(uint32_t)) : 0;
}

uint64_t tsr_deflate_key(const uint8_t *plain, size_t plain_size, const uint8_t *residue, size_t size)
{
    const uint64_t parts[4] = {tsr_hash64_of(plain, plain_size), plain_size, tsr_hash64_of(residue, size), size};
    return tsr_hash64_of(parts, sizeof parts);
}
