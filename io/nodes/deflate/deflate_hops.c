/* Hops: places of matches among those of at least their length. DEFLATE.md 2. */
#include "deflate_chains.h"

enum { HOP_STEPS = 4096 };

/* The hop of a distance, or, if distance is 0, the distance of a hop, among matches of at least length. */
static uint32_t walk_hops(struct deflate_model *m, uint32_t length, uint32_t distance, uint32_t hop)
{
    const uint32_t none = distance ? DEFLATE_NO_HOP : 0, p = m->at, room = m->end - p;
    if (m->p.finder != DEFLATE_GREEDY && m->p.finder != DEFLATE_LAZY) return none;
    if (room < DEFLATE_LEAST || length > room || p < m->start) return none;
    if (!m->is_ahead) tsr_deflate_insert(m, p + 1);
    if (m->is_ahead && m->inserted <= p) tsr_deflate_fill(m, p);
    if (m->is_ahead && distance && (distance > p - m->start || steps_to(m, p, distance) > HOP_STEPS)) return none;
    const uint8_t *const here = m->plain + p;
    uint32_t hops = 0, looks = 0, found = none;
    for (uint32_t looked = 0, back = step3(m, p); looked < HOP_STEPS && back <= DEFLATE_WINDOW; looked++) {
        const uint8_t *const there = here - back;
        looks++;
        if (there[length - 1] == here[length - 1] && tsr_deflate_common(there, here, length) == length) {
            looks += length / 8;
            if (distance ? distance == back : hops == hop) {
                found = distance ? hops : back;
                break;
            }
            hops++;
        }
        back += step3(m, p - back);
    }
    spend(m, looks);
    return found;
}

uint32_t tsr_deflate_hop(struct deflate_model *m, uint32_t token)
{
    return walk_hops(m, deflate_length(token), token & 65535, 0);
}

uint32_t tsr_deflate_unhop(struct deflate_model *m, uint32_t length, uint32_t hop)
{
    return walk_hops(m, length, 0, hop);
}
