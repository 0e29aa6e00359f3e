/* Lanes: up to 32 decoders that share one stream of 16-bit words and walk a tile as a wavefront.
 * FORMAT.md section 7.7.
 *
 * Rows are dealt to the lanes in turn: lane l has rows l, l + lanes, l + 2 lanes, ... In tick t lane l stands in
 * column c of its row number k where t = c + 8 l + period k. Each row so runs 8 columns behind the row above it: what a
 * lane needs from there has been decoded, four ticks ahead, so that four columns' share of it can be summed up at once.
 * A lane about to decode a symbol holds at least refill_bits bits: if not, it takes the next words of the stream, lanes
 * of one tick in the order of their numbers. So the places of the words follow from the data alone: nothing is stored
 * to find them, 32 threads decode in lockstep (a ballot and a population count give each its words), and one thread
 * that walks the same ticks has as many independent chains to overlap. */
#ifndef TSR_ENTROPY_LANES_H
#define TSR_ENTROPY_LANES_H

#include "transform/hd.h"

enum { TSR_LANE_LIMIT = 32, TSR_REFILL_LIMIT = 32, TSR_LANE_WORD_BITS = 16 };

/* A row waits for the neighbour one row up and four columns to the right, of four columns at once. */
enum { TSR_LANE_DELAY = 8, TSR_LANE_STEP = 4 };

/* Lanes of a plane whose tiles have width x height samples. A lane leaves some 20 bits unused at the end of its
 * tile: 4096 samples a lane keep that under 0.2 %; small tiles get 4 lanes all the same. More
 * lanes than width / 8 would idle. */
TSR_HD int tsr_lanes_for_tile(int32_t width, int32_t height)
{
    int32_t wanted = tsr_max(4, (int32_t)((int64_t)width * height / 4096));
    int32_t most = tsr_min(TSR_LANE_LIMIT, tsr_min(height, tsr_max(1, width / TSR_LANE_DELAY)));
    int lanes = 1;
    while (2 * lanes <= wanted && 2 * lanes <= most) lanes *= 2;
    return lanes;
}

/* Ticks from the start of a lane's row to the start of its next. */
TSR_HD int32_t tsr_lane_period(int32_t width, int lanes)
{
    return tsr_max((width + TSR_LANE_STEP - 1) / TSR_LANE_STEP * TSR_LANE_STEP, lanes * TSR_LANE_DELAY);
}

/* A lane of the decoder: the high count bits of bits are the next of its string; the others are 0. count < 64. */
struct tsr_lane_reader {
    uint64_t bits;
    int32_t count;
};

/* The word at a place of the stream; words past the end are zero, and the caller compares the number of words taken
 * with word_count at the end of the tile. */
TSR_HD uint32_t tsr_lane_word(const uint8_t *words, uint32_t word_count, uint32_t at)
{
    const uint8_t *word = words + 2 * (size_t)at; /* one load, for gcc */
    return at < word_count ? (uint32_t)word[0] | (uint32_t)word[1] << 8 : 0u;
}

/* Before a symbol: does a lane that holds this many bits take a word? */
TSR_HD bool tsr_lane_wants_word(int32_t held, int32_t refill_bits)
{
    return held < refill_bits;
}

/* Takes words until the lane has refill_bits (0..32). The first word is taken without a branch: whether a lane needs
 * one cannot be foreseen; that it needs two is rare. */
TSR_HD void tsr_lane_refill(struct tsr_lane_reader *lane, int refill_bits, const uint8_t *words, uint32_t word_count,
                            uint32_t *next)
{
    const uint32_t needed = tsr_lane_wants_word(lane->count, refill_bits),
                   word = tsr_lane_word(words, word_count, *next) & (0u - needed);
    lane->bits |= (uint64_t)word << ((48 - lane->count) & 63);
    lane->count += (int32_t)needed * TSR_LANE_WORD_BITS;
    *next += needed;
    if (tsr_lane_wants_word(lane->count, refill_bits)) {
        lane->bits |= (uint64_t)tsr_lane_word(words, word_count, *next) << (48 - lane->count);
        lane->count += TSR_LANE_WORD_BITS;
        ++*next;
    }
}

/* The next count (0..32) bits; fewer held ones are followed by zeros. */
TSR_HD uint32_t tsr_lane_peek(const struct tsr_lane_reader *lane, int count)
{
    return (uint32_t)(lane->bits >> 1 >> (63 - count));
}

TSR_HD void tsr_lane_skip(struct tsr_lane_reader *lane, int count)
{
    lane->bits <<= count;
    lane->count -= count;
}

TSR_HD uint32_t tsr_lane_take(struct tsr_lane_reader *lane, int count)
{
    uint32_t value = tsr_lane_peek(lane, count);
    tsr_lane_skip(lane, count);
    return value;
}

/* How many words a lane has taken once it has refilled in front of a symbol, where its string so far is that long. The
 * words are known later than that: the encoder notes in which tick each is taken, and they go to their places once all
 * lanes' ticks are known. */
TSR_HD uint32_t tsr_lane_words(uint32_t bits, int refill_bits)
{
    return (bits + (uint32_t)refill_bits + TSR_LANE_WORD_BITS - 1) / TSR_LANE_WORD_BITS;
}

#endif
