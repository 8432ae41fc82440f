/* The load engine's other half: reads the plan, holds the counters, prints the report. */
#include "engine.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

Step steps[STEPS_MAX];
int step_count, prologue, connection_count;
long cycles_max, modulo;
long bytes_in, bytes_out, requests, bad, cycles, reconnects, io_errors;
double measure_from, measure_to;
struct sockaddr_in server;

void die(const char *what) {
    perror(what);
    exit(3);
}

double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

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

void read_plan(const char *path) {
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

void print_report(double began) {
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
