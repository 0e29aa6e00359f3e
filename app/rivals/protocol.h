/* The protocol between tessera and its helper program tessera-rivals, on the helper's standard input and output. The
 * codecs that tessera compare runs are only in the helper: tessera links none of them, and what a codec does to its
 * process cannot harm tessera.
 *
 * A request is one line of words with a space between them. An answer is one line, but for `codecs` and `decoded`.
 * SETTING may have spaces: it reaches to the end of the line. TAB is between the fields of an answer.
 *
 *   request                               answer
 *   version                               tessera-rivals VERSION
 *   codecs                                COUNT, then a line for each codec:
 *                                         KEY TAB NAME TAB LIBRARY TAB OPTIONS TAB REASON TAB FLAGS TAB SETTINGS
 *   limit BYTES SECONDS                   no answer. From now on the address space is at most BYTES, and a request that
 *                                         takes more than SECONDS ends the helper by SIGALRM. 0: no limit
 *   picture COLUMNS ROWS CHANNELS BITS    no answer. The interleaved samples follow the line: a byte each up to 8 bits,
 *                                         else two bytes in the machine's order. The requests below are about this
 *                                         picture until the next one comes.
 *   code KEY SETTING                      OUTCOME TAB BYTES TAB ENCODE_S TAB DECODE_S TAB ENCODE_SPREAD TAB
 *   code KEY                              DECODE_SPREAD TAB RUNS TAB PEAK_BYTES TAB IS_SAME TAB NOTE
 *   decoded                               the samples that the last `code` decoded, as those of `picture`, without a
 *                                         line; only after the outcomes done and wrong
 *
 * `codecs`: FLAGS is a word of letters: l lossy, o ours, m missing (not found when the helper was built; LIBRARY is
 * then the Debian package), - none. SETTINGS are those that compare uses, with commas between them; a codec without
 * settings has an empty field.
 *
 * `code` always decodes what it has coded and compares the samples.
 *   OUTCOME        done; cannot (the codec cannot hold such a picture, or it is missing); wrong (a lossless codec gave
 *                  other samples back); failed (the library reports an error). After cannot and failed the numbers are
 * 0 BYTES          of the whole coded picture ENCODE_S, DECODE_S   CPU seconds of the process, whose codecs have one
 * thread. The first run warms up and does not count, unless it takes more than 0.5 s: then it is the one that counts.
 * Else as many runs follow as fit in 0.1 s, 1 to 7, and the median counts
 *   ..._SPREAD     (slowest - fastest) / median of the runs that count
 *   RUNS           that count, of encoding or of decoding, whichever has fewer
 *   PEAK_BYTES     of memory, beyond that of the picture, its decoded copy and the program
 *   IS_SAME        1: all samples came back; 0: they did not
 *   NOTE           the reason of another outcome than done; after done, what the codec chose by itself, or empty
 *
 * The helper ends with status 0 at the end of its input. It ends with the status TSR_ERROR_USAGE and a sentence on
 * stderr after a line that is not a request, and with TSR_ERROR_LIMIT if it has no memory.
 *
 * If the environment variable TESSERA_RIVALS_FAKE is set, the table has codecs that misbehave, for tests: fake-crash,
 * fake-hang, fake-memory, fake-wrong, fake-garbage. */
#ifndef TSR_APP_RIVALS_PROTOCOL_H
#define TSR_APP_RIVALS_PROTOCOL_H

#include "app/tessera.h"

#define RIVALS_NAME "tessera-rivals"
#define RIVALS_VERSION_LINE RIVALS_NAME " " TSR_VERSION_STRING

enum {
    RIVALS_LINE = 128,   /* most characters of a request, its end and a NUL included */
    RIVALS_ANSWER = 768, /* of a line of an answer */
    RIVALS_NOTE = 100    /* of NOTE, a NUL included */
};

#endif
