/* Writes DICOM files in memory element by element, valid and invalid ones (PS3.5, 7.1). */
#ifndef TSR_TESTS_IO_DICOM_BYTES_H
#define TSR_TESTS_IO_DICOM_BYTES_H

#include <sys/mman.h>

#include "in_memory.h"
#include "io/dicom/dicom_elements.h"

static const struct tsr_dicom_form implicit_little = {false, false}, explicit_little = {true, false},
                                   explicit_big = {true, true};

#define TAG_ITEM 0xfffee000u
#define TAG_ITEM_END 0xfffee00du
#define TAG_SEQUENCE_END 0xfffee0ddu

/* A file that is being written. */
struct dicom_bytes {
    struct bytes all;
    struct tsr_dicom_form form; /* of the next element */
    uint64_t elements;          /* elements so far; items count, delimiters do not */
};

static inline void put_word(struct dicom_bytes *d, uint32_t value, int bytes)
{
    uint8_t word[4];
    for (int i = 0; i < bytes; i++) word[i] = (uint8_t)(value >> 8 * (d->form.big_endian ? bytes - 1 - i : i));
    append(&d->all, word, (size_t)bytes);
}

static inline bool has_long_head(const char *vr)
{
    static const char *const vrs[] = {"OB", "OD", "OF", "OL", "OV", "OW", "SQ", "SV", "UC", "UN", "UR", "UT", "UV"};
    for (size_t i = 0; i < COUNT_OF(vrs); i++)
        if (strcmp(vrs[i], vr) == 0) return true;
    return false;
}

/* Appends the tag, VR and length of an element. */
static inline void put_head(struct dicom_bytes *d, uint32_t tag, const char *vr, uint32_t length)
{
    put_word(d, tag >> 16, 2);
    put_word(d, tag & 0xffff, 2);
    const bool has_vr = d->form.explicit_vr && tag >> 16 != 0xfffe;
    if (has_vr) append(&d->all, vr, 2);
    if (has_vr && has_long_head(vr)) put_word(d, 0, 2);
    put_word(d, length, has_vr && !has_long_head(vr) ? 2 : 4);
    d->elements += tag != TAG_ITEM_END && tag != TAG_SEQUENCE_END;
}

/* Appends an element. A value of odd size is padded to an even length. */
static inline void put_value(struct dicom_bytes *d, uint32_t tag, const char *vr, const void *value, size_t size)
{
    put_head(d, tag, vr, (uint32_t)(size + size % 2));
    append(&d->all, value, size);
    if (size % 2) append(&d->all, strcmp(vr, "UI") == 0 ? "" : " ", 1);
}

static inline void put_text(struct dicom_bytes *d, uint32_t tag, const char *vr, const char *text)
{
    put_value(d, tag, vr, text, strlen(text));
}

static inline void put_us(struct dicom_bytes *d, uint32_t tag, uint32_t value)
{
    put_head(d, tag, "US", 2);
    put_word(d, value, 2);
}

static inline void put_ul(struct dicom_bytes *d, uint32_t tag, uint32_t value)
{
    put_head(d, tag, "UL", 4);
    put_word(d, value, 4);
}

/* Writes the number of bytes from start to the end into the four bytes before start, which are a head's length. */
static inline void set_length(struct dicom_bytes *d, size_t start)
{
    const uint32_t length = (uint32_t)(d->all.size - start);
    for (int i = 0; i < 4; i++)
        d->all.data[start - 4 + (size_t)i] = (uint8_t)(length >> 8 * (d->form.big_endian ? 3 - i : i));
}

/* Begin and end a sequence or an item, with a length or with a delimiter. */
static inline size_t begin_sequence(struct dicom_bytes *d, uint32_t tag, const char *vr, bool has_length)
{
    put_head(d, tag, vr, has_length ? 0 : TSR_UNDEFINED_LENGTH);
    return d->all.size;
}

static inline void end_sequence(struct dicom_bytes *d, size_t start, uint32_t delimiter, bool has_length)
{
    if (has_length)
        set_length(d, start);
    else
        put_head(d, delimiter, "", 0);
}

static inline const char *syntax_of(struct tsr_dicom_form form)
{
    return form.big_endian ? "1.2.840.10008.1.2.2" : form.explicit_vr ? "1.2.840.10008.1.2.1" : "1.2.840.10008.1.2";
}

/* Appends the preamble and the meta header of a transfer syntax. */
static inline void put_meta(struct dicom_bytes *d, const char *syntax)
{
    static const uint8_t preamble[128];
    const struct tsr_dicom_form form = d->form;
    append(&d->all, preamble, sizeof preamble);
    append(&d->all, "DICM", 4);
    d->form = explicit_little;
    put_ul(d, TSR_TAG_META_LENGTH, 0);
    const size_t start = d->all.size;
    put_value(d, 0x00020001, "OB", "\0\1", 2);
    put_text(d, 0x00020002, "UI", "1.2.840.10008.5.1.4.1.1.2");
    put_text(d, TSR_TAG_MEDIA_STORAGE_UID, "UI", "1.2.3.4.5");
    put_text(d, TSR_TAG_TRANSFER_SYNTAX, "UI", syntax);
    put_text(d, 0x00020012, "UI", "1.2.3.99");
    set_length(d, start);
    d->form = form;
}

static inline void free_dicom(struct dicom_bytes *d)
{
    free(d->all.data);
    *d = (struct dicom_bytes){0};
}

/* ---- Scanning ----------------------------------------------------------------------------------------------- */

/* A copy of the bytes that ends at a page which cannot be read. */
static inline const uint8_t *in_front_of_a_guard(const uint8_t *bytes, size_t size)
{
    enum { ROOM = 1 << 16 };
    static uint8_t *room;
    if (!room) {
        const size_t page = (size_t)sysconf(_SC_PAGESIZE);
        room = mmap(NULL, ROOM + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(room != MAP_FAILED && mprotect(room + ROOM, page, PROT_NONE) == 0);
    }
    if (size > ROOM) return bytes;
    memcpy(room + ROOM - size, bytes, size);
    return room + ROOM - size;
}

static inline enum tsr_status scan_bytes(const uint8_t *bytes, size_t size, struct tsr_dicom_scan *scan,
                                         struct tsr_error *error)
{
    struct tsr_input *input = must(tsr_input_from_memory(in_front_of_a_guard(bytes, size), size, "it"));
    *error = (struct tsr_error){TSR_OK, TSR_NO_OFFSET, "", 0};
    const enum tsr_status status = tsr_dicom_scan_file(input, scan, error);
    tsr_input_close(input);
    return status;
}

#endif
