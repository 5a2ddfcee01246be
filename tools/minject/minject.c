// minject: makes mimalloc.dll the first import of an executable of Windows.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "inject.h"
#include "pe.h"

static const char usage[] =
    "usage: minject [options] <executable> ...\n"
    "\n"
    "Makes mimalloc.dll the first import of an executable of Windows (32 or 64 bits), so that it is loaded, and\n"
    "initialised, before all other libraries.  Without --inplace a copy is changed, whose name ends in -mi.\n"
    "\n"
    "  -h, --help           show this text\n"
    "  -l, --list           only list what the executable imports, in order\n"
    "  -v, --verbose        list the functions, too; say what changes\n"
    "  -i, --inplace        change the executable itself; the original is kept as <executable>.minject-backup\n"
    "  -u, --undo           after --inplace: put the original back\n"
    "  -f, --force          replace an existing copy; change signed executables, which lose their signature;\n"
    "                       with --undo: put the original back whatever the executable is now\n"
    "  -o, --output=<file>  the name of the copy\n"
    "      --postfix=<p>    import mimalloc-<p>.dll, such as mimalloc-debug.dll\n"
    "      --dll=<file>     import this library, and check that it fits\n"
    "\n"
    "Exit status: 0: done; 1: something could not be done, and that file is as it was; 2: wrong usage.\n";

// Exported by all builds of mimalloc.dll.
static const char imported_function[] = "mi_version";

typedef struct options_s {
  bool        list, verbose, inplace, undo, force;
  const char* output;
  const char* postfix;
  const char* dll;
} options_t;

// ---- messages -------------------------------------------------------------------------------------------------------------

// What comes out of files is not shown as it is: it could control the terminal.
static void say_safely(FILE* to, const char* text) {
  for (; *text != 0; text++) {
    fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, to);
  }
}

static bool refuse(const char* name, const char* format, ...) {
  char    text[1000];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  fprintf(stderr, "minject: %s: ", name);
  say_safely(stderr, text);
  fputc('\n', stderr);
  return false;
}

static char* joined(const char* a, size_t a_length, const char* b, const char* c) {
  const size_t size = a_length + strlen(b) + strlen(c) + 1;
  char* const  to = (char*)malloc(size);
  if (to == NULL) {
    fputs("minject: out of memory\n", stderr);
    exit(1);
  }
  snprintf(to, size, "%.*s%s%s", (int)a_length, a, b, c);
  return to;
}

// ---- list -----------------------------------------------------------------------------------------------------------------

static bool list_functions(pe_t* pe, const pe_import_t* import) {
  char       function[PE_NAME_MAX];
  pe_found_t found;
  for (size_t i = 0; (found = pe_import_function(pe, import, i, function)) == PE_FOUND; i++) {
    fputs("    ", stdout);
    say_safely(stdout, function);
    putchar('\n');
  }
  return found != PE_BROKEN;
}

static bool list_imports(pe_t* pe, bool verbose, bool are_delayed) {
  pe_import_t import;
  pe_found_t  found = PE_END;
  for (size_t i = 0;; i++) {
    found = are_delayed ? pe_delayed_import(pe, i, &import) : pe_import(pe, i, &import);
    if (found != PE_FOUND) break;
    fputs("  ", stdout);
    say_safely(stdout, import.name);
    puts(are_delayed ? " (when first used)" : "");
    if (verbose && !list_functions(pe, &import)) return false;
  }
  return found != PE_BROKEN;
}

static bool list(const char* name, pe_t* pe, const options_t* options) {
  uint32_t size;
  printf("%s: %s%s, %s%s%s\n", name, pe->is_64 ? "PE32+" : "PE32", pe_is_dll(pe) ? " library" : "",
         pe_machine_name(pe_machine(pe)), pe_directory(pe, PE_DIRECTORY_CERTIFICATES, &size) != 0 ? ", signed" : "",
         pe_directory(pe, PE_DIRECTORY_CLI, &size) != 0 ? ", .NET" : "");
  const bool is_whole = list_imports(pe, options->verbose, false) && list_imports(pe, options->verbose, true);
  fflush(stdout);
  return is_whole || refuse(name, "%s", pe->why);
}

// ---- the library ----------------------------------------------------------------------------------------------------------

// Does the library at this path fit the executable?
static bool check_library(const char* name, const pe_t* pe, const char* path) {
  size_t   size;
  uint8_t* bytes = file_read(path, &size);
  if (bytes == NULL) return refuse(name, "%s cannot be read: %s", path, strerror(errno));
  pe_t library;
  bool fits = false;
  if (!pe_open(&library, bytes, size)) refuse(name, "%s: %s", path, library.why);
  else if (!pe_is_dll(&library)) refuse(name, "%s is not a library (DLL)", path);
  else if (pe_machine(&library) != pe_machine(pe))
    refuse(name, "%s does not fit: it is for %s, the executable for %s", path, pe_machine_name(pe_machine(&library)),
           pe_machine_name(pe_machine(pe)));
  else if (!pe_exports(&library, imported_function))
    refuse(name, "%s is not mimalloc: it has no function %s", path, imported_function);
  else fits = true;
  free(bytes);
  return fits;
}

// A library that lies beside the executable is the one that will be loaded.
static bool check_library_beside(const char* name, const pe_t* pe, const char* library, const char* target) {
  char* const path = joined(target, (size_t)(file_name(target) - target), library, "");
  bool        fits = true;
  if (file_exists(path)) fits = check_library(name, pe, path);
  else printf("%s: %s is not beside it; Windows has to find it there, or on the PATH\n", target, library);
  free(path);
  return fits;
}

// ---- change ---------------------------------------------------------------------------------------------------------------

static const char backup_ending[] = ".minject-backup";

// Replaces the executable, once the copy of the original is known to be whole.
static bool write_inplace(const char* name, const pe_t* pe, const injected_t* injected) {
  char* const backup = joined(name, strlen(name), backup_ending, "");
  bool        is_done = false;
  size_t      size;
  uint8_t*    copy = NULL;
  if (file_exists(backup)) refuse(name, "there is a backup already, %s: --undo puts it back", backup);
  else if (!file_write(backup, pe->bytes, pe->size) || (copy = file_read(backup, &size)) == NULL || size != pe->size ||
           memcmp(copy, pe->bytes, size) != 0) {
    refuse(name, "the backup %s cannot be written: %s", backup, strerror(errno));
    file_remove(backup);
  }
  else if (!file_write(name, injected->bytes, injected->size)) {
    refuse(name, "cannot be changed: %s", strerror(errno));
    size_t         now_size = 0;
    uint8_t* const now = file_read(name, &now_size);
    const bool     is_same = now != NULL && now_size == pe->size && memcmp(now, pe->bytes, now_size) == 0;
    if (is_same || file_write(name, pe->bytes, pe->size)) file_remove(backup);
    else refuse(name, "it is damaged now; %s is the original", backup);
    free(now);
  }
  else is_done = true;
  free(copy);
  free(backup);
  return is_done;
}

static bool write_copy(const char* name, const char* target, const injected_t* injected, bool force) {
  if (strcmp(name, target) == 0)
    return refuse(name, "the copy would replace it: --inplace does that, and keeps a backup");
  if (!force && file_exists(target)) return refuse(name, "%s exists; --force replaces it", target);
  if (file_write(target, injected->bytes, injected->size)) return true;
  refuse(name, "%s cannot be written: %s", target, strerror(errno));
  file_remove(target);
  return false;
}

static void report(const char* target, const char* library, const injected_t* injected, const options_t* options) {
  printf("%s: %s is its first import%s\n", target, library, injected->was_there ? " (it was a later one)" : "");
  if (injected->was_signed)
    printf("%s: the signature is removed: Windows, and those who check it, take it for unsigned\n", target);
  if (!options->verbose) return;
  if (injected->was_bound)
    printf("%s: its table of bound imports is removed; the loader looks the functions up\n", target);
  if (injected->overlay_size > 0)
    printf("%s: %zu bytes behind the sections are kept\n", target, injected->overlay_size);
}

static bool change(const char* name, pe_t* pe, const options_t* options) {
  char* const  library = options->dll != NULL ? joined(file_name(options->dll), strlen(file_name(options->dll)), "", "")
                         : options->postfix != NULL ? joined("mimalloc-", 9, options->postfix, ".dll")
                                                    : joined("mimalloc.dll", 12, "", "");
  const size_t stem = file_stem_length(name);
  char* const  target = options->inplace          ? joined(name, strlen(name), "", "")
                        : options->output != NULL ? joined(options->output, strlen(options->output), "", "")
                                                  : joined(name, stem, "-mi", name + stem);
  const inject_t what = {library, imported_function, options->force};
  injected_t     injected = {0};
  bool           is_done = inject(pe, &what, &injected) || refuse(name, "%s", pe->why);
  if (is_done) {
    is_done =
        options->dll != NULL ? check_library(name, pe, options->dll) : check_library_beside(name, pe, library, target);
  }
  if (is_done) {
    is_done =
        options->inplace ? write_inplace(name, pe, &injected) : write_copy(name, target, &injected, options->force);
  }
  if (is_done) report(target, library, &injected, options);
  free(injected.bytes);
  free(library);
  free(target);
  return is_done;
}

// ---- undo -----------------------------------------------------------------------------------------------------------------

// Was the executable made from the backup?  If not, it is another version by now, which the backup must not replace.
static bool is_made_from(const char* name, const uint8_t* original, size_t size) {
  size_t         now_size;
  uint8_t* const now = file_read(name, &now_size);
  pe_t           pe;
  inject_mark_t  mark;
  bool           is_made = false;
  if (now != NULL && pe_open(&pe, now, now_size) && inject_find_mark(&pe, &mark)) {
    const inject_mark_t of_original = inject_mark_of(original, size);
    is_made = mark.size == of_original.size && mark.hash == of_original.hash;
  }
  free(now);
  return is_made;
}

static bool undo(const char* name, bool force) {
  char* const    backup = joined(name, strlen(name), backup_ending, "");
  size_t         size;
  uint8_t* const original = file_read(backup, &size);
  bool           is_done = false;
  if (original == NULL) refuse(name, "there is nothing to undo: %s cannot be read: %s", backup, strerror(errno));
  else if (!force && !is_made_from(name, original, size))
    refuse(name, "it was not made from %s: it has changed since; --force puts the backup back", backup);
  else if (!file_write(name, original, size))
    refuse(name, "cannot be written: %s; %s is the original", strerror(errno), backup);
  else {
    is_done = true;
    printf("%s: the original is back\n", name);
    if (!file_remove(backup)) refuse(name, "%s cannot be removed: %s", backup, strerror(errno));
  }
  free(original);
  free(backup);
  return is_done;
}

// ---- the command line -------------------------------------------------------------------------------------------------------

static bool minject(const char* name, const options_t* options) {
  if (options->undo) return undo(name, options->force);
  size_t         size;
  uint8_t* const bytes = file_read(name, &size);
  if (bytes == NULL) return refuse(name, "cannot be read: %s", strerror(errno));
  pe_t pe;
  bool is_done = pe_open(&pe, bytes, size) || refuse(name, "%s", pe.why);
  if (is_done) is_done = options->list ? list(name, &pe, options) : change(name, &pe, options);
  free(bytes);
  return is_done;
}

static bool is_wrong(const char* text, const char* argument) {
  fprintf(stderr, "minject: %s%s\nminject --help shows all options.\n", text, argument);
  return false;
}

// `--name=value`, or `--name` with the value as the next argument.
static bool takes_value(int argc, char** argv, int* i, const char* name, const char** value) {
  const size_t length = strlen(name);
  if (strncmp(argv[*i], name, length) != 0) return false;
  if (argv[*i][length] == '=') *value = argv[*i] + length + 1;
  else if (argv[*i][length] == 0) *value = *i + 1 < argc ? argv[++*i] : "";
  else return false;
  return true;
}

// Options of one letter may be joined: -lv.
static bool read_letters(const char* letters, options_t* options) {
  for (const char* p = letters; *p != 0; p++) {
    if (*p == 'l') options->list = true;
    else if (*p == 'v') options->verbose = true;
    else if (*p == 'i') options->inplace = true;
    else if (*p == 'u') options->undo = true;
    else if (*p == 'f') options->force = true;
    else return is_wrong("there is no option -", letters);
  }
  return true;
}

static bool read_option(int argc, char** argv, int* i, options_t* options) {
  const char* const argument = argv[*i];
  if (strcmp(argument, "--list") == 0) options->list = true;
  else if (strcmp(argument, "--verbose") == 0) options->verbose = true;
  else if (strcmp(argument, "--inplace") == 0) options->inplace = true;
  else if (strcmp(argument, "--undo") == 0) options->undo = true;
  else if (strcmp(argument, "--force") == 0) options->force = true;
  else if (takes_value(argc, argv, i, "-o", &options->output) ||
           takes_value(argc, argv, i, "--output", &options->output) ||
           takes_value(argc, argv, i, "--postfix", &options->postfix) ||
           takes_value(argc, argv, i, "--dll", &options->dll))
    return true;
  else if (argument[1] != '-') return read_letters(argument + 1, options);
  else return is_wrong("there is no option ", argument);
  return true;
}

static bool is_empty(const char* value) {
  return value != NULL && *file_name(value) == 0;
}

static bool check_options(const options_t* options, int n_files) {
  if (n_files == 0) return is_wrong("no executable is named", "");
  if (is_empty(options->output) || is_empty(options->postfix) || is_empty(options->dll))
    return is_wrong("an option lacks its value", "");
  if (options->list + options->inplace + options->undo > 1)
    return is_wrong("--list, --inplace and --undo exclude each other", "");
  if (options->output != NULL && (options->list || options->inplace || options->undo || n_files > 1))
    return is_wrong("--output is for one executable of which a copy is made", "");
  if (options->dll != NULL && options->postfix != NULL) return is_wrong("--dll and --postfix exclude each other", "");
  const char* const name = options->dll != NULL ? file_name(options->dll) : options->postfix;
  if (name != NULL && (strlen(name) > 200 || file_name(name) != name))
    return is_wrong("this cannot be a part of the name of a library: ", name);
  return true;
}

int main(int argc, char** argv) {
  file_arguments(&argc, &argv);
  options_t options = {0};
  int       n_files = 0;
  bool      are_names = false; // all that follows "--"
  for (int i = 1; i < argc; i++) {
    if (are_names || argv[i][0] != '-' || argv[i][1] == 0) argv[n_files++] = argv[i];
    else if (strcmp(argv[i], "--") == 0) are_names = true;
    else if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
      fputs(usage, stdout);
      return 0;
    }
    else if (!read_option(argc, argv, &i, &options)) return 2;
  }
  if (!check_options(&options, n_files)) return 2;
  bool is_done = true;
  for (int i = 0; i < n_files; i++) {
    if (!minject(argv[i], &options)) is_done = false;
  }
  return is_done && fflush(stdout) == 0 ? 0 : 1;
}
