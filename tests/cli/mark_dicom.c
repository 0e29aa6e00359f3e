/* tsr_mark_dicom OUT: writes a DICOM file (explicit little endian, 64 x 64, 12 bits) with a marked value in every name,
 * number, date, institution, description and UID attribute, so that a test can look for them in reports: the word
 * MARKED, UIDs that begin with 7.7777777, the date 17770707, the time 177707. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct attribute {
    uint32_t tag;
    const char *vr, *value; /* NULL: a mark that suits the VR */
};

static const struct attribute head[] = {
    {0x00020002, "UI", "1.2.840.10008.5.1.4.1.1.2"},
    {0x00020003, "UI", NULL},
    {0x00020010, "UI", "1.2.840.10008.1.2.1"},
    {0x00020012, "UI", NULL},
    {0x00020013, "SH", NULL},
    {0x00020016, "AE", NULL},
};
static const struct attribute body[] = {
    {0x00080012, "DA", NULL},   {0x00080013, "TM", NULL},
    {0x00080014, "UI", NULL},   {0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.2"},
    {0x00080018, "UI", NULL},   {0x00080020, "DA", NULL},
    {0x00080021, "DA", NULL},   {0x00080030, "TM", NULL},
    {0x00080050, "SH", NULL},   {0x00080060, "CS", NULL},
    {0x00080070, "LO", NULL},   {0x00080080, "LO", NULL},
    {0x00080081, "ST", NULL},   {0x00080090, "PN", NULL},
    {0x00081010, "SH", NULL},   {0x00081030, "LO", NULL},
    {0x0008103e, "LO", NULL},   {0x00081040, "LO", NULL},
    {0x00081048, "PN", NULL},   {0x00081050, "PN", NULL},
    {0x00081070, "PN", NULL},   {0x00081090, "LO", NULL},
    {0x00100010, "PN", NULL},   {0x00100020, "LO", NULL},
    {0x00100030, "DA", NULL},   {0x00101000, "LO", NULL},
    {0x00101001, "PN", NULL},   {0x00101040, "LO", NULL},
    {0x00102160, "SH", NULL},   {0x00104000, "LT", NULL},
    {0x00180015, "CS", NULL},   {0x00181000, "LO", NULL},
    {0x00181030, "LO", NULL},   {0x0020000d, "UI", NULL},
    {0x0020000e, "UI", NULL},   {0x00200010, "SH", NULL},
    {0x00200052, "UI", NULL},   {0x00204000, "LT", NULL},
    {0x00280002, "US", "\1"},   {0x00280004, "CS", "MONOCHROME2"},
    {0x00280010, "US", "\100"}, {0x00280011, "US", "\100"},
    {0x00280100, "US", "\20"},  {0x00280101, "US", "\14"},
    {0x00280102, "US", "\13"},  {0x00280103, "US", ""},
    {0x00281055, "LO", NULL},   {0x00321032, "PN", NULL},
    {0x00321060, "LO", NULL},   {0x00400244, "DA", NULL},
    {0x00400254, "LO", NULL},
};

static const char *mark_of(const char *vr)
{
    return !strcmp(vr, "UI")   ? "7.7777777.1.2"
           : !strcmp(vr, "DA") ? "17770707"
           : !strcmp(vr, "TM") ? "177707"
                               : "MARKED";
}

static size_t put(uint8_t *to, const struct attribute *a)
{
    const char *const value = a->value ? a->value : mark_of(a->vr);
    const size_t length = !strcmp(a->vr, "US") ? 2 : strlen(value), padded = (length + 1) / 2 * 2;
    const uint8_t start[8] = {(uint8_t)(a->tag >> 16), (uint8_t)(a->tag >> 24), (uint8_t)a->tag,
                              (uint8_t)(a->tag >> 8),  (uint8_t)a->vr[0],       (uint8_t)a->vr[1],
                              (uint8_t)padded,         (uint8_t)(padded >> 8)};
    memcpy(to, start, sizeof start);
    memset(to + sizeof start, !strcmp(a->vr, "UI") || !strcmp(a->vr, "US") ? 0 : ' ', padded);
    memcpy(to + sizeof start, value, strlen(value));
    return sizeof start + padded;
}

int main(int argc, char **argv)
{
    enum { SIDE = 64, PIXELS = SIDE * SIDE };
    static uint8_t bytes[1 << 16];
    size_t at = 132, meta = 0;
    FILE *const file = argc == 2 ? fopen(argv[1], "wb") : NULL;
    if (!file) return 2;
    memcpy(bytes + 128, "DICM", 4);
    const size_t length_at = at + 8;
    memcpy(bytes + at, "\2\0\0\0UL\4\0", 8);
    at += 12;
    const size_t first = at;
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++) at += put(bytes + at, &head[i]);
    meta = at - first;
    bytes[length_at] = (uint8_t)meta;
    bytes[length_at + 1] = (uint8_t)(meta >> 8);
    for (size_t i = 0; i < sizeof body / sizeof body[0]; i++) at += put(bytes + at, &body[i]);
    const uint8_t pixels[12] = {0xe0, 0x7f, 0x10, 0, 'O', 'W', 0, 0, 0, (2 * PIXELS) >> 8, 0, 0};
    memcpy(bytes + at, pixels, sizeof pixels);
    at += sizeof pixels;
    for (unsigned i = 0; i < PIXELS; i++) {
        const unsigned sample = (i % SIDE * 31 + i / SIDE * 17 + i * i % 7) & 0xfff;
        bytes[at++] = (uint8_t)sample;
        bytes[at++] = (uint8_t)(sample >> 8);
    }
    const bool good = fwrite(bytes, 1, at, file) == at;
    return fclose(file) == 0 && good ? 0 : 1;
}
