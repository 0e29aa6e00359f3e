/* What this build can do, as words. */
#include <stdio.h>
#include <pthread.h>
#include <xxhash.h>

#include "app/tessera.h"
#include "kernels/machine/isa_cpu.h"

static char text[512];

static void write_text(void)
{
    static const char *const forms[] = {
        [TSR_ISA_PLAIN] = "plain", [TSR_ISA_AVX2] = "avx2", [TSR_ISA_AVX512] = "avx512"};
    snprintf(text, sizeof text, "libraries: xxHash %d.%d.%d" TSR_LIBRARIES "\nengines: %s\ncpu: %s; in use: %s\n",
             XXH_VERSION_MAJOR, XXH_VERSION_MINOR, XXH_VERSION_RELEASE,
             TSR_WITH_CUDA ? "cpu, cuda" TSR_CUDA_VERSION : "cpu",
             TSR_HAS_VECTOR_FORMS ? "plain, avx2, avx512" : "plain", forms[tsr_isa()]);
}

const char *tsr_build_features(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, write_text);
    return text;
}
