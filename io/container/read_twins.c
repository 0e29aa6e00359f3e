/* Sections of members, and the twins of those that are damaged. FORMAT.md 3.7 and 3.8. */
#include <stdlib.h>
#include <string.h>

#include "container_reader.h"

/* The twin of a section, read because the section itself is damaged. */
struct kept_twin {
    struct kept_twin *next;
    uint8_t section[];
};

/* The member that a section belongs to. */
static uint32_t member_of(const struct tsr_container_reader *r, size_t place)
{
    uint32_t low = 0, high = r->placed - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (r->member_place[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum tsr_status tsr_read_member(struct tsr_container_reader *r, uint32_t number, struct tsr_member *member,
                                struct tsr_error *error)
{
    const struct tsr_place *place = &r->sections.place[r->member_place[number]];
    struct tsr_error why;
    const uint8_t *body;
    size_t size;
    TSR_TRY(tsr_read_section(&r->sections, place->offset, TSR_SECTION_MEMBER,
                             tsr_seal(r->file_id, (uint64_t)number + 1), &body, &size, error));
    const enum tsr_status status = tsr_get_member(body, size, member, &why);
    if (status == TSR_OK) return TSR_OK;
    return tsr_fail_at(error, status, place->offset, "file %u of the series: %.400s", number + 1, why.text);
}

enum tsr_status tsr_find_seal(struct tsr_container_reader *r, size_t place, uint64_t *seal, struct tsr_error *error)
{
    if (!r->member_place || (place >= r->first && place < r->end)) {
        *seal = tsr_seal_of(r, place);
        return TSR_OK;
    }
    const uint32_t member = member_of(r, place);
    TSR_TRY(tsr_read_member(r, member, &r->other, error));
    *seal = tsr_seal(r->other.header.id, place - tsr_first_of(r, member) + 1);
    return TSR_OK;
}

void tsr_note_opened(struct tsr_container_reader *r, size_t place, uint64_t hash)
{
    if (place < r->first || place >= r->end) return;
    r->section_hash[place - r->first] = hash;
    r->is_opened[place - r->first] = true;
}

enum tsr_status tsr_read_own(struct tsr_container_reader *r, size_t place, enum tsr_section_type type,
                             const uint8_t **body, size_t *size, struct tsr_error *error)
{
    const uint64_t seal = tsr_seal_of(r, place);
    TSR_TRY(tsr_read_section(&r->sections, r->sections.place[place].offset, type, seal, body, size, error));
    tsr_note_opened(r, place, tsr_read_u64(*body + *size) - seal);
    return TSR_OK;
}

/* ---- Twins ------------------------------------------------------------------------------------------------ */

const uint8_t *tsr_read_twin(struct tsr_container_reader *r, size_t twin, uint64_t *number, size_t *size,
                             struct tsr_error *error)
{
    const uint8_t *body;
    const uint64_t seal = tsr_seal(r->file_id, (uint64_t)r->members + 1 + twin);
    if (tsr_read_section(&r->sections, r->sections.place[tsr_first_twin(r) + twin].offset, TSR_SECTION_TWIN, seal,
                         &body, size, error) != TSR_OK)
        return NULL;
    struct tsr_cursor c = {body, *size, 0, false};
    *number = tsr_get_varint(&c);
    *size -= c.at;
    return c.bad ? NULL : body + c.at;
}

/* Lists the twins once, when the first one is needed. Twins stand in the order of their sections; others are ignored.
 */
static enum tsr_status list_twins(struct tsr_container_reader *r, struct tsr_error *error)
{
    const size_t count = r->sections.count - tsr_first_twin(r);
    if (r->listed) return TSR_OK;
    r->listed = malloc((count + 1) * sizeof *r->listed);
    if (!r->listed) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a list of %zu sections", count);
    for (size_t i = 0; i < count; i++) {
        struct tsr_error ignored;
        uint64_t section;
        size_t size;
        if (!tsr_read_twin(r, i, &section, &size, &ignored)) continue;
        if (r->listed_count > 0 && section <= r->listed[r->listed_count - 1].section) continue;
        r->listed[r->listed_count++] = (struct listed_twin){section, i};
    }
    return TSR_OK;
}

static int by_section(const void *section, const void *twin)
{
    const uint64_t wanted = *(const uint64_t *)section, found = ((const struct listed_twin *)twin)->section;
    return (wanted > found) - (wanted < found);
}

enum tsr_status tsr_find_twin(struct tsr_container_reader *r, size_t place, const uint8_t **body, size_t *size,
                              struct tsr_error *error)
{
    const uint64_t section = place;
    uint64_t again;
    struct tsr_error ignored;
    *body = NULL;
    if (r->sections.count == tsr_first_twin(r)) return TSR_OK;
    TSR_TRY(list_twins(r, error));
    const struct listed_twin *const listed =
        bsearch(&section, r->listed, r->listed_count, sizeof *r->listed, by_section);
    const uint8_t *const twin = listed ? tsr_read_twin(r, listed->number, &again, size, &ignored) : NULL;
    if (!twin) return TSR_OK;
    struct kept_twin *const kept = malloc(sizeof *kept + *size + 1);
    if (!kept) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a section of %zu bytes", *size);
    memcpy(kept->section, twin, *size);
    kept->next = r->twins;
    r->twins = kept;
    *body = kept->section;
    if (!r->repaired) r->repaired = "section that it shares with other files";
    return TSR_OK;
}

uint64_t tsr_hash_of_section(uint8_t type, const uint8_t *body, size_t size)
{
    uint8_t head[TSR_SECTION_HEAD_LIMIT] = {type};
    struct tsr_hasher hasher;
    tsr_hasher_init(&hasher);
    tsr_hasher_add(&hasher, head, 1 + tsr_put_varint(head + 1, size));
    tsr_hasher_add(&hasher, body, size);
    return tsr_hasher_result64(&hasher);
}

void tsr_forget_twins(struct tsr_container_reader *r)
{
    for (struct kept_twin *twin = r->twins, *next; twin; twin = next) {
        next = twin->next;
        free(twin);
    }
    r->twins = NULL;
    r->repaired = NULL;
}

enum tsr_status tsr_read_or_twin(struct tsr_container_reader *r, size_t place, enum tsr_section_type type,
                                 const uint8_t **body, size_t *size, struct tsr_error *error)
{
    struct tsr_error why;
    uint64_t seal;
    enum tsr_status status = tsr_find_seal(r, place, &seal, &why);
    if (status == TSR_OK)
        status = tsr_read_section(&r->sections, r->sections.place[place].offset, type, seal, body, size, &why);
    if (status == TSR_OK) {
        tsr_note_opened(r, place, tsr_read_u64(*body + *size) - seal);
        return TSR_OK;
    }
    if (status != TSR_ERROR_LIMIT) {
        TSR_TRY(tsr_find_twin(r, place, body, size, error));
        if (*body) {
            tsr_note_opened(r, place, tsr_hash_of_section((uint8_t)type, *body, *size));
            return TSR_OK;
        }
    }
    if (error) *error = why;
    return status;
}
