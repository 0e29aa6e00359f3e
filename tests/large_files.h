/* Tests of files of many sections: while large_files is true, no file becomes a small one. The linker puts the
 * function of large_files.c in place of tsr_container_begin; tsr_make_large_files() of tests/CMakeLists.txt asks it to.
 */
#ifndef TSR_TESTS_LARGE_FILES_H
#define TSR_TESTS_LARGE_FILES_H

#include <stdbool.h>

extern bool large_files;

#endif
