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
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { VARIABLE_BYTES = 1024, HEAD_BYTES = 65536, KEPT_BODY_BYTES = 256 * 1024 };
enum { EVENTS = 256, SCATTER = 7919, GRACE_S = 15 };

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

static int active, poller;
static long next_cycle;
static Connection *connections;
static char received[1 << 20];

static void begin_request(Connection *c);

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
