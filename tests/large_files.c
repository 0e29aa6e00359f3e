/* Files of many sections; see large_files.h. */
#include "large_files.h"

#include "io/container/container.h"

bool large_files;

enum tsr_status __real_tsr_container_begin(struct tsr_output *output, const struct tsr_header *header,
                                           struct tsr_container_writer **writer, struct tsr_error *error);
enum tsr_status __wrap_tsr_container_begin(struct tsr_output *output, const struct tsr_header *header,
                                           struct tsr_container_writer **writer, struct tsr_error *error);

enum tsr_status __wrap_tsr_container_begin(struct tsr_output *output, const struct tsr_header *header,
                                           struct tsr_container_writer **writer, struct tsr_error *error)
{
    const enum tsr_status status = __real_tsr_container_begin(output, header, writer, error);
    if (status == TSR_OK && large_files) tsr_container_stay_large(*writer);
    return status;
}
