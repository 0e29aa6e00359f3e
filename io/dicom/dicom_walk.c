/* See dicom_walk.h. */
#include "dicom_walk.h"

#include <string.h>

enum {
    UNCLAIMED_BYTES = 1 << 20, /* bytes of a header that are held without a claim */
    MEMORY_LIMIT = 1 << 30     /* that a reader which keeps each element may take */
};

enum tsr_status tsr_dicom_walk_hold(struct tsr_dicom_walk *w, size_t end)
{
    if (end <= w->held || w->held == w->size) return TSR_OK;
    size_t wanted = w->held < TSR_DICOM_FIRST_BYTES ? TSR_DICOM_FIRST_BYTES : 2 * w->held;
    if (wanted > TSR_DICOM_HEADER_LIMIT) wanted = TSR_DICOM_HEADER_LIMIT;
    if (wanted < end) wanted = end;
    if (wanted > w->size) wanted = w->size;
    if (wanted > UNCLAIMED_BYTES) TSR_TRY(tsr_input_claim_header(w->input, TSR_DICOM_HEADER_LIMIT, w->error));
    TSR_TRY(tsr_input_hold(w->input, wanted, &w->bytes, w->error));
    w->held = wanted;
    return TSR_OK;
}

void tsr_dicom_begin_walk(struct tsr_dicom_walk *walk, struct tsr_input *input, size_t at, struct tsr_dicom_form form,
                          struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(input);
    memset(walk, 0, sizeof *walk);
    walk->input = input;
    walk->size = size > SIZE_MAX ? SIZE_MAX : (size_t)size;
    walk->at = at;
    walk->layer[0].form = form;
    walk->error = error;
}

/* ---- What cannot be --------------------------------------------------------------------------------------- */

static enum tsr_status fail(struct tsr_dicom_walk *w, const char *reason)
{
    return tsr_fail(w->error, TSR_ERROR_CORRUPT, "%s", reason);
}

bool tsr_dicom_is_surely(const struct tsr_dicom_walk *w)
{
    enum { ENOUGH = 4 };
    return !w->is_other_form && (w->has_preamble || w->elements >= ENOUGH);
}

uint64_t tsr_dicom_damaged_at(const struct tsr_dicom_walk *w)
{
    return tsr_dicom_is_surely(w) ? w->at : TSR_NO_OFFSET;
}

static enum tsr_status fail_element(struct tsr_dicom_walk *w, const struct tsr_dicom_element *element, const char *what)
{
    const uint64_t offset = tsr_dicom_damaged_at(w);
    if (element->tag == TSR_TAG_ITEM)
        return tsr_fail_at(w->error, TSR_ERROR_CORRUPT, offset, "its item at byte %zu %s", w->at, what);
    return tsr_fail_at(w->error, TSR_ERROR_CORRUPT, offset, "its element (%04x,%04x) at byte %zu %s",
                       (unsigned)(element->tag >> 16), (unsigned)(element->tag & 0xffff), w->at, what);
}

enum tsr_status tsr_dicom_fail_long(struct tsr_dicom_walk *w, const struct tsr_dicom_element *element)
{
    return fail_element(w, element, "has more bytes than are there");
}

enum tsr_status tsr_dicom_fail_cut(struct tsr_dicom_walk *w, size_t end)
{
    return tsr_fail_at(w->error, TSR_ERROR_CORRUPT, tsr_dicom_damaged_at(w), "%s ends within an element, at byte %zu",
                       end == w->size ? "it" : "an item of it", end);
}

bool tsr_dicom_is_cut_head(const uint8_t *bytes, size_t at, size_t end, bool explicit_vr)
{
    const size_t left = end - at;
    return left < TSR_DICOM_HEAD || (explicit_vr && left < TSR_DICOM_LONG_HEAD && tsr_dicom_is_long_vr(bytes + at + 4));
}

static bool is_blank(const uint8_t *bytes, size_t size)
{
    while (size > 0 && bytes[size - 1] == 0) size--;
    return size == 0;
}

/* ---- Counting --------------------------------------------------------------------------------------------- */

uint64_t tsr_dicom_memory(uint64_t bytes, uint64_t elements)
{
    return 3 * bytes + 300 * elements;
}

static enum tsr_status count_item(struct tsr_dicom_walk *w)
{
    w->elements++;
    if (tsr_dicom_memory(w->at, w->elements) <= MEMORY_LIMIT) return TSR_OK;
    return fail(w, "its elements would take more than 1 GiB of memory");
}

/* Counts an element, and the comparisons that sorting the element by its tag costs. */
enum tsr_status tsr_dicom_walk_count(struct tsr_dicom_walk *w, uint32_t tag)
{
    struct tsr_dicom_layer *const layer = &w->layer[w->depth];
    TSR_TRY(count_item(w));
    if (w->depth == 0 && layer->count > 0 && tag <= layer->highest_tag) w->is_disordered = true;
    if (tag < layer->highest_tag)
        w->disorder += layer->count;
    else
        layer->highest_tag = tag;
    layer->count++;
    if (w->disorder > TSR_DICOM_DISORDER) return fail(w, "its elements stand in disorder");
    return TSR_OK;
}

/* ---- Layers ----------------------------------------------------------------------------------------------- */

static enum tsr_status push(struct tsr_dicom_walk *w, struct tsr_dicom_layer layer)
{
    if (w->depth + 1 == TSR_DICOM_DEPTH) return fail(w, "its sequences are nested too deep");
    w->layer[++w->depth] = layer;
    return TSR_OK;
}

/* Where the innermost layer ends at the latest: one without an end lies within those around it. */
static size_t latest_end(const struct tsr_dicom_walk *w)
{
    int depth = w->depth;
    while (depth > 0 && !w->layer[depth].has_end) depth--;
    return w->layer[depth].has_end ? w->layer[depth].end : w->size;
}

/* Reads the head of the element at the current place, in the innermost layer. */
static enum tsr_status read_element(struct tsr_dicom_walk *w, struct tsr_dicom_element *element)
{
    const struct tsr_dicom_layer *const layer = &w->layer[w->depth];
    const size_t end = latest_end(w);
    TSR_TRY(tsr_dicom_walk_hold(w, end - w->at < TSR_DICOM_LONG_HEAD ? end : w->at + TSR_DICOM_LONG_HEAD));
    if (tsr_dicom_element_at(w->bytes, w->at, end, layer->form, element)) return TSR_OK;
    const bool has_head = tsr_dicom_head_at(w->bytes, w->at, end, layer->form, element);
    /* The file may end within its pixel data: tsr_splice_open() detects that. */
    if (has_head && w->depth == 0 && tsr_dicom_holds_pixels(element->tag) &&
        tsr_dicom_element_at(w->bytes, w->at, SIZE_MAX, layer->form, element))
        return TSR_OK;
    if (has_head) return tsr_dicom_fail_long(w, element);
    if (tsr_dicom_is_cut_head(w->bytes, w->at, end, layer->form.explicit_vr) &&
        (w->depth > 0 || !is_blank(w->bytes + w->at, end - w->at)))
        return tsr_dicom_fail_cut(w, end);
    const bool is_wiped = w->depth > 0 && is_blank(w->bytes + w->at, TSR_DICOM_HEAD); /* amid a sequence: no padding */
    return tsr_fail_at(w->error, TSR_ERROR_CORRUPT, is_wiped ? tsr_dicom_damaged_at(w) : TSR_NO_OFFSET,
                       "it has no valid element at byte %zu", w->at);
}

/* Enters a value that is a sequence or may be one; skips all other values. */
static enum tsr_status enter_value(struct tsr_dicom_walk *w, const struct tsr_dicom_element *element, bool *is_entered)
{
    const struct tsr_dicom_form outer = w->layer[w->depth].form;
    const bool is_sequence = strcmp(element->vr, "SQ") == 0;
    struct tsr_dicom_layer layer = {.kind = TSR_LAYER_ITEMS,
                                    .sequence = *element,
                                    .form = tsr_dicom_inner_form(element, outer),
                                    .has_end = element->length != TSR_UNDEFINED_LENGTH,
                                    .end = element->end};
    *is_entered = false;
    w->at = layer.has_end ? element->end : element->value;
    if (layer.has_end && !is_sequence) {
        if (element->vr[0] || element->length < TSR_DICOM_HEAD) return TSR_OK;
        TSR_TRY(tsr_dicom_walk_hold(w, element->value + 4));
        if (tsr_dicom_tag(w->bytes + element->value, outer.big_endian) != TSR_TAG_ITEM) return TSR_OK;
        layer.is_guess = true; /* without a VR, only the bytes tell what the value is */
    } else if (element->vr[0] == 'O') {
        layer.kind = TSR_LAYER_FRAGMENTS;
    } else if (element->vr[0] && !is_sequence) {
        if (strcmp(element->vr, "UN") != 0) return fail(w, "an element of it has no length");
    }
    w->at = element->value;
    *is_entered = true;
    return push(w, layer);
}

static enum tsr_status step_elements(struct tsr_dicom_walk *w, struct tsr_dicom_visit *visit, bool *is_visit)
{
    struct tsr_dicom_element *const element = &visit->element;
    const bool is_item = w->depth > 0;
    TSR_TRY(read_element(w, element));
    if (element->tag == TSR_TAG_ITEM_END && is_item && !w->layer[w->depth].has_end) {
        w->depth--;
        w->at = element->value;
        return TSR_OK;
    }
    if (element->tag == TSR_TAG_ITEM) return fail_element(w, element, "is in no sequence");
    if (element->tag >> 16 == TSR_TAG_ITEM >> 16) return fail(w, "a delimiter stands among its elements");
    TSR_TRY(tsr_dicom_walk_count(w, element->tag));
    const bool is_end = !is_item && tsr_dicom_holds_pixels(element->tag);
    visit->found = is_end ? TSR_FOUND_PIXELS : TSR_FOUND_ELEMENT;
    visit->depth = (uint32_t)w->depth;
    *is_visit = true;
    return is_end ? TSR_OK : enter_value(w, element, &visit->has_content);
}

/* Enters the next item of a sequence, or skips the next fragment. */
static enum tsr_status step_items(struct tsr_dicom_walk *w, struct tsr_dicom_visit *visit, bool *is_visit)
{
    const struct tsr_dicom_layer *const layer = &w->layer[w->depth];
    struct tsr_dicom_element *const item = &visit->element;
    TSR_TRY(read_element(w, item));
    if (item->tag == TSR_TAG_SEQUENCE_END && !layer->has_end) {
        w->depth--;
        w->at = item->value;
        return TSR_OK;
    }
    if (item->tag != TSR_TAG_ITEM) return fail(w, "a sequence of it has something else than items");
    TSR_TRY(count_item(w));
    *visit = (struct tsr_dicom_visit){.found = TSR_FOUND_ITEM,
                                      .element = *item,
                                      .depth = (uint32_t)w->depth,
                                      .sequence = layer->sequence.tag,
                                      .has_content = layer->kind == TSR_LAYER_ITEMS};
    *is_visit = true;
    const bool has_length = item->length != TSR_UNDEFINED_LENGTH;
    if (layer->kind == TSR_LAYER_FRAGMENTS) {
        if (!has_length) return fail(w, "a fragment of it has no length");
        w->at = item->end;
        return TSR_OK;
    }
    w->at = item->value;
    return push(w, (struct tsr_dicom_layer){
                       .kind = TSR_LAYER_ELEMENTS, .form = layer->form, .has_end = has_length, .end = item->end});
}

/* Skips the bytes of a value that was taken for a sequence and is not one. False: no value was guessed to be a
 * sequence. */
static bool take_guess_back(struct tsr_dicom_walk *w, struct tsr_dicom_visit *visit)
{
    int depth = w->depth;
    while (depth > 0 && !w->layer[depth].is_guess) depth--;
    if (depth == 0 || w->disorder > TSR_DICOM_DISORDER) return false;
    *visit = (struct tsr_dicom_visit){
        .found = TSR_FOUND_NO_SEQUENCE, .element = w->layer[depth].sequence, .depth = (uint32_t)(depth - 1)};
    w->at = w->layer[depth].end;
    w->depth = depth - 1;
    w->has_wrong_guess = true;
    return true;
}

enum tsr_status tsr_dicom_walk_on(struct tsr_dicom_walk *w, struct tsr_dicom_visit *visit)
{
    for (bool is_visit = false; !is_visit;) {
        const struct tsr_dicom_layer *const layer = &w->layer[w->depth];
        *visit = (struct tsr_dicom_visit){.found = TSR_FOUND_END};
        if (w->depth == 0 && w->at == w->size) return TSR_OK;
        if (w->at > TSR_DICOM_HEADER_LIMIT)
            return tsr_fail(w->error, TSR_ERROR_CORRUPT, "its header has more than %d MiB",
                            TSR_DICOM_HEADER_LIMIT >> 20);
        if (layer->has_end && w->depth > 0 && w->at == layer->end) {
            w->depth--;
            continue;
        }
        const enum tsr_status status =
            layer->kind == TSR_LAYER_ELEMENTS ? step_elements(w, visit, &is_visit) : step_items(w, visit, &is_visit);
        if (status == TSR_ERROR_CORRUPT && take_guess_back(w, visit)) return TSR_OK;
        TSR_TRY(status);
    }
    return TSR_OK;
}

/* ---- Heads in an input ------------------------------------------------------------------------------------ */

bool tsr_dicom_read_head(struct tsr_input *input, uint64_t at, struct tsr_dicom_form form,
                         struct tsr_dicom_piece *piece)
{
    uint8_t bytes[TSR_DICOM_LONG_HEAD + sizeof piece->first] = {0};
    const uint64_t size = tsr_input_size(input);
    if (at > size) return false;
    const size_t held = size - at < sizeof bytes ? (size_t)(size - at) : sizeof bytes;
    if (held < TSR_DICOM_HEAD || tsr_input_read(input, at, bytes, held, NULL) != TSR_OK ||
        !tsr_dicom_head_at(bytes, 0, held, form, &piece->head))
        return false;
    piece->value = at + piece->head.value;
    piece->left = size - piece->value;
    memcpy(piece->first, bytes + piece->head.value, sizeof piece->first);
    return true;
}

bool tsr_dicom_read_item(struct tsr_input *input, uint64_t at, struct tsr_dicom_piece *piece)
{
    return tsr_dicom_read_head(input, at, (struct tsr_dicom_form){false, false}, piece);
}
