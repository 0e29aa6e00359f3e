/* The VLE family on the CPU: the papers' baseline CPU-VLE (Fuentes-Alventosa et al. 2014 after Balevic: a serial coder
 * that appends codes to a word), as fast as plain C is in one pass; its decoder; and the lists of rows.
 *
 * The coder gathers as many codes as surely fit a 64-bit word together with 7 bits left over. It stores all 8 bytes and
 * advances by the whole bytes, so that no branch depends on the data. */
#include <string.h>

#include "vle.h"

#ifndef TSR_WITH_CUDA
#define TSR_WITH_CUDA 0
#endif

size_t tsr_vle_bound(size_t count, int longest)
{
    const size_t eights = count / 8 + 1; /* 8 symbols take longest bytes; no product of a size_t overflows */
    return (eights * (size_t)longest + 15u) / 16u * 16u + 16u;
}

static size_t segments_of(size_t count)
{
    return (count + TSR_VLE_SEGMENT - 1) / TSR_VLE_SEGMENT;
}

static const char *only_policy(int policy)
{
    (void)policy;
    return "serial";
}

/* ---- Encoder ------------------------------------------------------------------------------------------------ */

struct serial_writer {
    uint8_t *next;
    uint64_t held; /* the low held_bits bits wait to be stored */
    unsigned held_bits;
};

static inline void store_big_endian(uint8_t *at, uint64_t value)
{
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    value = __builtin_bswap64(value);
    memcpy(at, &value, sizeof value);
#else
    for (int i = 0; i < 8; i++) at[i] = (uint8_t)(value >> (56 - 8 * i));
#endif
}

/* Stores the whole bytes that wait. held_bits is 1..64 before and 0..7 after. */
static inline void spill(struct serial_writer *w)
{
    store_big_endian(w->next, w->held << (64u - w->held_bits));
    w->next += w->held_bits / 8u;
    w->held_bits %= 8u;
}

/* each: codes between two spills; each * longest + 7 <= 64. Returns the bits of the segment. */
static inline uint64_t encode_segment(struct serial_writer *w, const uint64_t *entry, const uint8_t *in, size_t count,
                                      size_t each)
{
    uint64_t bits = 0;
    size_t i = 0;
    for (; i + each <= count; i += each) {
        const unsigned before = w->held_bits;
        for (size_t k = 0; k < each; k++) {
            const uint64_t e = entry[in[i + k]];
            w->held = w->held << (e & 63u) | e >> 8;
            w->held_bits += (unsigned)(e & 63u);
        }
        bits += w->held_bits - before;
        if (w->held_bits > 0) spill(w);
    }
    for (; i < count; i++) {
        const uint64_t e = entry[in[i]];
        w->held = w->held << (e & 63u) | e >> 8;
        w->held_bits += (unsigned)(e & 63u);
        bits += e & 63u;
        if (w->held_bits > 0) spill(w);
    }
    return bits;
}

static int encode_serially(const void *job_, int policy)
{
    const struct tsr_vle_job *job = job_;
    (void)policy;
    uint64_t entry[TSR_BYTE_VALUES]; /* code << 8 | length */
    for (int s = 0; s < TSR_BYTE_VALUES; s++) entry[s] = (uint64_t)job->code->bits[s] << 8 | job->code->length[s];
    struct serial_writer w = {job->out, 0, 0};
    uint64_t bits = 0;
    for (size_t segment = 0; segment < segments_of(job->count); segment++) {
        const uint8_t *in = job->in + segment * TSR_VLE_SEGMENT;
        const size_t left = job->count - segment * TSR_VLE_SEGMENT;
        const size_t count = left < TSR_VLE_SEGMENT ? left : TSR_VLE_SEGMENT;
        const uint64_t own = job->longest <= 14   ? encode_segment(&w, entry, in, count, 4)
                             : job->longest <= 28 ? encode_segment(&w, entry, in, count, 2)
                                                  : encode_segment(&w, entry, in, count, 1);
        if (job->segment_bits) job->segment_bits[segment] = (uint16_t)own;
        bits += own;
    }
    *job->bits = bits;
    return 0;
}

static size_t no_workspace(const void *job, int policy)
{
    (void)job;
    (void)policy;
    return 0;
}

const struct tsr_kernel_row tsr_vle_cpu = {"CPU-VLE",
                                           "the papers' serial baseline",
                                           0,
                                           1,
                                           0,
                                           only_policy,
                                           no_workspace,
                                           {{"encode", encode_serially}, {NULL, NULL}}};

/* ---- Decoder ------------------------------------------------------------------------------------------------ */

enum { TABLE_BITS = 12, LONGER = 255 };

/* For each value of the next TABLE_BITS bits: the codeword that begins there. length 0: no codeword; LONGER: a longer
 * one. */
struct serial_table {
    struct {
        uint8_t symbol, length;
    } at[1 << TABLE_BITS];
    uint32_t first[TSR_BYTE_VALUES]; /* longer codewords, left-aligned, ascending */
    uint8_t symbol[TSR_BYTE_VALUES];
    int longer;
};

static void build_table(struct serial_table *t, const struct tsr_byte_code *code)
{
    memset(t->at, 0, sizeof t->at);
    t->longer = 0;
    for (int s = 0; s < TSR_BYTE_VALUES; s++) {
        const uint32_t length = code->length[s];
        if (length == 0 || length > TSR_BYTE_CODE_LIMIT) continue;
        const uint32_t first = code->bits[s] << (TSR_BYTE_CODE_LIMIT - length);
        const size_t at = first >> (TSR_BYTE_CODE_LIMIT - TABLE_BITS);
        if (length <= TABLE_BITS) {
            for (size_t i = 0; i < (size_t)1 << (TABLE_BITS - length); i++) {
                t->at[at + i].symbol = (uint8_t)s;
                t->at[at + i].length = (uint8_t)length;
            }
            continue;
        }
        t->at[at].length = LONGER;
        int place = t->longer++;
        for (; place > 0 && t->first[place - 1] > first; place--) {
            t->first[place] = t->first[place - 1];
            t->symbol[place] = t->symbol[place - 1];
        }
        t->first[place] = first;
        t->symbol[place] = (uint8_t)s;
    }
}

/* The longer codeword that begins at the highest bit of next, or -1. */
static int find_longer(const struct serial_table *t, const struct tsr_byte_code *code, uint32_t next)
{
    int low = 0, high = t->longer; /* the last one with first <= next is in low-1 .. high-1 */
    while (low < high) {
        const int middle = (low + high) / 2;
        if (t->first[middle] <= next)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return -1;
    const int symbol = t->symbol[low - 1];
    return (next ^ t->first[low - 1]) >> (TSR_BYTE_CODE_LIMIT - code->length[symbol]) == 0 ? symbol : -1;
}

static inline uint64_t load_big_endian(const uint8_t *at)
{
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return __builtin_bswap64(value);
#else
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value = value << 8 | at[i];
    return value;
#endif
}

static int decode_serially(const void *job_, int policy)
{
    const struct tsr_vle_decode_job *job = job_;
    struct serial_table *table = job->workspace;
    (void)policy;
    build_table(table, job->code);
    *job->error = 1;
    uint64_t at = 0;
    size_t done = 0;
    while (done < job->count) {
        if (at >= job->bits) return 0;
        uint64_t window = load_big_endian(job->in + at / 8) << (at % 8); /* at least 57 bits are valid: 4 short codes */
        for (int k = 0; k < 4 && done < job->count; k++) {
            const size_t index = (size_t)(window >> (64 - TABLE_BITS));
            uint32_t length = table->at[index].length, symbol = table->at[index].symbol;
            if (length == LONGER) {
                if (k > 0) break; /* begins again with a full window */
                const int found = find_longer(table, job->code, (uint32_t)(window >> 32));
                if (found < 0) return 0;
                symbol = (uint32_t)found;
                length = job->code->length[symbol];
                k = 4;
            }
            if (length == 0) return 0;
            job->out[done++] = (uint8_t)symbol;
            window <<= length;
            at += length;
        }
    }
    *job->error = at != job->bits;
    return 0;
}

static size_t table_bytes(const void *job, int policy)
{
    (void)job;
    (void)policy;
    return sizeof(struct serial_table);
}

const struct tsr_kernel_row tsr_vle_decode_cpu = {
    "CPU", "table of 12 bits, serial", 0, 1, 0, only_policy, table_bytes, {{"decode", decode_serially}, {NULL, NULL}}};

/* ---- Rows --------------------------------------------------------------------------------------------------- */

static const struct tsr_kernel_row *const encoders[] = {
    &tsr_vle_cpu,
#if TSR_WITH_CUDA
    &tsr_vle_pavle, &tsr_vle_cuvle, &tsr_vle_gvle, &tsr_vle_single_pass,
#endif
};

static const struct tsr_kernel_row *const decoders[] = {
    &tsr_vle_decode_cpu,
#if TSR_WITH_CUDA
    &tsr_vle_decode_cuda,
#endif
};

const struct tsr_kernel_row *const *tsr_vle_encoders(int *count)
{
    *count = (int)(sizeof encoders / sizeof encoders[0]);
    return encoders;
}

const struct tsr_kernel_row *const *tsr_vle_decoders(int *count)
{
    *count = (int)(sizeof decoders / sizeof decoders[0]);
    return decoders;
}
