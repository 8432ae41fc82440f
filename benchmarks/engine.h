/* What the two halves of the load engine share: the steps of the plan and the counters. */
#define _GNU_SOURCE
#include <netinet/in.h>

enum { STEPS_MAX = 256, VARIABLES = 6 };

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

extern Step steps[STEPS_MAX];
extern int step_count, prologue, connection_count;
extern long cycles_max, modulo;
extern long bytes_in, bytes_out, requests, bad, cycles, reconnects, io_errors;
extern double measure_from, measure_to;
extern struct sockaddr_in server;

void die(const char *what);
double now(void);
void read_plan(const char *path);
void print_report(double began);
