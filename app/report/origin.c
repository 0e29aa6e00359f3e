/* How results were made. See origin.h. */
#include "origin.h"
#include "page.h"
#include "text/text.h"

static void put_fact(FILE *f, const char *name, const char *value, const char *tag)
{
    if (!value || !*value) return;
    fprintf(f, "<dt>%s</dt><dd>%s%s%s", name, tag ? "<" : "", tag ? tag : "", tag ? ">" : "");
    text_escape(f, value);
    fprintf(f, "%s%s%s</dd>\n", tag ? "</" : "", tag ? tag : "", tag ? ">" : "");
}

void origin_write(FILE *f, const struct report_origin *origin)
{
    char text[120], seconds[TEXT_NUMBER];
    fputs("<dl class=\"facts\">\n", f);
    put_fact(f, "Command", origin->command, "code");
    put_fact(f, "Given in", origin->folder, NULL);
    put_fact(f, "Input", origin->inputs, NULL);
    put_fact(f, "Output", origin->output, NULL);
    put_fact(f, "Machine", origin->host, NULL);
    snprintf(text, sizeof text, "Tessera %.40s, format version %u of .tsr files",
             origin->version ? origin->version : "", origin->format_version);
    put_fact(f, "Version", text, NULL);
    put_fact(f, "Processor", origin->machine, NULL);
    put_fact(f, "Instruction sets", origin->instruction_sets, NULL);
    snprintf(text, sizeof text, "%d", origin->cores);
    put_fact(f, "Cores", origin->cores > 0 ? text : NULL, NULL);
    put_fact(f, "Started (UTC)", origin->started, NULL);
    put_fact(f, "Ended (UTC)", origin->ended, NULL);
    snprintf(text, sizeof text, "%s s", text_figure(seconds, origin->wall_s));
    put_fact(f, "Duration", text, NULL);
    fputs("</dl>\n", f);
}

void origin_write_citation(FILE *f, const struct report_origin *origin)
{
    fputs("<h3>How to cite</h3>\n", f);
    page_copied(f, "citation", "BibTeX entry", true);
    fputs("@software{tessera,\n  author  = {{The Tessera developers}},\n  title   = {Tessera: proven compression of "
          "medical images},\n  version = {",
          f);
    text_escape(f, origin->version);
    fputs("},\n", f);
    if (origin->started[0]) {
        fputs("  year    = {", f);
        char year[5];
        snprintf(year, sizeof year, "%.4s", origin->started);
        text_escape(f, year);
        fputs("},\n", f);
    }
    fprintf(f, "  note    = {Format version %u; processor: ", origin->format_version);
    text_escape(f, origin->machine);
    fputs("}\n}\n", f);
    page_copied_end(f);
}
