/* tessera_testdata OUTDIR [sparse|drawn]: writes the synthetic image set or, instead, sparse or drawn images, with the
 * same bytes on every machine, and MANIFEST. MANIFEST says for each file whether Tessera must code it or store it
 * verbatim. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testdata_bytes.h"
#include "testdata_sets.h"

int main(int count, char **arguments)
{
    const bool is_sparse = count == 3 && strcmp(arguments[2], "sparse") == 0,
               is_drawn = count == 3 && strcmp(arguments[2], "drawn") == 0;
    if (count != 2 && !is_sparse && !is_drawn) {
        fprintf(stderr, "usage: tessera_testdata OUTDIR [sparse|drawn]\n");
        return 2;
    }
    make_folders(arguments[1]);
    if (chdir(arguments[1]) != 0) {
        perror(arguments[1]);
        return EXIT_FAILURE;
    }
    if (is_sparse) {
        make_sparse();
    } else if (is_drawn) {
        make_drawn();
    } else {
        make_dicom();
        make_png();
        make_pnm();
        make_nifti();
        make_y4m();
        make_other();
    }
    save_manifest("MANIFEST");
    const struct saved saved = saved_so_far();
    printf("%u files, %llu bytes\n", saved.files, (unsigned long long)saved.bytes);
    return EXIT_SUCCESS;
}
