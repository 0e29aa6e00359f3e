/* The tree through FUSE, by its interface of inodes: an inode is a node's number, plus 1, and in its upper half the
 * number of a file's version. So the system keeps the bytes of one original under one inode, for as long as it likes.
 */
#define FUSE_USE_VERSION 35

#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mount.h"

/* An inode and a folder do not change: the system may keep what it was told. But a file's name may lead to another
 * inode the next time. */
static const double kept_s = 86400;

struct served {
    const struct tree *tree;
    struct contents *contents;
    struct stat folder; /* what all folders have */
};

static const struct served *served_of(fuse_req_t request)
{
    return fuse_req_userdata(request);
}

/* NULL: there is no such inode. */
static const struct node *node_of(fuse_req_t request, fuse_ino_t inode)
{
    const struct tree *const tree = served_of(request)->tree;
    const uint32_t number = (uint32_t)inode;
    return number >= 1 && number - 1 < tree->count ? &tree->nodes[number - 1] : NULL;
}

static uint32_t version_of(fuse_ino_t inode)
{
    return (uint32_t)((uint64_t)inode >> 32);
}

static fuse_ino_t inode_of(const struct tree *tree, const struct node *node, uint32_t version)
{
    return (fuse_ino_t)((uint64_t)version << 32 | ((uint64_t)(node - tree->nodes) + 1));
}

/* What files and folders have in common. */
static void describe(const struct served *served, const struct node *node, struct stat *status)
{
    *status = served->folder;
    if (node->file != NO_FILE) status->st_nlink = 1;
}

/* ---- Operations ------------------------------------------------------------------------------------------- */

static void look_up(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    const struct served *const served = served_of(request);
    const struct node *const folder = node_of(request, parent);
    const bool is_folder = folder && folder->file == NO_FILE;
    const struct node *const node = is_folder ? tree_find(served->tree, folder, name, strlen(name)) : NULL;
    const bool is_file = node && node->file != NO_FILE;
    struct fuse_entry_param entry = {.attr_timeout = kept_s, .entry_timeout = is_file ? 0 : kept_s};
    uint32_t version = 0;
    if (node) describe(served, node, &entry.attr);
    const int failure = is_file ? contents_look_up(served->contents, node->file, &version, &entry.attr) : 0;
    if (failure != 0) {
        fuse_reply_err(request, failure);
        return;
    }
    if (node) entry.attr.st_ino = (ino_t)(entry.ino = inode_of(served->tree, node, version));
    /* Inode 0: the name is not there. If the call that looks it up was interrupted, the system was not told. */
    if (fuse_reply_entry(request, &entry) != 0 && is_file) contents_forget(served->contents, node->file, version, 1);
}

static void forget(fuse_req_t request, fuse_ino_t inode, uint64_t lookups)
{
    const struct node *const node = node_of(request, inode);
    if (node && node->file != NO_FILE)
        contents_forget(served_of(request)->contents, node->file, version_of(inode), lookups);
    fuse_reply_none(request);
}

static void get_attributes(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    const struct node *const node = node_of(request, inode);
    const struct served *const served = served_of(request);
    struct stat status;
    int failure = node ? 0 : ENOENT;
    (void)info;
    if (node) describe(served, node, &status);
    if (node && node->file != NO_FILE)
        failure = contents_stat(served->contents, node->file, version_of(inode), &status);
    status.st_ino = (ino_t)inode;
    if (failure == 0)
        fuse_reply_attr(request, &status, kept_s);
    else
        fuse_reply_err(request, failure);
}

/* An entry of a folder: itself, the one above, its nodes. NULL: there are no more. */
static const struct node *entry_of(const struct tree *tree, const struct node *folder, uint64_t number, char name[4097])
{
    if (number == 0) return strcpy(name, "."), folder;
    if (number == 1) return strcpy(name, ".."), &tree->nodes[folder->parent];
    if (number - 2 >= folder->count) return NULL;
    const struct node *const node = &tree->nodes[folder->first + (uint32_t)(number - 2)];
    snprintf(name, 4097, "%.*s", (int)node->length, node->name);
    return node;
}

/* Where files are not shown, the end of a folder is an error, so that no program takes it for whole. */
static void read_folder(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset, struct fuse_file_info *info)
{
    const struct tree *const tree = served_of(request)->tree;
    const struct node *const folder = node_of(request, inode);
    char *const bytes = malloc(size + 1), name[4097];
    size_t used = 0;
    (void)info;
    if (!folder || folder->file != NO_FILE || !bytes) {
        fuse_reply_err(request, !folder ? ENOENT : bytes ? ENOTDIR : ENOMEM);
        free(bytes);
        return;
    }
    const struct node *node;
    for (uint64_t i = (uint64_t)offset; (node = entry_of(tree, folder, i, name)); i++) {
        const struct stat entry = {.st_ino = (ino_t)inode_of(tree, node, 0),
                                   .st_mode = node->file == NO_FILE ? S_IFDIR : S_IFREG};
        const size_t taken = fuse_add_direntry(request, bytes + used, size - used, name, &entry, (off_t)(i + 1));
        if (taken > size - used) break;
        used += taken;
    }
    if (!node && used == 0 && folder->is_incomplete)
        fuse_reply_err(request, EIO);
    else
        fuse_reply_buf(request, bytes, used);
    free(bytes);
}

static struct version *opened_by(const struct fuse_file_info *info)
{
    return (struct version *)(uintptr_t)info->fh;
}

static void open_file(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    const struct node *const node = node_of(request, inode);
    struct contents *const contents = served_of(request)->contents;
    struct version *opened = NULL;
    int result = !node ? ENOENT : node->file == NO_FILE ? EISDIR : (info->flags & O_ACCMODE) != O_RDONLY ? EROFS : 0;
    if (result == 0) result = contents_open(contents, node->file, version_of(inode), &opened);
    if (result != 0) {
        fuse_reply_err(request, result);
        return;
    }
    info->fh = (uint64_t)(uintptr_t)opened;
    info->keep_cache = 1; /* an inode is one original */
    /* The call that opens it was interrupted: no release follows. */
    if (fuse_reply_open(request, info) == -ENOENT) contents_close(contents, opened);
}

static void reply_part(fuse_req_t request, const struct decoded_file *file, size_t size, off_t offset)
{
    const uint64_t at = (uint64_t)offset, left = at < file->size ? file->size - at : 0;
    const size_t count = left < size ? (size_t)left : size;
    if (file->bytes || count == 0) {
        fuse_reply_buf(request, count > 0 ? (const char *)file->bytes + at : NULL, count);
        return;
    }
    struct fuse_bufvec pieces = FUSE_BUFVEC_INIT(count);
    pieces.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK | FUSE_BUF_FD_RETRY;
    pieces.buf[0].fd = file->descriptor;
    pieces.buf[0].pos = offset;
    fuse_reply_data(request, &pieces, 0);
}

static void read_file(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset, struct fuse_file_info *info)
{
    struct contents *const contents = served_of(request)->contents;
    struct decoded_file decoded;
    (void)inode;
    const int result = contents_decoded(contents, opened_by(info), &decoded);
    if (result != 0) {
        fuse_reply_err(request, result);
        return;
    }
    reply_part(request, &decoded, size, offset);
    contents_close(contents, opened_by(info));
}

static void close_file(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    (void)inode;
    contents_close(served_of(request)->contents, opened_by(info));
    fuse_reply_err(request, 0);
}

/* ---- The session ------------------------------------------------------------------------------------------ */

/* The last thing that libfuse has said: why it cannot mount. */
static char said[400];

static void note_message(enum fuse_log_level level, const char *format, va_list arguments)
{
    if (level > FUSE_LOG_WARNING) return;
    vsnprintf(said, sizeof said, format, arguments);
    said[strcspn(said, "\n")] = '\0';
}

/* An argument of options, in which commas and backslashes of the name are escaped. To be freed. */
static char *options_of(const char *archive)
{
    static const char start[] = "ro,default_permissions,subtype=tessera,fsname=";
    char *const text = calloc(1, sizeof start + 2 * strlen(archive));
    if (!text) return NULL;
    char *out = text + strlen(strcpy(text, start));
    for (const char *at = archive; *at; at++) {
        if (*at == ',' || *at == '\\') *out++ = '\\';
        *out++ = *at;
    }
    return text;
}

static enum tsr_status run_session(struct fuse_session *session, const char *folder, void (*ready)(void *context),
                                   void *context, struct tsr_error *error)
{
    struct fuse_loop_config config = {.clone_fd = 0, .max_idle_threads = 10};
    enum tsr_status status = TSR_OK;
    if (fuse_set_signal_handlers(session) != 0)
        return refuse(error, TSR_ERROR_LIMIT, "no signals can be handled: %s", strerror(errno));
    if (fuse_session_mount(session, folder) != 0) {
        status = refuse(error, TSR_ERROR_USAGE, "cannot mount on %s: %s", folder, said[0] ? said : "FUSE refuses it");
    } else {
        ready(context);
        if (fuse_session_loop_mt(session, &config) < 0)
            status = refuse(error, TSR_ERROR_LIMIT, "%s cannot be served any more: %s", folder,
                            said[0] ? said : strerror(errno));
        fuse_session_unmount(session);
    }
    fuse_remove_signal_handlers(session);
    return status;
}

enum tsr_status serve_tree(const struct tree *tree, struct contents *contents, const char *archive, const char *folder,
                           void (*ready)(void *context), void *context, struct tsr_error *error)
{
    static const struct fuse_lowlevel_ops operations = {.lookup = look_up,
                                                        .forget = forget,
                                                        .getattr = get_attributes,
                                                        .readdir = read_folder,
                                                        .open = open_file,
                                                        .read = read_file,
                                                        .release = close_file};
    struct served served = {.tree = tree, .contents = contents};
    char *const options = options_of(archive), program[] = "tessera", flag[] = "-o";
    char *words[] = {program, flag, options, NULL};
    struct fuse_args arguments = FUSE_ARGS_INIT(3, words);
    if (!options || stat(archive, &served.folder) != 0) {
        free(options);
        return refuse(error, TSR_ERROR_READ, "%s cannot be read: %s", archive, strerror(errno));
    }
    served.folder.st_mode = S_IFDIR | (served.folder.st_mode & 0444) | (served.folder.st_mode & 0444) >> 2;
    served.folder.st_nlink = 2;
    served.folder.st_size = served.folder.st_blocks = 0;
    served.folder.st_uid = geteuid();
    served.folder.st_gid = getegid();
    fuse_set_log_func(note_message);
    struct fuse_session *const session = fuse_session_new(&arguments, &operations, sizeof operations, &served);
    const enum tsr_status status =
        session ? run_session(session, folder, ready, context, error)
                : refuse(error, TSR_ERROR_USAGE, "cannot mount %s: %s", archive, said[0] ? said : "FUSE refuses it");
    if (session) fuse_session_destroy(session);
    fuse_opt_free_args(&arguments);
    free(options);
    return status;
}
