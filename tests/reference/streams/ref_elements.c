/* FORMAT.md 4.16: elements. */
#include "ref_mix.h"

#include <string.h>

enum { LEAST_ROOM = 1 << 20, PLAIN = 1 << 20, CODE = 1 << 21, SEEN = 1 << 14 };

/* 4.16.4 */
static const char *const seen_before[] = {
    "0|00020000 UL ~c8~00~00~00|00020001 OB ~00~01|00020002 UI 1.2.840.10008.1.3.10|00020003 UI 1.2.|",
    "00020010 UI 1.2.840.10008.1.2.1|00020012 UI 1.2.|00020013 SH 1|00020016 AE A|00041130 CS DICOM|",
    "00041200 UL ~00~01~00~00|00041202 UL ~00~01~00~00|00041212 US ~00~00|00041220 SQ *|(|",
    "00041400 UL ~00~00~00~00|00041410 US ~ff~ff|00041420 UL ~00~00~00~00|00041430 CS PATIENT|",
    "00080005 CS ISO_IR 100|00100010 PN A^B|00100020 LO 1|00100030 DA |00100040 CS M|)|(|",
    "00041400 UL ~00~00~00~00|00041410 US ~ff~ff|00041420 UL ~00~00~00~00|00041430 CS STUDY|",
    "00080020 DA 20000101|00080030 TM 120000|00080050 SH 1|00081030 LO |0020000d UI 1.2.|00200010 SH 1|)|(|",
    "00041400 UL ~00~00~00~00|00041410 US ~ff~ff|00041420 UL ~00~00~00~00|00041430 CS SERIES|00080060 CS MR|",
    "0008103e LO |0020000e UI 1.2.|00200011 IS 1|)|(|00041400 UL ~00~00~00~00|00041410 US ~ff~ff|",
    "00041420 UL ~00~00~00~00|00041430 CS IMAGE|00041500 CS DICOM\\IM1|00041510 UI 1.2.840.10008.5.1.4.1.1.4|",
    "00041511 UI 1.2.|00041512 UI 1.2.840.10008.1.2.1|00080008 CS ORIGINAL\\PRIMARY|00200013 IS 1|)|]|0|",
    "00020000 UL ~c8~00~00~00|00020001 OB ~00~01|00020002 UI 1.2.840.10008.5.1.4.1.1.2|",
    "00020003 UI 1.2.826.0.1.|00020010 UI 1.2.840.10008.1.2.1|00020012 UI 1.2.826.0.1.|00020013 SH |",
    "00080000 UL ~00~01~00~00|00080005 CS ISO_IR 192|00080008 CS DERIVED\\SECONDARY\\AXIAL|",
    "00080012 DA 20000101|00080013 TM 120000.000000|00080014 UI 1.3.6.1.4.1.|",
    "00080016 UI 1.2.840.10008.5.1.4.1.1.2|00080018 UI 1.3.6.1.4.1.|00080020 DA 20000101|",
    "00080021 DA 20000101|00080022 DA 20000101|00080023 DA 20000101|00080030 TM 120000|00080031 TM 120000|",
    "00080032 TM 120000|00080033 TM 120000|00080050 SH |00080060 CS CT|00080064 CS WSD|00080070 LO |",
    "00080080 LO |00080081 ST |00080090 PN |00081010 SH |00081030 LO |00081032 SQ |0008103e LO |00081040 LO |",
    "00081048 PN |00081050 PN |00081060 PN |00081070 PN |00081080 LO |00081090 LO |00081110 SQ *|(|",
    "00081150 UI 1.2.840.10008.3.1.2.3.1|00081155 UI 1.2.|)|]|00081111 SQ *|(|",
    "00081150 UI 1.2.840.10008.3.1.2.3.3|00081155 UI 1.2.|)|]|00081140 SQ |00082111 ST |",
    "00100000 UL ~40~00~00~00|00100010 PN A^B|00100020 LO |00100030 DA 19500101|00100040 CS F|00101000 LO |",
    "00101010 AS 050Y|00101020 DS 1.70|00101030 DS 70.0|00102160 SH |00102180 SH |001021b0 LT |",
    "001021c0 US ~00~00|00104000 LT |00120062 CS YES|00120063 LO |00180015 CS HEAD|00180050 DS 1.0|",
    "00180060 DS 120|00180088 DS 1.0|00181000 LO |00181020 LO |00181030 LO |00181200 DA 20000101|",
    "00181201 TM 120000|00185100 CS HFS|00200000 UL ~80~00~00~00|0020000d UI 1.3.6.1.4.1.|",
    "0020000e UI 1.3.6.1.4.1.|00200010 SH |00200011 IS 1|00200012 IS 1|00200013 IS 1|00200020 CS L\\P|",
    "00200032 DS 0.0\\0.0\\0.0|00200037 DS 1.0\\0.0\\0.0\\0.0\\1.0\\0.0|00200052 UI 1.3.6.1.4.1.|00200060 CS |",
    "00200062 CS U|00201040 LO |00201041 DS 0.0|00204000 LT |00280002 US ~01~00|00280004 CS MONOCHROME2|",
    "00280008 IS 1|00280010 US ~00~02|00280011 US ~00~02|00280030 DS 1.0\\1.0|00280100 US ~10~00|",
    "00280101 US ~10~00|00280102 US ~0f~00|00280103 US ~00~00|00281050 DS 40|00281051 DS 400|00281052 DS 0|",
    "00281053 DS 1|00281054 LO US|00320010 SH |0032000a CS |00321032 PN |00321060 LO |00324000 LT |",
    "00400244 DA 20000101|00400245 TM 120000|00400253 SH |00400254 LO |00400275 SQ |1|00080005 CS ISO_IR 100|",
    "00080012 DA 20000101|00080013 TM 120000|00080016 UI 1.2.840.10008.5.1.4.1.1.481.5|00080018 UI 1.2.|",
    "00080020 DA 20000101|00080030 TM 120000|00080050 SH |00080060 CS RTPLAN|00080070 LO |00080080 LO |",
    "00080090 PN |00081010 SH |00081040 LO |00081070 PN |00081090 LO |00100010 PN A^B|00100020 LO 1|",
    "00100030 DA |00100040 CS O|00181020 LO |0020000d UI 1.2.|0020000e UI 1.2.|00200010 SH 1|00200011 IS 2|",
    "300a0002 SH 1|300a0003 LO 1|300a0004 ST |300a0006 DA 20000101|300a0007 TM 120000|300a000c CS PATIENT|",
    "300a0010 SQ *|(|300a0012 IS 1|300a0013 UI 1.2.|300a0014 CS COORDINATES|300a0016 LO |",
    "300a0018 DS 0.0\\0.0\\0.0|300a0020 CS ORGAN_AT_RISK|300a0023 DS 0.0|300a0026 DS 30.0|)|]|300a0070 SQ *|(|",
    "300a0071 IS 1|300a0078 IS 30|300a0079 IS 1|300a0080 IS 1|300a00a0 IS 0|300c0004 SQ *|(|",
    "300a0082 DS 0.0\\0.0\\0.0|300a0084 DS 1.0|300a0086 DS 100.0|300c0006 IS 1|)|]|)|]|300a00b0 SQ *|(|",
    "00080070 LO |00080080 LO |00081090 LO |00181000 LO |300a00b2 SH |300a00b3 CS MU|300a00b4 DS 1000.0|",
    "300a00b6 SQ *|(|300a00b8 CS X|300a00bc IS 1|)|(|300a00b8 CS ASYMY|300a00bc IS 1|)|]|300a00c0 IS 1|",
    "300a00c2 LO 1|300a00c3 ST |300a00c4 CS STATIC|300a00c6 CS PHOTON|300a00ce CS TREATMENT|300a00d0 IS 0|",
    "300a00e0 IS 0|300a00ed IS 0|300a00f0 IS 0|300a010e DS 1.0|300a0110 IS 2|300a0111 SQ *|(|300a0112 IS 0|",
    "300a0114 DS 6.0|300a0115 DS 300.0|300a011a SQ *|(|300a00b8 CS MLCX|300a011c DS -50.0\\50.0|)|]|",
    "300a011e DS 0.0|300a011f CS NONE|300a0120 DS 0.0|300a0121 CS NONE|300a0122 DS 0.0|300a0123 CS NONE|",
    "300a0125 DS 0.0|300a0126 CS NONE|300a0128 DS |300a0129 DS |300a012a DS |300a012c DS 0.0\\0.0\\0.0|",
    "300a0134 DS 0.0|300c0051 SQ *|(|300a010c DS 1.0|300c0051 IS 1|)|]|)|]|300c006a IS 1|)|]|300a0180 SQ *|(|",
    "00185100 CS HFS|300a0182 IS 1|300a01b0 CS ISOCENTRIC|)|]|300c0002 SQ |300c0060 SQ *|(|",
    "00081150 UI 1.2.840.10008.5.1.4.1.1.481.3|00081155 UI 1.2.|)|]|300e0002 CS UNAPPROVED|1|",
    "00080016 UI 1.2.840.10008.5.1.4.1.1.481.3|00080018 UI 1.2.|00080060 CS RTSTRUCT|30060002 SH |",
    "30060004 LO |30060008 DA 20000101|30060009 TM 120000|30060010 SQ *|(|00200052 UI 1.2.|30060012 SQ *|(|",
    "00081150 UI 1.2.840.10008.3.1.2.3.1|00081155 UI 1.2.|30060014 SQ *|(|0020000e UI 1.2.|30060016 SQ *|(|",
    "00081150 UI 1.2.840.10008.5.1.4.1.1.2|00081155 UI 1.2.|)|]|)|]|)|]|)|]|30060020 SQ *|(|30060022 IS 1|",
    "30060024 UI 1.2.|30060026 LO |30060036 CS AUTOMATIC|)|]|30060039 SQ *|(|3006002a IS 255\\0\\0|",
    "30060040 SQ *|(|30060016 SQ *|(|00081150 UI 1.2.840.10008.5.1.4.1.1.2|00081155 UI 1.2.|)|]|",
    "30060042 CS CLOSED_PLANAR|30060046 IS 100|30060050 DS 0.0\\0.0\\0.0\\1.0\\0.0\\0.0|)|]|30060084 IS 1|)|]|",
    "30060080 SQ *|(|30060082 IS 1|30060084 IS 1|300600a4 CS ORGAN|300600a6 PN |)|]|300e0002 CS UNAPPROVED|1|",
    "00080016 UI 1.2.840.10008.5.1.4.1.1.88.33|00080018 UI 1.2.|00080060 CS SR|0040a040 CS CONTAINER|",
    "0040a043 SQ *|(|00080100 SH 126000|00080102 SH DCM|00080103 SH 01|",
    "00080104 LO Imaging Measurement Report|)|]|0040a050 CS SEPARATE|0040a073 SQ *|(|0040a027 LO |",
    "0040a030 DT 20000101120000|0040a075 PN |0040a088 SQ |)|]|0040a360 SQ |0040a372 SQ |0040a375 SQ *|(|",
    "00081115 SQ *|(|00081199 SQ *|(|00081150 UI 1.2.840.10008.5.1.4.1.1.7|00081155 UI 1.2.|)|]|",
    "0020000e UI 1.2.|)|]|0020000d UI 1.2.|)|]|0040a491 CS COMPLETE|0040a493 CS UNVERIFIED|0040a504 SQ *|(|",
    "00080105 CS DCMR|0040db00 CS 1500|)|]|0040a730 SQ *|(|0040a010 CS HAS OBS CONTEXT|0040a040 CS CODE|",
    "0040a043 SQ *|(|00080100 SH 121005|00080102 SH DCM|00080104 LO Observer Type|)|]|0040a168 SQ *|(|",
    "00080100 SH 121006|00080102 SH DCM|00080104 LO Person|)|]|)|(|0040a010 CS HAS CONCEPT MOD|",
    "0040a040 CS PNAME|0040a043 SQ *|(|00080100 SH 121008|00080102 SH DCM|00080104 LO Person Observer Name|)|",
    "]|0040a123 PN |)|(|0040a010 CS CONTAINS|0040a040 CS TEXT|0040a043 SQ *|(|00080100 SH 121071|",
    "00080102 SH DCM|00080104 LO Finding|)|]|0040a160 UT |)|(|0040a010 CS CONTAINS|0040a040 CS NUM|",
    "0040a043 SQ *|(|00080100 SH G-D7FE|00080102 SH SRT|00080104 LO Length|)|]|0040a300 SQ *|(|004008ea SQ *|",
    "(|00080100 SH mm|00080102 SH UCUM|00080103 SH 1.4|00080104 LO millimeter|)|]|0040a30a DS 1.0|)|]|)|(|",
    "0040a010 CS INFERRED FROM|0040a040 CS IMAGE|00081199 SQ *|(|00081150 UI 1.2.840.10008.5.1.4.1.1.1|",
    "00081155 UI 1.2.|)|]|0040a043 SQ *|(|00080100 SH 111028|00080102 SH DCM|00080104 LO Image Library|)|]|)|",
    "]|1|00080016 UI 1.2.840.10008.5.1.4.1.1.11.1|00080060 CS PR|00700001 SQ *|(|00081140 SQ *|(|",
    "00081150 UI 1.2.840.10008.5.1.4.1.1.1.1|00081155 UI 1.2.|)|]|00700002 CS LAYER|00700008 SQ *|(|",
    "00700003 CS PIXEL|00700004 CS PIXEL|00700006 ST |00700010 FL ~00~00~00~00~00~00~00~00|)|]|00700009 SQ *|",
    "(|00700005 CS PIXEL|00700020 US ~02~00|00700021 US ~02~00|00700022 FL ~00~00~80~3f~00~00~80~3f|",
    "00700023 CS POLYLINE|00700024 CS N|)|]|)|]|00700041 CS N|00700042 US ~00~00|0070005a SQ *|(|",
    "00700052 SL ~01~00~00~00~01~00~00~00|00700053 SL ~00~02~00~00~00~02~00~00|00700100 CS SCALE TO FIT|",
    "00700101 DS 1\\1|)|]|00700060 SQ *|(|00700002 CS LAYER|00700062 IS 1|)|]|00700080 CS LABEL|00700081 LO |",
    "00700082 DA 20000101|00700083 TM 120000|00700084 PN |20500020 CS IDENTITY|1|",
    "00080016 UI 1.2.840.10008.5.1.4.1.1.9.1.1|00080060 CS ECG|003a0005 US ~01~00|003a0010 UL ~e8~03~00~00|",
    "003a001a DS 500|54000100 SQ *|(|54001004 US ~10~00|54001006 CS SS|54001010 OW ~00~00~00~00|)|]|",
    "00420010 ST |00420011 OB ~00~00|00420012 LO application/pdf|",
};

#define OPEN UINT32_MAX
#define ITEM 0xfffee000u

enum part { START, HEAD, VALUE };

struct level {
    uint32_t end, tag, before, earlier;
    bool raw;
};

struct known {
    uint32_t tag, vr, length, value;
};

struct state {
    struct ref_mix m;
    /* 4.16.1 */
    uint32_t Z, at, o, channels, head_size, length_size, tag, vr, length, old_length, old_value;
    unsigned form, D, E, B;
    enum part part;
    uint8_t head[12];
    struct level level[16];
    struct known known[1 << 10];
    uint32_t word, last, shape; /* 4.16.2 */
};

/* hash(h, v[0], v[1], ...) */
#define HASH(h, ...) \
    hash_all(h, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static uint32_t hash_all(uint32_t h, const uint32_t *v, size_t count)
{
    for (size_t i = 0; i < count; i++) h = ref_mix_hash(h, v[i]);
    return h;
}

static bool has(const char *vrs, uint32_t vr)
{
    for (size_t i = 0; i + 1 < strlen(vrs); i += 3)
        if (((uint32_t)vrs[i] << 8 | (uint32_t)vrs[i + 1]) == vr) return true;
    return false;
}

static bool is_long(uint32_t vr)
{
    return has("OB OD OF OL OV OW SQ SV UC UN UR UT UV", vr);
}

static bool is_short(uint32_t vr)
{
    return has("AE AS AT CS DA DS DT FD FL IS LO LT PN SH SL SS ST TM UI UL US", vr);
}

/* ---- 4.16.1 ---- */

static uint32_t make_number(const struct state *z, const uint8_t *bytes, uint32_t count)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; i++) value = value << 8 | bytes[z->B ? i : count - 1 - i];
    return value;
}

static struct known *known_of(struct state *z, uint32_t tag)
{
    return &z->known[ref_mix_hash(0, tag) >> 22];
}

static uint32_t alike(uint32_t tag)
{
    if (tag == 0x00020002 || tag == 0x00041510 || tag == 0x00081150) return 0x00080016;
    if (tag == 0x00020003 || tag == 0x00041511 || tag == 0x00081155) return 0x00080018;
    return tag == 0x00041512 ? 0x00020010 : tag;
}

static void begin_element(struct state *z)
{
    while (z->D > 0 && z->at >= z->level[z->D].end) z->D--;
    z->part = HEAD;
    z->o = 0;
    z->head_size = 12;
}

static bool push(struct state *z, uint32_t a, uint32_t n)
{
    if (z->D == 15) return false;
    uint32_t outer = z->level[z->D++].tag;
    uint64_t end = (uint64_t)a + n;
    z->level[z->D] = (struct level){.end = n == OPEN    ? OPEN
                                           : end < z->Z ? (uint32_t)end
                                                        : z->Z,
                                    .tag = z->tag == ITEM ? outer : z->tag};
    return true;
}

static void take_tag(struct state *z)
{
    z->tag = make_number(z, z->head, 2) << 16 | make_number(z, z->head + 2, 2);
    const struct known *k = known_of(z, z->tag);
    bool is_it = k->tag == z->tag;
    z->vr = is_it ? k->vr : 0;
    z->old_length = is_it ? k->length : 0;
    z->length_size = 4;
    z->head_size = z->tag >= ITEM && z->tag <= 0xfffee0dd ? 8 : 12;
}

static void take_element(struct state *z)
{
    struct level *level = &z->level[z->D];
    uint32_t u = alike(z->tag);
    z->length = make_number(z, z->head + z->head_size - z->length_size, z->length_size);
    level->earlier = level->before;
    level->before = z->tag;
    z->old_value = known_of(z, u)->tag == u ? known_of(z, u)->value : 0;
    *known_of(z, z->tag) = (struct known){z->tag, z->vr, z->length, z->m.size};
    *known_of(z, u) = (struct known){u, z->vr, z->length, z->m.size};
    if (z->tag == 0xfffee00d || z->tag == 0xfffee0dd) {
        z->D -= z->D > 0;
    } else if ((z->tag == ITEM && !level->raw) || has("SQ", z->vr) || z->length == OPEN) {
        if (push(z, z->at, z->length)) z->level[z->D].raw = z->tag != ITEM && has("OB OD OF OL OV OW", z->vr);
    } else if (z->length > 0) {
        z->part = VALUE;
        z->o = 0;
        return;
    }
    begin_element(z);
}

static void take_in_head(struct state *z, uint8_t byte)
{
    z->head[z->o++] = byte;
    if (z->o == 2) z->B = (z->form & 2) && !(z->head[0] == 2 && z->head[1] == 0);
    if (z->o == 4) take_tag(z);
    if (z->o == 6 && z->head_size == 12) {
        uint32_t v = (uint32_t)z->head[4] << 8 | z->head[5];
        z->E = is_long(v) || is_short(v);
        if (z->E) z->vr = v;
        if (!is_long(v)) z->head_size = 8;
        if (is_short(v)) z->length_size = 2;
    }
    if (z->o == z->head_size) take_element(z);
}

static void take_in_value(struct state *z, uint8_t byte)
{
    if (z->o < 4) z->head[z->o] = byte;
    z->o++;
    if (z->o == 2 && z->tag == 0x003a0005) z->channels = make_number(z, z->head, 2) % 256;
    if (z->o == z->length) {
        begin_element(z);
    } else if (z->o == 4 && memcmp(z->head, z->B ? "\xff\xfe\xe0\x00" : "\xfe\xff\x00\xe0", 4) == 0) {
        push(z, z->at - 4, z->length);
        begin_element(z);
        z->o = 4;
        take_tag(z);
    }
}

/* ---- 4.16.2 ---- */

static void follow(struct state *z, uint8_t byte)
{
    struct ref_match *second = &z->m.match[1];
    bool digit = byte >= '0' && byte <= '9', capital = byte >= 'A' && byte <= 'Z',
         small = (byte >= 'a' && byte <= 'z') || byte > 127;
    bool was = second->exists;
    second->exists = z->part == VALUE && z->old_value > 0;
    if (z->part != VALUE) return;
    if (z->o == 0) {
        second->length = z->word = z->last = z->shape = 0;
    } else {
        second->length = was && second->e == byte ? second->length + 1 : 0;
        if (digit || capital || small) {
            z->word = ref_mix_hash(z->word, byte | 32u);
        } else if (z->word > 0) {
            z->last = z->word;
            z->word = 0;
        }
        z->shape = (256 * z->shape + (digit ? '0' : capital ? 'A' : small ? 'a' : byte)) % (1u << 24);
    }
    if (second->exists) second->e = z->m.history[z->old_value + z->o];
}

/* ---- 4.16.3 ---- */

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Byte i of a number that takes count bytes. */
static uint32_t byte_of(const struct state *z, uint32_t number, uint32_t i, uint32_t count)
{
    return number >> 8 * (z->B ? count - 1 - i : i) & 255;
}

static void start_contexts(struct state *z)
{
    uint32_t *h = z->m.h, b1 = ref_back(&z->m, 1), b2 = ref_back(&z->m, 2), b3 = ref_back(&z->m, 3);
    z->m.s = 0;
    h[0] = HASH(1, z->o);
    h[1] = HASH(2, z->o, b1);
    h[2] = HASH(3, b1);
    h[3] = HASH(4, b2, b1);
    h[4] = HASH(5, b3, b2, b1);
    for (int i = 5; i < 12; i++) h[i] = 6;
}

static void head_contexts(struct state *z)
{
    const struct level *level = &z->level[z->D];
    uint32_t *h = z->m.h, o = z->o, b1 = ref_back(&z->m, 1), b2 = ref_back(&z->m, 2), b3 = ref_back(&z->m, 3),
             b4 = ref_back(&z->m, 4);
    uint32_t w = 4 * o + 2 * z->E + z->B, f = z->head_size - z->length_size;
    uint32_t g = o < 4 ? ref_mix_hash_bytes(w, z->head, o) : ref_mix_hash_bytes(HASH(w, z->tag), z->head + 4, o - 4);
    uint32_t y = o >= 4 && o >= f, q = level->end == OPEN, R = q ? 0 : level->end - z->at - (z->head_size - o);
    uint32_t F = y ? byte_of(z, R, o - f, z->length_size) : 256;
    z->m.s = o < 4 ? 1 : 2;
    h[0] = HASH(10, g);
    h[1] = HASH(11, g, level->before);
    h[2] = HASH(12, g, level->before, level->tag);
    h[3] = HASH(13, g, level->before, level->earlier);
    h[4] = HASH(14, w);
    h[5] = HASH(15, g, o < 4 ? z->length : z->old_length);
    h[6] = HASH(16, F, w, q);
    h[7] = HASH(17, F, g, level->before);
    h[8] = HASH(18, o, b2, b1);
    h[9] = HASH(19, o, b4, b3, b2, b1);
    h[10] = HASH(20, w, z->vr, b1);
    h[11] = HASH(21, z->vr, y, b1);
}

static void value_contexts(struct state *z)
{
    const struct level *level = &z->level[z->D];
    const struct ref_match *second = &z->m.match[1];
    uint32_t *h = z->m.h, o = z->o, b1 = o > 0 ? ref_back(&z->m, 1) : 256, b2 = ref_back(&z->m, 2),
             b3 = ref_back(&z->m, 3), b4 = ref_back(&z->m, 4);
    uint32_t r = least(z->length - o, 4), p = least(o, 255), e = second->exists ? second->e : UINT32_MAX;
    uint32_t G = level->end == OPEN ? 0 : level->end, F = o > 3 ? 256 : byte_of(z, G, o, 4);
    unsigned s = has("UI", z->vr)                     ? 4
                 : has("AS DA DS DT IS TM", z->vr)    ? 5
                 : has("AE CS SH", z->vr)             ? 6
                 : has("LO LT PN ST UC UR UT", z->vr) ? 7
                                                      : 3;
    z->m.s = s;
    h[0] = HASH(30, z->tag, p);
    h[1] = HASH(31, z->vr);
    h[2] = HASH(32, z->vr, p, z->length);
    h[3] = HASH(33, b1);
    h[4] = HASH(34, b2, b1);
    h[5] = HASH(35, b3, b2, b1);
    h[6] = HASH(36, s);
    h[7] = HASH(37, e, least(second->length, 8), z->vr);
    h[8] = HASH(38, z->vr, r, b1);
    h[9] = s == 3 ? HASH(39, F, z->tag, p) : HASH(42, z->word, z->vr);
    h[10] = s == 3 ? HASH(40, b2, p % 2, z->vr) : HASH(43, z->word, z->last);
    h[11] = s == 3 ? HASH(41, b4, p % 4, b2) : HASH(44, z->shape, z->vr, least(r, 2));
}

/* The number of 16 bits whose low byte is so many bytes back. */
static uint32_t sample(const struct state *z, uint32_t bytes)
{
    return ref_back(&z->m, bytes) + 256 * ref_back(&z->m, bytes - 1);
}

static void wave_contexts(struct state *z)
{
    uint32_t *h = z->m.h, y = z->o % 2, step = 2 * z->channels, b = y ? ref_back(&z->m, 1) : 256;
    uint32_t S = sample(z, step + y), T = sample(z, 2 * step + y), U = (2 * S - T) % 65536, n[2] = {S, U};
    for (int i = 0; i < 2; i++) n[i] = (y ? (n[i] + (b - n[i] + 128) % 256 - 128) / 256 : n[i]) % 256;
    h[0] = HASH(45, b, S, T);
    h[2] = HASH(46, b, S);
    h[8] = HASH(47, b, U);
    h[9] = HASH(48, y, n[0]);
    h[10] = HASH(49, y, n[1]);
    h[11] = HASH(50, y, n[0], n[1]);
}

/* ---- 4.16 ---- */

static void begin_string(struct state *z, uint32_t size, unsigned form)
{
    z->Z = size;
    z->form = form;
    z->at = z->o = z->D = z->E = z->B = z->vr = z->length = z->old_length = z->channels = 0;
    z->level[0] = (struct level){.end = size};
    z->part = START;
    z->m.match[1] = (struct ref_match){.exists = false};
    if (form & 1) begin_element(z);
}

static uint8_t next_byte(struct state *z, uint8_t known)
{
    if (z->part == START)
        start_contexts(z);
    else if (z->part == HEAD)
        head_contexts(z);
    else
        value_contexts(z);
    if (z->part == VALUE && z->tag == 0x54001010 && z->m.s == 3 && !z->B && z->channels > 0) wave_contexts(z);
    uint8_t byte = ref_mixed_byte(&z->m, known);
    z->at++;
    if (z->part == HEAD)
        take_in_head(z, byte);
    else if (z->part == VALUE)
        take_in_value(z, byte);
    else if (++z->o == 132)
        begin_element(z);
    follow(z, byte);
    return byte;
}

/* ---- 4.16.4 ---- */

static void know(struct state *z, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) next_byte(z, ((const uint8_t *)bytes)[i]);
}

static uint8_t hexadecimal(const char *two)
{
    static const char digits[] = "0123456789abcdef";
    return (uint8_t)(16 * (strchr(digits, two[0]) - digits) + (strchr(digits, two[1]) - digits));
}

static void know_element(struct state *z, const char *text, size_t size)
{
    uint32_t vr = (uint32_t)text[9] << 8 | (uint32_t)text[10];
    bool has_four = has("SQ OB OW UT", vr), is_open = text[12] == '*';
    uint8_t value[256],
        numbers[4] = {hexadecimal(text + 2), hexadecimal(text), hexadecimal(text + 6), hexadecimal(text + 4)};
    uint8_t length[6] = {0};
    unsigned count = 0;
    for (size_t i = 12; i < size && !is_open; i++) {
        bool is_byte = text[i] == '~';
        value[count++] = is_byte ? hexadecimal(text + i + 1) : (uint8_t)text[i];
        if (is_byte) i += 2;
    }
    if (count % 2 == 1) value[count++] = has("UI OB OW", vr) ? 0 : ' ';
    length[has_four ? 2 : 0] = (uint8_t)count;
    if (is_open) memset(length + 2, 255, 4);
    know(z, numbers, 4);
    know(z, text + 9, 2);
    know(z, length, has_four ? 6 : 2);
    know(z, value, count);
}

static void know_part(struct state *z, const char *text, size_t size)
{
    static const uint8_t start[132] = {[128] = 'D', 'I', 'C', 'M'};
    if (size > 1) {
        know_element(z, text, size);
    } else if (*text == '0' || *text == '1') {
        begin_string(z, SEEN, *text == '1');
        if (*text == '0') know(z, start, sizeof start);
    } else {
        know(z,
             *text == '('   ? "\xfe\xff\x00\xe0\xff\xff\xff\xff"
             : *text == ')' ? "\xfe\xff\x0d\xe0\0\0\0\0"
                            : "\xfe\xff\xdd\xe0\0\0\0\0",
             8);
    }
}

static void know_all(struct state *z)
{
    z->m.known = true;
    for (size_t i = 0; i < sizeof seen_before / sizeof *seen_before; i++)
        for (const char *text = seen_before[i]; *text; text = strchr(text, '|') + 1)
            know_part(z, text, (size_t)(strchr(text, '|') - text));
    z->m.known = false;
}

bool ref_elements(const uint8_t *code, uint64_t size, uint64_t plain_size, uint64_t room, ref_sink *put, void *to)
{
    static const int32_t weights[8] = {5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000};
    if (size > CODE || plain_size == 0 || plain_size > PLAIN || room < LEAST_ROOM)
        return ref_fail("a piece of elements is too large");
    struct state *z = ref_alloc(1, sizeof *z);
    uint8_t *bytes = ref_alloc((size_t)plain_size, 1);
    ref_mix_begin(&z->m, 12, 8, weights, SEEN + PLAIN);
    z->m.matches = 2;
    z->m.n = 12;
    know_all(z);
    ref_mix_read(&z->m, code, (size_t)size);
    begin_string(z, (uint32_t)plain_size, ref_even(&z->m, 2));
    for (size_t i = 0; i < plain_size && !z->m.bad; i++) bytes[i] = next_byte(z, 0);
    return z->m.bad ? ref_fail("the code of elements ends too early") : put(to, bytes, (size_t)plain_size);
}
