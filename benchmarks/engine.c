/* The load engine: one thread, epoll, keep-alive connections that walk through a list of requests.
 *
 * What lives here: sending request templates, reading answers, counting. What must not: anything
 * about storage or signatures; Python builds the templates. Usage: engine PLAN, where PLAN is a
 * file as `engine.py` writes it. The result is one JSON object on standard output.
 *
 * A connection goes through steps 0..n-1, where steps before `prologue` are done once, and begins
 * again. One pass is a cycle. In a template the byte 0x01 and a letter stand for:
 *   I  number of the cycle, 10 digits      M  the cycle scattered over `modulo` values, 6 digits
 *   C  number of the connection, 4 digits  a-f  what an earlier answer of this cycle held
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { STEPS_MAX = 64, VARIABLES = 6, VARIABLE_BYTES = 1024, HEAD_BYTES = 65536 };
enum { KEPT_BODY_BYTES = 256 * 1024, EVENTS = 256, SCATTER = 7919, GRACE_S = 15 };

typedef struct {
    char source; /* 'h': a header named `open`; 'b': the body between `open` and `close` */
    int variable, percent_encode, open_len, close_len;
    char *open, *close;
} Capture;

typedef struct {
    char name[64];
    char *head, *body;
    int head_len, substitute_body, is_head, keeps_body;
    long body_len;
    int accepted_count, accepted[8], capture_count;
    Capture captures[4];
    long by_status[1000], count, capacity;
    float *ms;
    double total_s;
    char *first_bad;
    int first_bad_status;
} Step;

enum Reading { HEAD, BODY };
enum Chunk { SIZE_LINE, DATA, AFTER_DATA, TRAILER };

typedef struct {
    int fd, number, step, waits_to_write, done;
    long cycle, requests;
    char variable[VARIABLES][VARIABLE_BYTES];
    int variable_len[VARIABLES];
    char *out, *body;                          /* what is being sent: head and fixed body */
    long out_len, out_capacity, body_len, sent;
    enum Reading reading;
    char head[HEAD_BYTES];
    int head_len, status, chunked, closes, line_len;
    enum Chunk chunk;
    char line[64];
    long left, kept_len;                       /* body bytes to come, and those kept */
    char *kept;
    double began;
} Connection;

static Step steps[STEPS_MAX];
static int step_count, prologue, connection_count, active;
static Connection *connections;
static long next_cycle, cycles_max, modulo;
static long bytes_in, bytes_out, requests, bad, cycles, reconnects, io_errors;
static double measure_from, measure_to;
static int poller;
static struct sockaddr_in server;
static char received[1 << 20];

static void begin_request(Connection *c);

static void die(const char *what) {
    perror(what);
    exit(3);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- sending ------------------------------------------------------------------------------- */

static void append(Connection *c, const char *text, long length) {
    if (c->out_len + length > c->out_capacity) {
        c->out_capacity = (c->out_len + length) * 2;
        c->out = realloc(c->out, (size_t)c->out_capacity);
        if (!c->out) die("realloc");
    }
    memcpy(c->out + c->out_len, text, (size_t)length);
    c->out_len += length;
}

static void append_template(Connection *c, const char *text, long length) {
    const char *end = text + length, *mark;
    char number[32];
    while ((mark = memchr(text, 1, (size_t)(end - text))) && mark + 1 < end) {
        append(c, text, mark - text);
        char kind = mark[1];
        if (kind == 'I') append(c, number, sprintf(number, "%010ld", c->cycle));
        else if (kind == 'C') append(c, number, sprintf(number, "%04d", c->number));
        else if (kind == 'M')
            append(c, number, sprintf(number, "%06ld", c->cycle * SCATTER % modulo));
        else if (kind >= 'a' && kind < 'a' + VARIABLES)
            append(c, c->variable[kind - 'a'], c->variable_len[kind - 'a']);
        text = mark + 2;
    }
    append(c, text, end - text);
}

static void watch(Connection *c, int operation, int to_write) {
    struct epoll_event event = {.events = EPOLLIN | (to_write ? EPOLLOUT : 0), .data.ptr = c};
    epoll_ctl(poller, operation, c->fd, &event);
    c->waits_to_write = to_write;
}

static void open_connection(Connection *c) {
    int yes = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (void *)&server, sizeof server)) die("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    watch(c, EPOLL_CTL_ADD, 0);
}

static void reopen(Connection *c) {
    close(c->fd);
    reconnects++;
    open_connection(c);
}

static void start_over(Connection *c) { /* after an I/O error; the prologue is done once only */
    io_errors++;
    reopen(c);
    c->step = c->requests > prologue ? prologue : 0;
    usleep(2000);
    begin_request(c);
}

static void send_more(Connection *c) {
    while (c->sent < c->out_len + c->body_len) {
        struct iovec parts[2];
        int count = 0;
        long body_sent = c->sent > c->out_len ? c->sent - c->out_len : 0;
        if (c->sent < c->out_len)
            parts[count++] = (struct iovec){c->out + c->sent, (size_t)(c->out_len - c->sent)};
        if (c->body_len > body_sent)
            parts[count++] =
                (struct iovec){c->body + body_sent, (size_t)(c->body_len - body_sent)};
        ssize_t written = writev(c->fd, parts, count);
        if (written < 0 && errno == EAGAIN) {
            if (!c->waits_to_write) watch(c, EPOLL_CTL_MOD, 1);
            return;
        }
        if (written < 0) {
            start_over(c);
            return;
        }
        double t = now();
        if (t >= measure_from && t <= measure_to) bytes_out += written;
        c->sent += written;
    }
    if (c->waits_to_write) watch(c, EPOLL_CTL_MOD, 0);
}

static void retire(Connection *c) {
    c->done = 1;
    active--;
}

static void begin_request(Connection *c) {
    double t = now();
    if (c->step == prologue || !c->requests) {
        long last = cycles_max + (prologue ? connection_count : 0);
        if (c->step == prologue && cycles_max && next_cycle >= last) return retire(c);
        c->cycle = next_cycle++;
    }
    if (t >= measure_to) return retire(c);
    Step *s = &steps[c->step];
    c->out_len = c->sent = c->body_len = 0;
    append_template(c, s->head, s->head_len);
    if (s->substitute_body) append_template(c, s->body, s->body_len);
    else {
        c->body = s->body;
        c->body_len = s->body_len;
    }
    c->reading = HEAD;
    c->head_len = 0;
    c->kept_len = 0;
    c->requests++;
    c->began = t;
    send_more(c);
}

/* ---- receiving ----------------------------------------------------------------------------- */

static const char *find_header(Connection *c, const char *name, int *length) {
    int name_len = (int)strlen(name);
    char *line = c->head, *end = c->head + c->head_len;
    while (line < end) {
        char *eol = memmem(line, (size_t)(end - line), "\r\n", 2);
        if (!eol) eol = end;
        if (eol - line > name_len && line[name_len] == ':' &&
            !strncasecmp(line, name, (size_t)name_len)) {
            line += name_len + 1;
            while (line < eol && *line == ' ') line++;
            *length = (int)(eol - line);
            return line;
        }
        line = eol + 2;
    }
    return NULL;
}

static int is_unreserved(unsigned char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || (byte && strchr("-_.~", byte));
}

static void set_variable(Connection *c, const Capture *k, const char *text, int length) {
    char *to = c->variable[k->variable];
    int used = 0;
    for (int i = 0; i < length && used < VARIABLE_BYTES - 4; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (k->percent_encode && !is_unreserved(byte)) used += sprintf(to + used, "%%%02X", byte);
        else to[used++] = (char)byte;
    }
    c->variable_len[k->variable] = used;
}

static int capture(Connection *c, const Capture *k) {
    int length = 0;
    const char *found;
    if (k->source == 'h') found = find_header(c, k->open, &length);
    else {
        found = memmem(c->kept, (size_t)c->kept_len, k->open, (size_t)k->open_len);
        if (found) {
            found += k->open_len;
            size_t rest = (size_t)(c->kept + c->kept_len - found);
            const char *close = memmem(found, rest, k->close, (size_t)k->close_len);
            if (!close) return 0;
            length = (int)(close - found);
        }
    }
    if (found) set_variable(c, k, found, length);
    return found != NULL;
}

static void count(Connection *c, Step *s) {
    double t = now();
    requests++;
    if (t < measure_from || t > measure_to) return;
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? s->capacity * 2 : 4096;
        s->ms = realloc(s->ms, (size_t)s->capacity * sizeof *s->ms);
        if (!s->ms) die("realloc");
    }
    s->by_status[c->status % 1000]++;
    s->total_s += t - c->began;
    s->ms[s->count++] = (float)((t - c->began) * 1e3);
}

static int is_accepted(const Step *s, int status) {
    for (int i = 0; i < s->accepted_count; i++)
        if (s->accepted[i] == status) return 1;
    return 0;
}

static void finish_request(Connection *c) {
    Step *s = &steps[c->step];
    int good = is_accepted(s, c->status);
    count(c, s);
    if (!good) {
        bad++;
        if (!s->first_bad) {
            s->first_bad = strndup(c->kept, (size_t)c->kept_len);
            s->first_bad_status = c->status;
        }
    }
    for (int i = 0; good && i < s->capture_count; i++) good = capture(c, &s->captures[i]);
    if (c->closes) reopen(c);
    if (good) {
        if (++c->step == step_count) {
            c->step = prologue;
            cycles++;
        }
    } else if (c->step >= prologue) c->step = prologue;
    else if (c->requests > 3) return retire(c);
    else c->step = 0;
    begin_request(c);
}

static void keep(Connection *c, const char *text, long length) {
    long room = KEPT_BODY_BYTES - c->kept_len;
    if (length > room) length = room;
    if (steps[c->step].keeps_body || c->status >= 300) {
        memcpy(c->kept + c->kept_len, text, (size_t)length);
        c->kept_len += length;
    }
}

static void read_head_fields(Connection *c) {
    int length;
    const char *value;
    c->chunked = c->closes = c->line_len = 0;
    c->left = 0;
    c->chunk = SIZE_LINE;
    if ((value = find_header(c, "connection", &length)) && !strncasecmp(value, "close", 5))
        c->closes = 1;
    if (find_header(c, "transfer-encoding", &length)) c->chunked = 1;
    else if ((value = find_header(c, "content-length", &length))) c->left = atol(value);
    if (steps[c->step].is_head || c->status == 204 || c->status == 304) {
        c->left = 0;
        c->chunked = 0;
    }
}

/* Takes head bytes; returns how many were used. Sets `reading` to BODY at the end of the head. */
static long take_head(Connection *c, const char *data, long length) {
    long before = c->head_len, room = HEAD_BYTES - 1 - before;
    long taken = length < room ? length : room;
    if (!taken) {
        fprintf(stderr, "# an answer's head is larger than %d bytes\n", HEAD_BYTES);
        exit(4);
    }
    memcpy(c->head + before, data, (size_t)taken);
    c->head_len += (int)taken;
    c->head[c->head_len] = 0;
    long from = before > 3 ? before - 3 : 0;
    char *end = memmem(c->head + from, (size_t)(c->head_len - from), "\r\n\r\n", 4);
    if (!end) return taken;
    taken = end + 4 - c->head - before;
    c->head_len = (int)(end + 2 - c->head);
    c->status = atoi(c->head + 9);
    if (c->status == 100) {
        c->head_len = 0;
        return taken;
    }
    read_head_fields(c);
    c->reading = BODY;
    return taken;
}

/* Takes one byte of a chunked body's framing; returns 1 at the end of the body. */
static int take_framing(Connection *c, char byte) {
    if (byte != '\n') {
        if (byte != '\r' && c->line_len < (int)sizeof c->line - 1) c->line[c->line_len++] = byte;
        return 0;
    }
    int empty = c->line_len == 0;
    c->line[c->line_len] = 0;
    c->line_len = 0;
    if (c->chunk == TRAILER) return empty;
    if (c->chunk == AFTER_DATA) c->chunk = SIZE_LINE;
    else {
        c->left = strtol(c->line, NULL, 16);
        c->chunk = c->left ? DATA : TRAILER;
    }
    return 0;
}

static void take(Connection *c, const char *data, long length) {
    while (length > 0) {
        if (c->reading == HEAD) {
            long used = take_head(c, data, length);
            data += used;
            length -= used;
            if (c->reading == BODY && !c->chunked && c->left == 0) return finish_request(c);
        } else if (!c->chunked || c->chunk == DATA) {
            long used = length < c->left ? length : c->left;
            keep(c, data, used);
            data += used;
            length -= used;
            c->left -= used;
            if (c->left == 0 && !c->chunked) return finish_request(c);
            if (c->left == 0) c->chunk = AFTER_DATA;
        } else {
            length--;
            if (take_framing(c, *data++)) return finish_request(c);
        }
    }
}

static void on_event(Connection *c, unsigned events) {
    if (c->done) return;
    if (events & EPOLLOUT) send_more(c);
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
    ssize_t length = recv(c->fd, received, sizeof received, 0);
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0) return start_over(c);
    double t = now();
    if (t >= measure_from && t <= measure_to) bytes_in += length;
    take(c, received, length);
}

/* ---- the plan and the report --------------------------------------------------------------- */

static char *read_bytes(FILE *plan, long length) {
    char *bytes = malloc((size_t)length + 1);
    if (!bytes || fread(bytes, 1, (size_t)length, plan) != (size_t)length) exit(4);
    bytes[length] = 0;
    return bytes;
}

static int read_int(FILE *plan) {
    int value;
    if (fscanf(plan, "%d", &value) != 1) exit(4);
    return value;
}

static void read_step(FILE *plan, Step *s) {
    if (fscanf(plan, "%63s", s->name) != 1) exit(4);
    s->head_len = read_int(plan);
    s->body_len = read_int(plan);
    s->substitute_body = read_int(plan);
    s->is_head = read_int(plan);
    s->accepted_count = read_int(plan);
    if (s->accepted_count > 8) exit(4);
    for (int i = 0; i < s->accepted_count; i++) s->accepted[i] = read_int(plan);
    s->capture_count = read_int(plan);
    if (s->capture_count > 4) exit(4);
    fgetc(plan);
    s->head = read_bytes(plan, s->head_len);
    s->body = read_bytes(plan, s->body_len);
    for (int i = 0; i < s->capture_count; i++) {
        Capture *k = &s->captures[i];
        if (fscanf(plan, " %c", &k->source) != 1) exit(4);
        k->variable = read_int(plan);
        k->percent_encode = read_int(plan);
        k->open_len = read_int(plan);
        k->close_len = read_int(plan);
        fgetc(plan);
        k->open = read_bytes(plan, k->open_len);
        k->close = read_bytes(plan, k->close_len);
        s->keeps_body |= k->source == 'b';
    }
}

static void read_plan(const char *path) {
    char host[64];
    FILE *plan = fopen(path, "rb");
    if (!plan) die(path);
    if (fscanf(plan, "%63s", host) != 1) exit(4);
    server.sin_family = AF_INET;
    server.sin_port = htons((unsigned short)read_int(plan));
    if (!inet_aton(host, &server.sin_addr)) exit(4);
    connection_count = read_int(plan);
    int measured_ms = read_int(plan), warm_up_ms = read_int(plan);
    cycles_max = read_int(plan);
    modulo = read_int(plan);
    step_count = read_int(plan);
    prologue = read_int(plan);
    if (step_count > STEPS_MAX) exit(4);
    for (int i = 0; i < step_count; i++) read_step(plan, &steps[i]);
    fclose(plan);
    measure_from = now() + warm_up_ms * 1e-3;
    measure_to = measure_from + measured_ms * 1e-3;
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double percentile(const Step *s, double share) {
    return s->count ? s->ms[(long)((double)(s->count - 1) * share)] : 0.0;
}

static void print_step(Step *s, const char *separator) {
    qsort(s->ms, (size_t)s->count, sizeof *s->ms, by_value);
    printf("%s{\"name\":\"%s\",\"count\":%ld,\"mean_ms\":%.4f,\"p50_ms\":%.4f,\"p99_ms\":%.4f,"
           "\"max_ms\":%.4f,\"by_status\":{",
           separator, s->name, s->count, s->count ? s->total_s / (double)s->count * 1e3 : 0.0,
           percentile(s, 0.5), percentile(s, 0.99), percentile(s, 1.0));
    const char *comma = "";
    for (int status = 0; status < 1000; status++)
        if (s->by_status[status]) {
            printf("%s\"%d\":%ld", comma, status, s->by_status[status]);
            comma = ",";
        }
    printf("}}");
    if (s->first_bad)
        fprintf(stderr, "# %s: first unexpected answer %d: %.400s\n", s->name,
                s->first_bad_status, s->first_bad);
}

static void print_report(double began) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    double cpu = (double)use.ru_utime.tv_sec + (double)use.ru_stime.tv_sec +
                 (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
    double end = now(), window = (end < measure_to ? end : measure_to) - measure_from;
    printf("{\"window_s\":%.4f,\"elapsed_s\":%.4f,\"client_cpu_s\":%.4f,\"requests\":%ld,"
           "\"bytes_in\":%ld,\"bytes_out\":%ld,\"bad\":%ld,\"cycles\":%ld,\"reconnects\":%ld,"
           "\"io_errors\":%ld,\"steps\":[",
           window, end - began, cpu, requests, bytes_in, bytes_out, bad, cycles, reconnects,
           io_errors);
    for (int i = 0; i < step_count; i++) print_step(&steps[i], i ? "," : "");
    printf("]}\n");
}

int main(int argc, char **argv) {
    struct epoll_event events[EVENTS];
    if (argc != 2) return 2;
    double began = now();
    read_plan(argv[1]);
    poller = epoll_create1(0);
    connections = calloc((size_t)connection_count, sizeof *connections);
    if (!connections) die("calloc");
    active = connection_count;
    for (int i = 0; i < connection_count; i++) {
        connections[i].number = i;
        connections[i].kept = malloc(KEPT_BODY_BYTES);
        open_connection(&connections[i]);
    }
    for (int i = 0; i < connection_count; i++) begin_request(&connections[i]);
    while (active > 0 && now() < measure_to + GRACE_S) {
        int ready = epoll_wait(poller, events, EVENTS, 200);
        for (int i = 0; i < ready; i++) on_event(events[i].data.ptr, events[i].events);
    }
    print_report(began);
    return 0;
}
