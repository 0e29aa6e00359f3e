/* Inputs: bytes that can be read at any offset, from a file, from memory or by a function of the caller's. */
#ifndef TSR_IO_INPUT_H
#define TSR_IO_INPUT_H

#include "io/bytes/checksum.h"
#include "io/bytes/crew.h"
#include "transform/status.h"
#include "app/tessera.h"

struct tsr_input;

enum { TSR_DAMAGE_LIMIT = 159 };

/* When the original was last modified, and who may read and write it. FORMAT.md 3.9. */
struct tsr_origin {
    bool has_time, has_permissions; /* the writer writes both or none */
    int64_t seconds;                /* since 1970 */
    uint32_t nanoseconds;
    uint32_t permissions; /* 0 .. 0777 */
};

/* Opens a regular file. Errors: TSR_ERROR_READ (path does not exist, cannot be read, or names a folder or a device),
 * TSR_ERROR_LIMIT (no memory, too many open files). */
enum tsr_status tsr_input_open(const char *path, struct tsr_input **input, struct tsr_error *error);

/* Makes an input of an open file. The input owns the descriptor; if the call fails, the descriptor is closed. name
 * appears in error texts. Errors: TSR_ERROR_READ (not a regular file), TSR_ERROR_LIMIT (no memory). */
enum tsr_status tsr_input_from_descriptor(int file, const char *name, struct tsr_input **input,
                                          struct tsr_error *error);

/* Makes an input of bytes in memory. The bytes must stay valid until the input is closed. Returns NULL if there is no
 * memory. */
struct tsr_input *tsr_input_from_memory(const void *bytes, size_t size, const char *name);

/* A file in a file: an input of bytes that stand in memory, and that are unwrapped from the outer one or restore a part
 * of it. It has the outer one's name, account and crew; who watches that is asked before each read. It must be closed
 * before it. Errors: TSR_ERROR_CORRUPT (more files stand in each other than TSR_INNER_DEPTH), TSR_ERROR_LIMIT (no
 * memory). */
enum { TSR_INNER_DEPTH = 8 };
enum tsr_status tsr_input_open_inner(struct tsr_input *outer, const void *bytes, size_t size, struct tsr_input **input,
                                     struct tsr_error *error);

/* Bytes of the files in an input, and of all that stand in these, that are unwrapped when it is compressed: of an input
 * that stands in no other they are a multiple of its size; of others what the outer one leaves to it, at first nothing.
 * So the work is bounded, however files stand in each other. */
uint64_t tsr_input_inner_limit(const struct tsr_input *input);
void tsr_input_limit_inner(struct tsr_input *input, uint64_t bytes);

/* The most bytes that files in files have together, by the bytes of the outermost original and of its .tsr:
 * PACKED.md 2. */
#define TSR_INNER_BYTES ((uint64_t)1 << 32)
enum { TSR_INNER_RATIO = 64 };
static inline uint64_t tsr_inner_most(uint64_t original, uint64_t tsr)
{
    enum { TSR_RATIO = 1024 };
    const uint64_t most = UINT64_MAX / 2 / TSR_INNER_RATIO, all = tsr < most / TSR_RATIO ? TSR_RATIO * tsr : most;
    return TSR_INNER_BYTES + TSR_INNER_RATIO * (original < all ? original : all);
}

/* Bytes of the files in an input, those in them included, as far as they were counted since they were begun. Counting
 * fails where they are more than tsr_inner_most of these, which an input that stands in another one has of that. */
void tsr_input_begin_inner(struct tsr_input *input, uint64_t original, uint64_t tsr);
bool tsr_input_count_inner(struct tsr_input *input, uint64_t bytes);
uint64_t tsr_input_inner_bytes(const struct tsr_input *input);

/* Bytes that a function reads; context stays the caller's. NULL if there is no memory. */
struct tsr_input_calls {
    int64_t (*read)(void *context, uint64_t offset, void *bytes, size_t count); /* as in struct tsr_data_source */
    void *context;
    uint64_t size;
};
struct tsr_input *tsr_input_from_calls(const struct tsr_input_calls *calls, const char *name);

/* Makes another input of the same bytes, for another thread: it has the same descriptor, memory or function. The first
 * input must outlive it. Errors: TSR_ERROR_LIMIT (no memory). */
enum tsr_status tsr_input_share(const struct tsr_input *input, struct tsr_input **shared, struct tsr_error *error);

/* Makes the input one of its bytes from offset on, so many: a file that stands in it as it is. Nothing was read yet
 * that is asked for later. */
void tsr_input_narrow(struct tsr_input *input, uint64_t offset, uint64_t size);

/* Makes the input one of the plain file, if it is an encrypted file; another one stays as it is. Nothing was read yet.
 * salvages: the file may be cut, and blocks that are lost or not authentic have zeros, in place of an error. Errors:
 * those of tsr_cipher_open, TSR_ERROR_CORRUPT (another number of bytes), TSR_ERROR_READ. */
enum tsr_status tsr_input_unseal(struct tsr_input **input, struct tsr_key *key, bool salvages, struct tsr_error *error);

/* Checks that all blocks of an encrypted file that the input has are authentic, once; of others nothing is read.
 * Errors: TSR_ERROR_CORRUPT, those of reading. */
enum tsr_status tsr_input_authenticate(struct tsr_input *input, struct tsr_error *error);

/* Whether it is no encrypted file, and the key that it was opened with demands one. */
bool tsr_input_must_be_sealed(const struct tsr_input *input);

/* Bytes of memory that decrypting takes. */
uint64_t tsr_input_memory(const struct tsr_input *input);

/* Bytes that the file takes: of an encrypted one, with what is not of the plain file. */
uint64_t tsr_input_stored_size(const struct tsr_input *input);

void tsr_input_close(struct tsr_input *input);

/* What a reader takes of memory, in bytes. */
struct tsr_need {
    uint64_t opening;   /* at most, until the source is open, or measured */
    uint64_t held;      /* then, while blobs and frames are coded */
    uint64_t blob;      /* of the longest blob; where there are no frames, 0: it is as long as the input */
    uint64_t unit;      /* of the longest stream of a frame that may become a unit (io/recipe/unit.h); 0: none may */
    bool has_rasters;   /* rasters are among what is held: the encoder needs no room for them */
    bool only_lossless; /* its samples are never coded with loss */
    bool has_inner;     /* files in it are coded: they take what is left of all that the account can grant */
};

/* An account grants memory before a reader allocates much of it. A reader first calls claim_header if the header itself
 * is large. Then the reader calls claim once for the file. header: what the file becomes, as far as it is known; the
 * account adds what coding it takes. NULL: it has no frames. The memory of the header becomes part of the claim for the
 * file. Errors: TSR_ERROR_LIMIT (the account can never grant that much), TSR_ERROR_CORRUPT (a second claim for the file
 * is larger than the first, or the image is too small for coding to pay). */
struct tsr_header;
struct tsr_memory_account {
    enum tsr_status (*claim_header)(struct tsr_memory_account *account, uint64_t bytes, struct tsr_error *error);
    enum tsr_status (*claim)(struct tsr_memory_account *account, const struct tsr_header *header,
                             const struct tsr_need *need, struct tsr_error *error);
    /* Grants more for work that can do with less, at once or not at all; and takes it back. NULL: it is granted. */
    bool (*grant_spare)(struct tsr_memory_account *account, uint64_t bytes);
    void (*return_spare)(struct tsr_memory_account *account, uint64_t bytes);
    /* Gives back what was claimed for the file, of which nothing is in use any more. The next claim is the first one.
     * NULL: the account grants every claim, or one. */
    void (*give_back)(struct tsr_memory_account *account);
    bool is_verified; /* what is written will be restored and compared: what that takes must be there, too */
};
void tsr_input_set_account(struct tsr_input *input, struct tsr_memory_account *account);
struct tsr_memory_account *tsr_input_account(const struct tsr_input *input);
static inline bool tsr_input_is_verified(const struct tsr_input *input)
{
    const struct tsr_memory_account *const account = tsr_input_account(input);
    return account && account->is_verified;
}

/* Who is asked before each read, with the end of what was read so far and the input's size: false makes this read and
 * all later ones fail, TSR_ERROR_CANCELLED. Threads that read at once ask at once. */
typedef bool tsr_input_asks(const struct tsr_watch *watch, enum tsr_pass pass, uint64_t done, uint64_t total);
void tsr_input_set_watch(struct tsr_input *input, const struct tsr_watch *watch, enum tsr_pass pass,
                         tsr_input_asks *asks);

/* Who codes the input may guess what is likely, and sets *guessed then: the file is restored and compared once it is
 * written, and written again without guesses if it does not come back (TSR_ERROR_VERIFY): so a wrong guess must end
 * its restoring as damage, never as a limit. NULL, as at first: nothing may be guessed. */
void tsr_input_set_guessed(struct tsr_input *input, bool *guessed);
bool *tsr_input_guessed(const struct tsr_input *input);

/* The same watch and the same guess for what comes of the input. */
void tsr_input_follow(struct tsr_input *input, const struct tsr_input *source);

/* Asks now; or whether a read was cancelled, whatever came of that: TSR_ERROR_CANCELLED, else the status. */
enum tsr_status tsr_input_ask(struct tsr_input *input, struct tsr_error *error);
enum tsr_status tsr_input_end(const struct tsr_input *input, enum tsr_status status, struct tsr_error *error);

/* Another call begins to read the input: nothing of it was read, or cancelled. */
void tsr_input_begin(struct tsr_input *input);

/* Threads that read a large part of an input at once. Inputs from functions are always read by one thread. */
void tsr_input_set_crew(struct tsr_input *input, struct tsr_crew crew);
struct tsr_crew tsr_input_crew(const struct tsr_input *input);

/* Claim memory from the input's account. Without an account, every claim is granted. A header of at most
 * TSR_UNCLAIMED_BYTES is granted without asking the account. */
enum { TSR_UNCLAIMED_BYTES = 4 << 20 };
enum tsr_status tsr_input_claim_header(const struct tsr_input *input, uint64_t bytes, struct tsr_error *error);
enum tsr_status tsr_input_claim(struct tsr_input *input, const struct tsr_header *header, const struct tsr_need *need,
                                struct tsr_error *error);

/* Memory for a lane more of work that goes on without it; true: the caller returns it. */
bool tsr_input_take_spare(const struct tsr_input *input, uint64_t bytes);
void tsr_input_return_spare(const struct tsr_input *input, uint64_t bytes);

/* The input is read in another way, and no memory of the first way is in use: drops what is held of it, and gives its
 * claim back. Without an account, nothing is dropped. */
void tsr_input_give_back(struct tsr_input *input);

/* What the last tsr_input_claim was for. */
struct tsr_need tsr_input_need(const struct tsr_input *input);

/* What looks damaged in the content: a sentence in which "it" is the file, of at most TSR_DAMAGE_LIMIT bytes. A reader
 * notes what it notices anyway; the first note stays, however often the input is read. Empty: nothing was noted. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void tsr_input_note_damage(struct tsr_input *input, const char *format, ...);
const char *tsr_input_damage(const struct tsr_input *input);

/* The file's descriptor; -1 for other inputs. */
int tsr_input_descriptor(const struct tsr_input *input);

uint64_t tsr_input_size(const struct tsr_input *input);

/* The file's time of modification and its permissions when it was opened; false for other inputs. */
bool tsr_input_origin(const struct tsr_input *input, struct tsr_origin *origin);
const char *tsr_input_name(const struct tsr_input *input);

/* Reads exactly size bytes at offset into buffer. Errors: TSR_ERROR_READ, also if the input has fewer bytes. */
enum tsr_status tsr_input_read(struct tsr_input *input, uint64_t offset, void *buffer, size_t size,
                               struct tsr_error *error);

/* The same for a buffer that stays as it is until tsr_input_hash_read, which any thread may call. Bytes that
 * tsr_input_read would hash are hashed then. */
enum tsr_status tsr_input_read_lasting(struct tsr_input *input, uint64_t offset, void *buffer, size_t size,
                                       struct tsr_error *error);
void tsr_input_hash_read(struct tsr_input *input);

/* As tsr_input_read, but ahead of what is coded: the bytes are not hashed, and are no progress. */
enum tsr_status tsr_input_peek(struct tsr_input *input, uint64_t offset, void *buffer, size_t size,
                               struct tsr_error *error);

/* As tsr_input_read, of many bytes. Those in memory, or held, are not copied; others are in *room, which the caller
 * frees, also after an error. All bytes before these are hashed first. */
enum tsr_status tsr_input_view(struct tsr_input *input, uint64_t offset, size_t size, uint8_t **room,
                               const uint8_t **bytes, struct tsr_error *error);

/* Reads the first size bytes of the input and holds them. Later reads of these bytes return the held copy, even if the
 * file has changed. *bytes belongs to the input; the address may change when more bytes are held. Errors:
 * TSR_ERROR_READ (the input has fewer bytes), TSR_ERROR_LIMIT. */
enum tsr_status tsr_input_hold(struct tsr_input *input, size_t size, const uint8_t **bytes, struct tsr_error *error);

/* The same with the last size bytes, or all if there are fewer: reads that lie within them return the held copy. */
enum tsr_status tsr_input_hold_end(struct tsr_input *input, size_t size, struct tsr_error *error);

/* Fails if the file that is open has changed since it was opened, by its size and times, whatever its name leads to
 * now. Of other inputs nothing is known. Errors: TSR_ERROR_READ. */
enum tsr_status tsr_input_check(const struct tsr_input *input, struct tsr_error *error);

/* Frees the bytes that are held. */
void tsr_input_drop_held(struct tsr_input *input);

/* Computes the hash of all bytes, as tsr_input_read delivered them. tsr_input_read hashes bytes when they are first
 * read directly after the bytes already hashed, so an input that is read from its start to its end is not read twice.
 * Bytes that were skipped are read now. Errors: TSR_ERROR_READ (the file's size or times have changed since it was
 * opened, its name now leads to another file, or it is longer than its size), TSR_ERROR_LIMIT. */
enum tsr_status tsr_input_hash(struct tsr_input *input, struct tsr_hash128 *hash, struct tsr_error *error);

/* The hash is not likely to be asked for: tsr_input_read hashes nothing from now on, tsr_input_hash reads what is not
 * hashed. */
void tsr_input_hash_late(struct tsr_input *input);

/* Starts the hash again at byte 0, before the whole input is read a second time. */
void tsr_input_restart_hash(struct tsr_input *input);

#endif
