/* Debian compiles static libraries for programs. They reach libc's variables directly, which a shared library cannot.
 * So the module has variables of its own, with libc's values. OpenJPEG and libjpeg name them in functions that nothing
 * calls. */
#define _GNU_SOURCE
#include <dlfcn.h>

__attribute__((visibility("hidden"))) void *stdout, *stderr;

__attribute__((constructor)) static void take_streams(void)
{
    stdout = *(void **)dlsym(RTLD_DEFAULT, "stdout");
    stderr = *(void **)dlsym(RTLD_DEFAULT, "stderr");
}
