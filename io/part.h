/* Parts: files that have a name before they are outputs. A part has the name .tessera-HOST-PROCESS-NUMBER-CHECK.part in
 * its output's folder, and is locked by its process. While it is written, it begins with a mark that has the first
 * three; before the mark gives way to the output's first bytes, CHECK becomes their hash. Before the part is exchanged
 * with a file that it replaces, a second CHECK is added, that file's. So a part is known by its name and by what it
 * holds at each moment, and a file of a user's that has such a name is none. */
#ifndef TSR_IO_PART_H
#define TSR_IO_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* HOST-PROCESS-NUMBER and a name, both with the final zero; bytes of the mark. */
enum { TSR_PART_LABEL = 40, TSR_PART_NAME = 96, TSR_PART_MARK = 64 };

struct tsr_part {
    int folder;                 /* the caller's */
    char label[TSR_PART_LABEL]; /* HOST-PROCESS-NUMBER */
    char name[TSR_PART_NAME];   /* empty: there is no part */
    int slot;                   /* among all parts of this process; -1: it is not there */
};

/* Gives the part a label that was not used before. */
void tsr_part_label(struct tsr_part *part);

/* The mark of a label; and the name of a part of so many bytes that begins with these, which are all or TSR_PART_MARK.
 */
void tsr_part_mark(const char *label, uint8_t mark[TSR_PART_MARK]);
void tsr_part_name(const char *label, uint64_t size, const uint8_t *bytes, char name[TSR_PART_NAME]);

/* The part is about to be exchanged with the file of this name in its folder: its name gets that file's check, too. If
 * the file cannot be read, the name stays. False: it should have changed, and cannot. */
bool tsr_part_expect(struct tsr_part *part, const char *name);

/* Held while a part is created, linked or renamed: the process does not end in between. */
void tsr_parts_hold(void);
void tsr_parts_release(void);

/* The part exists. It has its final name, or is gone. And removes it, if it exists. */
void tsr_part_remember(struct tsr_part *part);
void tsr_part_forget(struct tsr_part *part);
void tsr_part_remove(struct tsr_part *part);

/* Removes the parts of all outputs and ends the process with a status, while other threads work. No signal handler may
 * call this. */
void tsr_parts_end_process(int status);

/* Removes the parts in a folder that no process works on: those of killed runs. The lock of another machine may be
 * invisible here, so a part of another machine, or of this one before it was started anew, also stays for a day. */
void tsr_parts_clear(int folder);

#endif
