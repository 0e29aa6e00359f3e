/* The tree of an archive's originals. */
#include <stdlib.h>
#include <string.h>

#include "app/cli/inputs/inputs.h"
#include "mount.h"

/* ---- Places ----------------------------------------------------------------------------------------------- */

/* A character of a path as paths are sorted: its end, then a slash, then all others. */
static int rank(char character)
{
    return character == '\0' ? 0 : character == '/' ? 1 : 1 + (unsigned char)character;
}

/* What is in a folder stands together, after files of the folder's name, which are in the order of the list. */
static int by_path(const void *a, const void *b)
{
    const struct tree_place *const first = a, *const second = b;
    const char *one = first->path, *other = second->path;
    while (*one && *one == *other) one++, other++;
    if (*one || *other) return rank(*one) - rank(*other);
    if (!first->task || !second->task) return (first->task == NULL) - (second->task == NULL);
    return (first->task > second->task) - (first->task < second->task);
}

/* Whether each part of a path can be a name. */
static bool is_path(const char *path)
{
    for (const char *at = path;; at++) {
        const size_t length = strcspn(at, "/");
        if (length == 0 || (length <= 2 && strspn(at, ".") == length)) return false;
        at += length;
        if (!*at) return true;
    }
}

/* The path of a task's original in the tree. Of a file that cannot be opened no more is known than its name. The
 * original of "..tsr" has no name that a file can have: the .tsr's stands for it. */
static char *path_of(const char *archive, const struct task *task)
{
    if (task->name && is_path(task->name)) return strdup(task->name);
    const size_t length = strlen(archive);
    const char *const last = strrchr(task->input, '/');
    const bool is_below = strncmp(task->input, archive, length) == 0 && task->input[length] == '/';
    const char *const name = is_below ? task->input + length + 1 : last ? last + 1 : task->input;
    char *const path = strndup(name, strlen(name) - (has_tsr_suffix(name) ? strlen(".tsr") : 0));
    if (!path || is_path(path)) return path;
    free(path);
    return strdup(name);
}

static bool add_place(struct tree *tree, char *path, const struct task *task)
{
    if (!path) return false;
    tree->places[tree->place_count++] = (struct tree_place){path, task};
    return true;
}

/* A folder, unless it is the root. */
static bool add_folder(struct tree *tree, const char *path)
{
    return !is_path(path) || add_place(tree, strdup(path), NULL);
}

static bool list_places(const char *archive, const struct task_list *list, struct tree *tree)
{
    tree->places = calloc(list->count + list->folder_count + 1, sizeof *tree->places);
    tree->files = calloc(list->count + 1, sizeof *tree->files);
    bool good = tree->places && tree->files;
    for (size_t i = 0; good && i < list->count; i++) {
        const struct task *const task = &list->tasks[i];
        good = task->lost_in ? add_folder(tree, task->lost_in) : add_place(tree, path_of(archive, task), task);
    }
    for (size_t i = 0; good && i < list->folder_count; i++) good = add_folder(tree, list->folders[i].output);
    if (good) qsort(tree->places, tree->place_count, sizeof *tree->places, by_path);
    return good;
}

/* ---- Nodes ------------------------------------------------------------------------------------------------ */

/* Places from first to end, which have the first skipped bytes of their paths in common. */
struct range {
    size_t first, end, skipped;
};

static size_t part_length(const struct tree_place *place, size_t skipped)
{
    return strcspn(place->path + skipped, "/");
}

/* Whether the part after skipped bytes is the last one, of a file. */
static bool is_file(const struct tree_place *place, size_t skipped)
{
    return place->task && !place->path[skipped + part_length(place, skipped)];
}

/* The places that begin with the same part as the first of a range. */
static struct range same_part(const struct tree *tree, const struct range *range)
{
    const char *const part = tree->places[range->first].path + range->skipped;
    const size_t length = part_length(&tree->places[range->first], range->skipped);
    struct range same = {range->first, range->first + 1, range->skipped + length + 1};
    while (same.end < range->end) {
        const char *const other = tree->places[same.end].path + range->skipped;
        if (strncmp(part, other, length) != 0 || (other[length] && other[length] != '/')) break;
        same.end++;
    }
    return same;
}

/* A file without a place of its own in the folder. */
static void hide(struct tree *tree, uint32_t folder, const struct tree_place *place)
{
    mount_log("%s: %s is not shown: another file or a folder has its name", shown(place->task->input),
              shown(place->path));
    tree->nodes[folder].is_incomplete = true;
}

/* The node of places with the same part: a file, or a folder with what is left in *same. Others of them that are files
 * have no place. */
static struct node node_of(struct tree *tree, uint32_t parent, size_t skipped, struct range *same)
{
    const struct tree_place *const first = &tree->places[same->first];
    struct tree_place *const last = &tree->places[same->end - 1];
    struct node node = {.name = first->path + skipped, .length = part_length(first, skipped), .parent = parent};
    node.file = is_file(last, skipped) ? tree->file_count : NO_FILE;
    while (same->first < same->end && is_file(&tree->places[same->first], skipped)) {
        const struct tree_place *const place = &tree->places[same->first];
        if (node.file != NO_FILE && tree->file_count == node.file)
            tree->files[tree->file_count++] = place->task;
        else
            hide(tree, parent, place);
        same->first++;
    }
    /* An empty folder that is listed has nothing in it. */
    while (same->first < same->end && !tree->places[same->first].path[skipped + node.length]) same->first++;
    return node;
}

/* Fills a folder, and the folders in it. */
static bool fill_folder(struct tree *tree, uint32_t folder, struct range range)
{
    const uint32_t first = tree->count;
    struct range *rest = NULL;
    size_t capacity = 0;
    bool good = true;
    while (good && range.first < range.end) {
        struct range same = same_part(tree, &range);
        const size_t end = same.end;
        good = grow_list(&tree->nodes, tree->count, &tree->capacity, sizeof *tree->nodes) &&
               grow_list(&rest, tree->count - first, &capacity, sizeof *rest);
        if (!good) break;
        tree->nodes[tree->count] = node_of(tree, folder, range.skipped, &same);
        rest[tree->count++ - first] = same;
        range.first = end;
    }
    const uint32_t count = tree->count - first;
    tree->nodes[folder].first = first;
    tree->nodes[folder].count = count;
    for (uint32_t i = 0; good && i < count; i++)
        if (tree->nodes[first + i].file == NO_FILE) good = fill_folder(tree, first + i, rest[i]);
    free(rest);
    return good;
}

/* Where names are lost, they may belong to a folder or to any folder below it. */
static void mark_lost(struct tree *tree, uint32_t folder)
{
    struct node *const node = &tree->nodes[folder];
    node->is_incomplete = true;
    for (uint32_t i = node->first; i < node->first + node->count; i++)
        if (tree->nodes[i].file == NO_FILE) mark_lost(tree, i);
}

static void take_lost(struct tree *tree, const struct task *task)
{
    const struct node *folder = tree->nodes, *next = folder;
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    refuse_task(&error, task);
    mount_log("%s; reading its folder in the mount fails", shown(error.text));
    for (const char *at = task->lost_in; *at && next; at += *at == '/') {
        const size_t length = strcspn(at, "/");
        next = tree_find(tree, folder, at, length);
        if (next) folder = next;
        at += length;
    }
    mark_lost(tree, (uint32_t)(folder - tree->nodes));
}

bool tree_make(const char *archive, const struct task_list *list, struct tree *tree)
{
    memset(tree, 0, sizeof *tree);
    if (!list_places(archive, list, tree)) return false;
    if (!grow_list(&tree->nodes, 0, &tree->capacity, sizeof *tree->nodes)) return false;
    tree->nodes[tree->count++] = (struct node){.name = "", .file = NO_FILE};
    if (!fill_folder(tree, 0, (struct range){0, tree->place_count, 0})) return false;
    for (size_t i = 0; i < list->count; i++)
        if (list->tasks[i].lost_in) take_lost(tree, &list->tasks[i]);
    return true;
}

void tree_free(struct tree *tree)
{
    for (size_t i = 0; i < tree->place_count; i++) free(tree->places[i].path);
    free(tree->places);
    free(tree->files);
    free(tree->nodes);
}

const struct node *tree_find(const struct tree *tree, const struct node *folder, const char *name, size_t length)
{
    size_t low = folder->first, high = low + folder->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct node *const node = &tree->nodes[middle];
        int order = memcmp(name, node->name, length < node->length ? length : node->length);
        if (order == 0) order = (length > node->length) - (length < node->length);
        if (order == 0) return node;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
