/* tessera_testdata OUTDIR: writes the synthetic image set, with the same bytes on every machine, and MANIFEST. MANIFEST
 * says for each file whether Tessera must code it or store it verbatim. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "testdata_bytes.h"
#include "testdata_sets.h"

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "usage: tessera_testdata OUTDIR\n");
        return 2;
    }
    make_folders(arguments[1]);
    if (chdir(arguments[1]) != 0) {
        perror(arguments[1]);
        return EXIT_FAILURE;
    }
    make_dicom();
    make_png();
    make_pnm();
    make_nifti();
    make_sparse();
    make_other();
    save_manifest("MANIFEST");
    const struct saved saved = saved_so_far();
    printf("%u files, %llu bytes\n", saved.files, (unsigned long long)saved.bytes);
    return EXIT_SUCCESS;
}
