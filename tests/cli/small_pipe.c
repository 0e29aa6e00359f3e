/* tsr_small_pipe: gives the pipe on its stdin room for 64 KiB. Pipes have 16 pages, whose size differs by machine. Exit
 * status 1: the pipe has more. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

int main(void)
{
    enum { ROOM = 1 << 16 };
    (void)fcntl(STDIN_FILENO, F_SETPIPE_SZ, ROOM);
    return fcntl(STDIN_FILENO, F_GETPIPE_SZ) > ROOM;
}
