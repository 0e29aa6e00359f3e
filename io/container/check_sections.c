/* Whether the sections are those that were written together, and twins equal what they copy. FORMAT.md 3.1 and 3.8. */
#include <stdlib.h>

#include "container_reader.h"

enum tsr_status tsr_container_check_id(struct tsr_container_reader *r, struct tsr_error *error)
{
    struct tsr_hasher id;
    tsr_id_begin(&id, r->chosen.header_hash);
    const size_t end = r->member_place ? r->end - 1 : r->end; /* the last section of a member has the id in it */
    for (size_t i = r->first; i < end; i++) {
        const struct tsr_place *const place = &r->sections.place[i];
        if (!r->is_opened[i - r->first] &&
            (tsr_is_spare_type(place->type) || place->type == TSR_SECTION_BASE)) { /* of any length */
            uint64_t hash;
            TSR_TRY(tsr_hash_section(&r->sections, place, tsr_seal_of(r, i), &hash, error));
            tsr_note_opened(r, i, hash);
        } else if (!r->is_opened[i - r->first]) {
            const uint8_t *body;
            size_t size;
            TSR_TRY(tsr_read_or_twin(r, i, (enum tsr_section_type)place->type, &body, &size, error));
        }
        tsr_id_add(&id, r->section_hash[i - r->first]);
    }
    if (r->member_place) tsr_id_add(&id, r->chosen.proof_hash);
    if (tsr_hasher_result64(&id) == r->chosen.header.id) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "its sections are not those that were written together");
}

static bool is_shareable(uint8_t type)
{
    return type == TSR_SECTION_BLOB || type == TSR_SECTION_FRAME;
}

enum tsr_status tsr_container_check_series(struct tsr_container_reader *r, struct tsr_error *error)
{
    struct tsr_hasher id;
    size_t damaged = 0, next = 0; /* next: the lowest section that the next twin may copy */
    tsr_id_begin(&id, r->sections.header_hash);
    for (size_t i = 0, n = 1; i < r->sections.count; i++) {
        const struct tsr_place *place = &r->sections.place[i];
        const uint8_t *body;
        size_t size;
        if (place->type != TSR_SECTION_MEMBER && place->type != TSR_SECTION_TWIN) continue;
        const uint64_t seal = tsr_seal(r->file_id, n++);
        const enum tsr_status status = tsr_read_section(&r->sections, place->offset, (enum tsr_section_type)place->type,
                                                        seal, &body, &size, error);
        if (status == TSR_ERROR_READ || status == TSR_ERROR_LIMIT) return status;
        if (status != TSR_OK) {
            damaged++;
            if (place->type == TSR_SECTION_TWIN && !r->sections.damage) r->sections.damage = "copy of a shared section";
            continue;
        }
        tsr_id_add(&id, tsr_read_u64(body + size) - seal);
        if (place->type != TSR_SECTION_TWIN) continue;
        struct tsr_cursor c = {body, size, 0, false};
        const uint64_t section = tsr_get_varint(&c);
        if (c.bad || section < next || section >= tsr_first_twin(r) || !is_shareable(r->sections.place[section].type))
            return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset,
                               "the copy at byte %llu is not a copy of a shared section",
                               (unsigned long long)place->offset);
        next = (size_t)section + 1;
    }
    if (damaged > 0 || r->placed < r->members || r->sections.is_walked || tsr_hasher_result64(&id) == r->file_id)
        return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "the files of the series are not those that were written together");
}

/* ---- Checking twins --------------------------------------------------------------------------------------- */

/* Marks the sections of other members that the chosen member needs. */
static enum tsr_status mark_needed(struct tsr_container_reader *r, bool *is_needed, struct tsr_error *error)
{
    for (uint32_t f = 0; f < r->chosen.header.image.frames && tsr_has_frames(&r->chosen.header); f++)
        if (r->model_place[f] != TSR_NOWHERE && r->model_place[f] < r->first) is_needed[r->model_place[f]] = true;
    for (size_t i = r->first; i < r->end; i++) {
        struct tsr_stored_blob b;
        size_t base;
        if (r->sections.place[i].type != TSR_SECTION_BLOB) continue;
        TSR_TRY(tsr_read_blob(r, i, &b, error));
        if (b.method != TSR_BLOB_ZSTD_AFTER) continue;
        TSR_TRY(tsr_find_base(r, &r->sections.place[i], b.blob, b.distance, &base, &b, error));
        is_needed[base] = true;
    }
    return TSR_OK;
}

static enum tsr_status fail_twins(const char *what, struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT,
                    "%s; decompress still restores the files of the series, but damage to the series may cost several",
                    what);
}

/* all: is_needed is complete. */
static enum tsr_status compare_twins(struct tsr_container_reader *r, bool *is_needed, bool all, struct tsr_error *error)
{
    const size_t first = tsr_first_twin(r);
    for (size_t i = 0; i < r->sections.count - first; i++) {
        uint64_t section, seal, hash;
        size_t size;
        const uint8_t *const body = tsr_read_twin(r, i, &section, &size, error);
        if (!body) all = false;
        if (!body) continue; /* the twin is damaged, which was noted before */
        if (section >= first || (all && !is_needed[section]))
            return fail_twins("a section that is not shared has a copy", error);
        const struct tsr_place *const place = &r->sections.place[section];
        const uint64_t wanted = tsr_hash_of_section(place->type, body, size);
        is_needed[section] = false;
        if (tsr_find_seal(r, (size_t)section, &seal, error) != TSR_OK ||
            tsr_hash_section(&r->sections, place, seal, &hash, error) != TSR_OK)
            continue; /* the section or its member is damaged, which was noted before */
        if (hash != wanted) return fail_twins("the copy of a shared section differs from the section", error);
    }
    for (size_t i = 0; i < first && all; i++)
        if (is_needed[i]) return fail_twins("a shared section has no copy", error);
    return TSR_OK;
}

enum tsr_status tsr_container_check_twins(struct tsr_container_reader *r, struct tsr_error *error)
{
    bool all = r->placed == r->members;
    bool *is_needed = calloc(tsr_first_twin(r) + 1, sizeof *is_needed);
    enum tsr_status status = is_needed ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to check a series");
    for (uint32_t k = 0; k < r->placed && status == TSR_OK; k++) {
        status = tsr_container_choose(r, k, error);
        if (status == TSR_OK) status = mark_needed(r, is_needed, error);
        if (status == TSR_ERROR_CORRUPT) all = false; /* the member is damaged, and reading it reports that */
        if (status == TSR_ERROR_CORRUPT) status = TSR_OK;
    }
    if (status == TSR_OK) status = compare_twins(r, is_needed, all, error);
    free(is_needed);
    return status;
}
