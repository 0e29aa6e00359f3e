/* tessera-htj2k: decodes one stream of HTJ2K for the library, which starts it (htj2k_process.c). The request comes by
 * the standard input, the answer goes to the standard output. Whatever OpenJPH does to this process, the library only
 * sees that the answer is missing. */
#include "jpeg_2000_codecs.h"

#include <cstdlib>
#include <cstring>

#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__clang__)
#define IS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define IS_SANITIZED 0
#endif

namespace
{

bool get(void *bytes, size_t size)
{
    for (char *next = static_cast<char *>(bytes); size > 0;) {
        const ssize_t came = read(STDIN_FILENO, next, size);
        if (came <= 0) return false;
        next += came;
        size -= static_cast<size_t>(came);
    }
    return true;
}

bool put(const void *bytes, size_t size)
{
    for (const char *next = static_cast<const char *>(bytes); size > 0;) {
        const ssize_t gone = write(STDOUT_FILENO, next, size);
        if (gone <= 0) return false;
        next += gone;
        size -= static_cast<size_t>(gone);
    }
    return true;
}

void lower(decltype(RLIMIT_AS) what, rlim_t wanted)
{
    rlimit limit;
    if (getrlimit(what, &limit) != 0) return;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    setrlimit(what, &limit);
}

/* A usual stream takes a tenth of this memory, and a hundredth of this time. */
void set_limits(uint64_t samples, uint64_t size)
{
    lower(RLIMIT_CORE, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__) /* they reserve terabytes \
                                                                                            */
    lower(RLIMIT_AS, static_cast<rlim_t>((UINT64_C(1) << 29) + 64 * samples + 4 * size));
#else
    (void)size;
#endif
    alarm(static_cast<unsigned>(20 + samples / 100000)); /* whose signal ends the process */
}

} // namespace

int main(int count, char **words)
{
    tsr_htj2k_request request;
    tsr_htj2k_answer answer{TSR_OK, ""};
    tsr_error error{};
    if (count != 2 || std::strcmp(words[1], TSR_VERSION_STRING) != 0 || !get(&request, sizeof request)) return 2;
    const size_t samples = static_cast<size_t>(request.image.columns) * request.image.rows * request.image.components,
                 bytes = samples * request.image.bits_allocated / 8, size = static_cast<size_t>(request.size);
    set_limits(samples, size);
    uint8_t *const stream = static_cast<uint8_t *>(std::malloc(size + 1)), *const raster = static_cast<uint8_t *>(
                                                                               std::malloc(bytes + 1));
    if (!stream || !raster)
        answer.status = tsr_fail(&error, TSR_ERROR_LIMIT, "no memory to decode HTJ2K");
    else if (!get(stream, size))
        return 2;
    else
        answer.status = decode_jpeg_2000_by(openjph_decode, &request.image, stream, size, raster, &error);
    std::memcpy(answer.text, error.text, sizeof answer.text);
    const bool is_told = put(&answer, sizeof answer) && (answer.status != TSR_OK || put(raster, bytes));
    std::free(stream);
    std::free(raster);
    return is_told ? 0 : 2;
}
