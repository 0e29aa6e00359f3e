/* Entries of slices to strings of rANS for AVX2: four slices by turns, since an entry waits for the one before it, and
 * raw bits as a symbol like others, so that no entry needs a branch.
 * test_coefficients_cpu holds it equal. Part of coefficients_form.h.
 * Gain: with rans_entries_avx2.h 1.55 times all of the stage (tests/bench/decisions/032). */

enum { PUT_SLICES = 4, PUT_ROWS = TSR_COEFFICIENT_CELLS + 1 };

/* tsr_rans_put: after a word has left a state above most, it becomes state + bias + others * (state / frequency), the
 * quotient by the high half of a product. Of the frequency 1 the quotient is one too small, and bias has others more.
 * Raw bits: the frequency 1 and others as 2^bits has them, with the bits added. */
struct put_symbol {
    uint64_t inverse;
    uint32_t most;
    uint16_t others, bias;
};

struct put_tables {
    const struct put_symbol *row[PUT_ROWS]; /* by cell, and RAW_ROW */
    struct put_symbol raw[17], symbol[TSR_COEFFICIENT_TABLES][TSR_COEFFICIENT_SYMBOLS];
};

static_assert(sizeof(struct put_tables) <= PUT_TABLES_BYTES, "scratch has room for it");

static inline struct put_symbol put_symbol(const struct tsr_rans_symbol *symbol)
{
    const uint32_t f = symbol->frequency, inverse = symbol->inverse, rest = 0u - f * inverse; /* 2^32 - f * inverse */
    struct put_symbol out;
    /* Above 2^64 / f by at most 4097: exact for 32 bits. */
    out.inverse = f == 1 ? UINT64_MAX : ((uint64_t)inverse << 32) + (uint64_t)rest * inverse + rest + 1;
    out.most = (f << (32 - TSR_RANS_BITS)) - 1u;
    out.others = (uint16_t)(TSR_RANS_TOTAL - f);
    out.bias = (uint16_t)(symbol->start + (f == 1 ? out.others : 0u));
    return out;
}

static void list_put_symbols(struct put_tables *tables, const struct tsr_coefficient_model *model,
                             const tsr_coefficient_codes *codes)
{
    for (int g = 0; g < TSR_COEFFICIENT_GROUPS; g++)
        for (int t = g * TSR_ENERGY_CLASSES; t < g * TSR_ENERGY_CLASSES + model->tables[g]; t++) {
            uint32_t end = 0;
            for (int s = 0; s < TSR_COEFFICIENT_SYMBOLS && end < TSR_RANS_TOTAL; s++) {
                tables->symbol[t][s] = put_symbol(&codes[t][s]);
                end += codes[t][s].frequency;
            }
        }
    for (int c = 0; c < TSR_COEFFICIENT_CELLS; c++) tables->row[c] = tables->symbol[tsr_coefficient_table(model, c)];
    for (int bits = 0; bits <= 16; bits++) {
        const uint32_t others = (1u << bits) - 1u;
        tables->raw[bits] = (struct put_symbol){UINT64_MAX, UINT32_MAX >> bits, (uint16_t)others, (uint16_t)others};
    }
    tables->row[RAW_ROW] = tables->raw;
}

/* A slice at work. */
struct put_work {
    const uint32_t *entries;
    size_t count; /* entries that are left */
    uint8_t *to;  /* the word before stands here */
    uint32_t state;
};

static inline void put_entry(struct put_work *work, uint32_t entry, const struct put_tables *tables)
{
    const struct put_symbol *symbol = tables->row[entry >> 8 & 255u] + (entry & 255u);
    const uint32_t leaves = work->state > symbol->most;
    const uint16_t word = (uint16_t)work->state;
    memcpy(work->to - 2, &word, sizeof word); /* a word that stays is written over */
    work->to -= 2 * leaves;
    const uint64_t state = work->state >> (16 * leaves);
    unsigned long long quotient;
    (void)_mulx_u64(state, symbol->inverse, &quotient);
    work->state = (uint32_t)state + (symbol->bias + (entry >> 16)) + (uint32_t)quotient * symbol->others;
}

static inline void put_turns(struct put_work *const *active, int count, size_t turns, const struct put_tables *tables)
{
    struct put_work work[PUT_SLICES];
    for (int i = 0; i < count; i++) work[i] = *active[i];
    for (; turns > 0; turns--)
        for (int i = 0; i < count; i++) put_entry(&work[i], work[i].entries[--work[i].count], tables);
    for (int i = 0; i < count; i++) *active[i] = work[i];
}

/* Puts all entries of these slices. */
static void put_slices(struct put_work *work, int count, const struct put_tables *tables)
{
    struct put_work *active[PUT_SLICES];
    for (int i = 0; i < count; i++) active[i] = &work[i];
    while (count > 0) {
        size_t turns = active[0]->count;
        for (int i = 1; i < count; i++) turns = active[i]->count < turns ? active[i]->count : turns;
        if (count == 4)
            put_turns(active, 4, turns, tables);
        else if (count == 3)
            put_turns(active, 3, turns, tables);
        else if (count == 2)
            put_turns(active, 2, turns, tables);
        else
            put_turns(active, 1, turns, tables);
        int left = 0;
        for (int i = 0; i < count; i++)
            if (active[i]->count > 0) active[left++] = active[i];
        count = left;
    }
}

/* tsr_coefficient_put, which looks at the room that is left. */
static void put_checked(struct tsr_rans_writer *writer, const uint32_t *entries, size_t count,
                        const struct put_tables *tables)
{
    for (size_t i = count; i > 0 && !writer->overflow; i--) {
        uint8_t bytes[4];
        struct put_work work = {NULL, 0, bytes + sizeof bytes, writer->state};
        put_entry(&work, entries[i - 1], tables);
        writer->state = work.state;
        tsr_rans_write_word(writer, (uint16_t)(bytes[2] | bytes[3] << 8), work.to != bytes + sizeof bytes);
    }
}

/* Up to PUT_SLICES slices. */
static void code_rans_slices(struct slice_coder *coder, const uint32_t *const *entries, const size_t *count, int slices,
                             uint32_t *lengths)
{
    const size_t part = (coder->capacity - coder->size) / (size_t)slices & ~(size_t)1;
    uint8_t *const to = coder->payload + coder->size;
    struct put_work work[PUT_SLICES];
    bool fit = true;
    for (int i = 0; i < slices; i++) {
        fit &= part >= 2 * count[i] + 4;
        work[i] = (struct put_work){entries[i], count[i], to + (size_t)(i + 1) * part, 1};
    }
    if (fit) put_slices(work, slices, coder->put);
    for (int i = 0; i < slices; i++) {
        struct tsr_rans_writer writer;
        size_t capacity = part;
        if (fit) {
            writer = tsr_rans_writer(to + (size_t)i * part, part);
            writer.first = (size_t)(work[i].to - writer.bytes);
            writer.state = work[i].state;
        } else {
            capacity = coder->capacity - coder->size;
            writer = tsr_rans_writer(coder->payload + coder->size, capacity);
            put_checked(&writer, entries[i], count[i], coder->put);
        }
        lengths[i] = (uint32_t)end_rans(coder, &writer, capacity);
    }
}
