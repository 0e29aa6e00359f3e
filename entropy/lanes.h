/* Lanes: up to 32 decoders that share one stream of 16-bit words and walk a tile as a wavefront.
 * FORMAT.md section 7.6.
 *
 * Rows are dealt to the lanes in turn: lane l has rows l, l + lanes, l + 2 lanes, ... In tick t lane l stands in
 * column c of its row number k where t = c + delay * l + period * k. Each row so runs delay columns behind the
 * row above it, and what a lane needs from there has been decoded in earlier ticks. A lane about to decode a
 * symbol holds at least refill_bits bits: if not, it takes the next words of the stream, lanes of one tick in
 * the order of their numbers. So the places of the words follow from the data alone: nothing is stored to
 * find them, 32 threads decode in lockstep (a ballot and a population count give each its words), and one
 * thread that walks the same ticks has as many independent chains to overlap. */
#ifndef TSR_ENTROPY_LANES_H
#define TSR_ENTROPY_LANES_H

#include "../transform/hd.h"

enum { TSR_LANE_LIMIT = 32, TSR_REFILL_LIMIT = 32, TSR_LANE_WORD_BITS = 16 };

/* A row waits for the neighbour above and to the right: one column, which must be done in an earlier tick. */
enum { TSR_LANE_DELAY = 2 };

/* Lanes of a plane whose tiles have width x height samples. A lane leaves some 20 bits unused at the end of its
 * tile: 4096 samples a lane keep that under 0.2 %; small tiles get 4 lanes all the same. More
 * lanes than width / delay would idle. */
TSR_HD int tsr_lanes_for_tile(int32_t width, int32_t height)
{
    int32_t wanted = tsr_max(4, (int32_t)((int64_t)width * height / 4096));
    int32_t most = tsr_min(TSR_LANE_LIMIT, tsr_min(height, tsr_max(1, width / TSR_LANE_DELAY)));
    int lanes = 1;
    while (2 * lanes <= wanted && 2 * lanes <= most) lanes *= 2;
    return lanes;
}

/* Ticks from the start of a lane's row to the start of its next. */
TSR_HD int32_t tsr_lane_period(int32_t width, int lanes, int delay)
{
    return tsr_max(width, lanes * delay);
}

/* A lane of the decoder: the low count bits of bits are the next of its string. count < 64. */
struct tsr_lane_reader {
    uint64_t bits;
    int32_t count;
};

/* Takes words until the lane has refill_bits. Words past the end read as zero; the caller compares *next with
 * word_count at the end of the tile. */
TSR_HD void tsr_lane_refill(struct tsr_lane_reader *lane, int refill_bits, const uint8_t *words, uint32_t word_count,
                            uint32_t *next)
{
    while (lane->count < refill_bits) {
        uint32_t word = *next < word_count ? (uint32_t)words[2 * *next] | (uint32_t)words[2 * *next + 1] << 8 : 0u;
        lane->bits = lane->bits << TSR_LANE_WORD_BITS | word;
        lane->count += TSR_LANE_WORD_BITS;
        ++*next;
    }
}

/* The next count (0..32) bits; fewer held ones are followed by zeros. */
TSR_HD uint32_t tsr_lane_peek(const struct tsr_lane_reader *lane, int count)
{
    uint64_t mask = ((uint64_t)1 << count) - 1u;
    if (lane->count < count) return (uint32_t)(lane->bits << (count - lane->count) & mask);
    return (uint32_t)(lane->bits >> (lane->count - count) & mask);
}

TSR_HD uint32_t tsr_lane_take(struct tsr_lane_reader *lane, int count)
{
    uint32_t value = tsr_lane_peek(lane, count);
    lane->count -= count;
    return value;
}

/* A lane of the encoder: bits that wait for a whole word, and the slots of the stream that its decoder will have
 * taken by then. At most refill_bits + 15 bits are ahead of the decoder, so 4 slots suffice. */
struct tsr_lane_writer {
    uint64_t bits; /* the low held bits wait */
    int32_t held;
    int32_t ahead;          /* bits that the decoder holds at this point */
    uint32_t slot[4];       /* ring of taken and unfilled slots */
    uint32_t taken, filled; /* how many were ever taken and filled */
};

/* What tsr_lane_refill will do at this point: takes slots. *next is the number of slots taken so far. */
TSR_HD void tsr_lane_reserve(struct tsr_lane_writer *lane, int refill_bits, uint32_t *next)
{
    while (lane->ahead < refill_bits) {
        lane->slot[lane->taken++ & 3u] = (*next)++;
        lane->ahead += TSR_LANE_WORD_BITS;
    }
}

TSR_HD void tsr_lane_fill(struct tsr_lane_writer *lane, uint8_t *words)
{
    uint32_t slot = lane->slot[lane->filled++ & 3u];
    lane->held -= TSR_LANE_WORD_BITS;
    uint32_t word = (uint32_t)(lane->bits >> lane->held) & 0xffffu;
    words[2 * slot] = (uint8_t)word;
    words[2 * slot + 1] = (uint8_t)(word >> 8);
}

/* Appends count (0..32, at most refill_bits since the last reserve) bits of value. */
TSR_HD void tsr_lane_put(struct tsr_lane_writer *lane, uint32_t value, int count, uint8_t *words)
{
    lane->bits = lane->bits << count | value;
    lane->held += count;
    lane->ahead -= count;
    while (lane->held >= TSR_LANE_WORD_BITS) tsr_lane_fill(lane, words);
}

/* The tile's end: the slots still open get the last bits and zeros. */
TSR_HD void tsr_lane_finish(struct tsr_lane_writer *lane, uint8_t *words)
{
    while (lane->filled != lane->taken) {
        lane->bits <<= TSR_LANE_WORD_BITS;
        lane->held += TSR_LANE_WORD_BITS;
        tsr_lane_fill(lane, words);
    }
}

#endif
