/* The launcher of a command that a warm worker may run: what knock.py does, before any interpreter
 * has started. docs/adr/0026-the-native-launcher.md has the reasons; knock.py is the model, and what
 * it does not do is not done here.
 *
 * Nothing is handed over before the worker's child has said that it is ready, and nothing is run by
 * ourselves after that. In every other case, and whatever is unusual, the entry in Python is
 * executed in our place.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* native.py writes here what `spur link` knows: a mark, then the fields below, each with a zero. */
enum { CONFIG_BYTES = 16384 };
char config[CONFIG_BYTES] = "@spur-launcher-config@";

enum field { MARK, NAME, READS, PYTHON, ENTRY, KEY };

/* How the command is run here: as a worker has said or must, or knocking once more and leaving one. */
enum how { COLD, LEAVE };

enum { PATIENCE_US = 500000, WORD_BYTES = 5, FILES = 4 };

static const char *const NOT_FOR_OTHERS[] = {
    "\0LD_", "\0GLIBC_TUNABLES=", "\0MALLOC_", "/proc/", "/dev/fd/", "/dev/tty",
};
static const size_t NOT_FOR_OTHERS_SIZES[] = {4, 16, 8, 6, 8, 8};

static const int PASSED_ON[] = {
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP,
};
enum { SIGNALS = sizeof PASSED_ON / sizeof *PASSED_ON };

static volatile sig_atomic_t child, last;
extern char **environ;

static const char *field(enum field wanted) {
    const char *at = config;
    for (int n = 0; n < (int)wanted; n++)
        at += strlen(at) + 1;
    return at;
}

/* -- what is handed over */

struct text {
    char *bytes;
    size_t size, room;
};

static int add(struct text *text, const char *bytes, size_t size) {
    if (text->size + size + 1 > text->room) {
        size_t room = 2 * (text->room + size + 1);
        char *more = realloc(text->bytes, room);
        if (!more)
            return 0;
        text->bytes = more;
        text->room = room;
    }
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    text->bytes[text->size++] = 0;
    return 1;
}

/* How an interpreter would code its files in our locale; NULL when not in UTF-8. */
static const char *errors_of_files(void) {
    const char *name = setlocale(LC_CTYPE, "");
    if (!name || !strcmp(name, "C") || !strcmp(name, "POSIX"))
        return "surrogateescape"; /* Python takes C.UTF-8 in their place: PEP 538, PEP 540. */
    if (strcmp(nl_langinfo(CODESET), "UTF-8"))
        return NULL;
    if (!strcmp(name, "C.UTF-8") || !strcmp(name, "C.utf8") || !strcmp(name, "UTF-8"))
        return "surrogateescape";
    return "strict";
}

/* Whether a variable of this name came before; the first one counts. */
static int is_known(char **variable) {
    size_t size = strchr(*variable, '=') - *variable + 1;
    for (char **other = environ; other < variable; other++)
        if (!strncmp(*other, *variable, size))
            return 1;
    return 0;
}

static int make_request(struct text *text, int argc, char **argv, const char *called) {
    const char *errors = errors_of_files();
    char count[16];
    if (!errors)
        return 0;
    snprintf(count, sizeof count, "%d", argc);
    const char *head[] = {"spur-warm-1", "utf-8", "utf-8", errors, "utf-8", errors, count, called};
    for (size_t n = 0; n < sizeof head / sizeof *head; n++)
        if (!add(text, head[n], strlen(head[n])))
            return 0;
    for (int n = 1; n < argc; n++)
        if (!add(text, argv[n], strlen(argv[n])))
            return 0;
    for (char **variable = environ; *variable; variable++)
        if (strchr(*variable, '=') && !is_known(variable))
            if (!add(text, *variable, strlen(*variable)))
                return 0;
    text->size--; /* Fields are parted by zeros, not ended. */
    for (size_t n = 0; n < sizeof NOT_FOR_OTHERS / sizeof *NOT_FOR_OTHERS; n++)
        if (memmem(text->bytes, text->size, NOT_FOR_OTHERS[n], NOT_FOR_OTHERS_SIZES[n]))
            return 0;
    return 1;
}

/* -- where the worker is */

/* Whether a path is a directory of ours, no link, that nobody else may enter. */
static int is_private(const char *path) {
    struct stat found;
    return path[0] == '/' && !lstat(path, &found) && (found.st_mode & 0170077) == 0040000 &&
           found.st_uid == getuid();
}

/* A number of bytes, the highest first, modulo 2^61 - 1. */
static uint64_t fold(uint64_t sum, const char *bytes, size_t size) {
    const uint64_t modulus = (UINT64_C(1) << 61) - 1;
    for (size_t n = 0; n < size; n++) {
        sum = ((sum << 8) & modulus) + (sum >> 53) + (unsigned char)bytes[n];
        if (sum >= modulus)
            sum -= modulus;
    }
    return sum;
}

static int find_door(struct sockaddr_un *door) {
    char base[sizeof door->sun_path], rank[64], group[4096];
    const char *own = getenv("XDG_RUNTIME_DIR");
    int size;
    if (own && is_private(own))
        size = snprintf(base, sizeof base, "%s/spur", own);
    else
        size = snprintf(base, sizeof base, "/tmp/spur-%d", (int)getuid());
    if (size >= (int)sizeof base || !is_private(base))
        return 0;
    snprintf(rank, sizeof rank, "\n%d %d", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0));
    uint64_t sum = fold(0, field(KEY), strlen(field(KEY)));
    sum = fold(sum, rank, strlen(rank));
    int file = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t got;
    while ((got = read(file, group, sizeof group)) > 0)
        sum = fold(sum, group, got);
    close(file);
    door->sun_family = AF_UNIX;
    size = snprintf(door->sun_path, sizeof door->sun_path, "%s/warm-%llx", base,
                    (unsigned long long)sum);
    return !got && size < (int)sizeof door->sun_path;
}

/* -- signals */

static void pass_on(int number) {
    int kept = errno;
    if (number == SIGTSTP) {
        kill(child, SIGSTOP);
        kill(getpid(), SIGSTOP);
        kill(child, SIGCONT);
    } else {
        last = number;
        kill(child, number);
    }
    errno = kept;
}

static void take_signals(struct sigaction before[SIGNALS]) {
    struct sigaction ours = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    for (int n = 0; n < SIGNALS; n++)
        if (!sigaction(PASSED_ON[n], NULL, &before[n]) && before[n].sa_handler != SIG_IGN)
            sigaction(PASSED_ON[n], &ours, NULL);
}

/* Die by a signal, as the command did; it has left its core where it wanted one. */
static void die(int number) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(number, SIG_DFL);
    kill(getpid(), number);
    _exit(128 + number);
}

/* -- the line to the worker */

static void set_patience(int line, int us) {
    struct timeval patience = {0, us};
    setsockopt(line, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(line, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

/* A word and its number; 0 when the other side is gone, -1 when it can't be read. */
static int hear(int line, uint32_t *number) {
    unsigned char data[WORD_BYTES];
    for (size_t size = 0; size < sizeof data;) {
        ssize_t got = recv(line, data + size, sizeof data - size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return (int)got;
        size += got;
    }
    *number = (uint32_t)data[1] << 24 | data[2] << 16 | data[3] << 8 | data[4];
    return data[0];
}

static void hand_over(int line, int here, const struct text *request) {
    int files[FILES] = {here, 0, 1, 2};
    unsigned char size[4] = {request->size >> 24, request->size >> 16, request->size >> 8,
                             request->size};
    struct iovec part = {size, sizeof size};
    union {
        char bytes[CMSG_SPACE(sizeof files)];
        struct cmsghdr aligned;
    } control = {{0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof files);
    memcpy(CMSG_DATA(rights), files, sizeof files);
    /* If it takes no more, it has changed its mind, and its word lies there. */
    if (sendmsg(line, &message, MSG_NOSIGNAL) < 0)
        return;
    for (size_t sent = 0; sent < request->size;) {
        ssize_t more = send(line, request->bytes + sent, request->size - sent, MSG_NOSIGNAL);
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            return;
        sent += more;
    }
}

/* Have a worker run the command and end as it ended, or tell how to run it here. */
static enum how knock(int argc, char **argv, const char *called) {
    struct stat ignored;
    const char *warm = getenv("SPUR_WARM");
    if (warm && !strcmp(warm, "0"))
        return COLD;
    if (getuid() != geteuid() || getgid() != getegid())
        return COLD;
    for (int file = 0; file < 3; file++)
        if (fstat(file, &ignored))
            return COLD;
    if (field(READS)[0] == '1' && isatty(0))
        return COLD;
    struct text request = {0};
    struct sockaddr_un door = {0};
    if (!make_request(&request, argc, argv, called))
        return COLD;
    if (!find_door(&door))
        return LEAVE;
    int line = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (line < 0)
        return COLD;
    set_patience(line, PATIENCE_US);
    if (connect(line, (struct sockaddr *)&door, sizeof door))
        return errno == ENOENT || errno == ECONNREFUSED ? LEAVE : COLD;
    struct ucred seen;
    socklen_t size = sizeof seen;
    if (getsockopt(line, SOL_SOCKET, SO_PEERCRED, &seen, &size) || seen.uid != getuid())
        return COLD;
    uint32_t number = 0;
    int word = hear(line, &number);
    if (word != 'r')
        return word ? COLD : LEAVE;
    int here = open(".", O_PATH | O_CLOEXEC);
    if (here < 0)
        return COLD;
    child = (int)number;
    struct sigaction before[SIGNALS];
    take_signals(before);
    set_patience(line, 0);
    hand_over(line, here, &request);
    word = hear(line, &number);
    if (word < 0) /* Told once when the other side closed with something unread. */
        word = hear(line, &number);
    if (word == 'e')
        _exit((int)number);
    for (int n = 0; n < SIGNALS; n++)
        sigaction(PASSED_ON[n], &before[n], NULL);
    if (word == 'c')
        return COLD;
    die(word == 'd' ? (int)number : last ? last : SIGKILL);
    return COLD;
}

/* Become the entry in Python. Returns only when that can't be. */
static void run_here(enum how how, int argc, char **argv) {
    char **words = calloc(argc + 6, sizeof *words);
    int count = 0;
    if (!words)
        return;
    words[count++] = (char *)field(PYTHON);
    words[count++] = "-IS";
    if (how == COLD) {
        words[count++] = "-X";
        words[count++] = "spur_cold";
    }
    words[count++] = (char *)field(ENTRY);
    for (int n = 1; n < argc; n++)
        words[count++] = argv[n];
    execv(words[0], words);
}

int main(int argc, char **argv) {
    const char *called = (const char *)getauxval(AT_EXECFN);
    const char *name = called ? strrchr(called, '/') : NULL;
    /* Under another name it is what its file is; so is one without any words at all. */
    int is_usual = argc > 0 && name && !strcmp(name + 1, field(NAME));
    run_here(is_usual ? knock(argc, argv, called) : LEAVE, argc, argv);
    dprintf(2, "%s: error: %s: %s\n", field(NAME), field(PYTHON), strerror(errno));
    return 1;
}
