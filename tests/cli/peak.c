/* tsr_peak FILE COMMAND...: runs a command and writes its peak of memory, in bytes, to a file. Exits with the command's
 * status. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct rusage usage;
    int status = 0;
    if (argc < 3) return 2;
    const pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || getrusage(RUSAGE_CHILDREN, &usage) != 0) return 126;
    FILE *file = fopen(argv[1], "w");
    if (!file || fprintf(file, "%ld\n", 1024 * usage.ru_maxrss) < 0 || fclose(file) != 0) return 126;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
