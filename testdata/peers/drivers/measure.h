/* How collectives are measured, the same for every library and as tierflow bench coll does it: all ranks begin a
 * sample together after a barrier; what is short is called as often as fills 20 ms; the root then rotates, so that
 * calls don't overlap; a sample counts as long as its slowest rank took; buffers are spoilt before and checked after.
 * With "single" a sample is one call from root 0, on buffers just written, after two barriers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* An alltoall's, by rank, elements. */
struct pairs {
	int *gives, *gives_at; /* what this rank gives it, and where that begins */
	int *gets, *gets_at;   /* what it gets from it, and where that begins */
	int *begins;           /* where the other has it in its input */
	int out, in;           /* all of them */
};

struct call {
	const char *collective;
	size_t bytes; /* of a rank's buffer, or block; the largest if blocks differ */
	int root;
	float *send, *recv;
	int *counts, *offsets; /* of the ranks' blocks, elements */
	int all, differ;       /* elements of all blocks; do blocks differ? */
	struct pairs pairs;    /* of an alltoall */
};

/* What a driver says of its library. Whatever fails there ends the process. */
struct library {
	int rank, size;
	void (*barrier)(void);
	void (*maximum)(double *values, int n); /* over all ranks, in place */
	void (*run)(const struct call *c);
};

struct series {
	const struct library *lib;
	struct call call;
	int nodes, per_node, calls, turn;
	int single;   /* a sample is one call */
	double wrong; /* elements, of this rank */
};

static const double sample_seconds = 0.02;
enum { max_calls = 10000, min_samples = 5, max_samples = 10000, max_singles = 1000, max_roots = 16 };

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static int is(const struct call *c, const char *name) { return strcmp(c->collective, name) == 0; }

/* Sums of these over ranks are exact in a float. */
static float element(int rank, size_t i) { return (float)(i % 509 + rank); }

/* Neighbours are on different nodes: each call must wait for the one before to have come there. */
static int root_of(const struct series *s, int turn) {
	if (s->single)
		return 0;
	int roots = s->lib->size < max_roots ? s->lib->size : max_roots;
	turn %= roots;
	return turn % s->nodes * s->per_node + turn / s->nodes;
}

static int gives_blocks(const struct call *c) { return is(c, "allgather") || is(c, "gather"); }

static int takes_blocks(const struct call *c) { return is(c, "scatter") || is(c, "reducescatter"); }

/* Elements of this rank's buffers. All have what a root needs. */
static size_t sent(const struct series *s) {
	if (is(&s->call, "alltoall"))
		return s->call.pairs.out;
	if (takes_blocks(&s->call))
		return s->call.all;
	return gives_blocks(&s->call) ? s->call.counts[s->lib->rank] : s->call.bytes / sizeof(float);
}

static size_t received(const struct series *s) {
	if (is(&s->call, "alltoall"))
		return s->call.pairs.in;
	if (gives_blocks(&s->call))
		return s->call.all;
	return takes_blocks(&s->call) ? s->call.counts[s->lib->rank] : s->call.bytes / sizeof(float);
}

static void fill(struct series *s, int first_root) {
	size_t n = s->call.bytes / sizeof(float);
	memset(s->call.recv, 0xA5, received(s) * sizeof(float));
	if (is(&s->call, "bcast") && s->lib->rank == first_root)
		for (size_t i = 0; i < n; i++)
			s->call.recv[i] = element(first_root, i);
}

/* Writes what is sent to where it is: its cache lines are then this processor's. */
static void rewrite(struct series *s) {
	static char spare[4096];
	size_t left = sent(s) * sizeof(float);
	for (char *at = (char *)s->call.send; left > 0;) {
		size_t n = left < sizeof spare ? left : sizeof spare;
		memcpy(spare, at, n);
		memcpy(at, spare, n);
		at += n;
		left -= n;
	}
}

static void check(struct series *s, int first_root) {
	const struct call *c = &s->call;
	int size = s->lib->size, owner = 0;
	if (is(c, "scan"))
		size = s->lib->rank + 1; /* so many ranks' data is combined */
	if (is(c, "exscan"))
		size = s->lib->rank;
	size_t from = takes_blocks(c) ? c->offsets[s->lib->rank] : 0, all = received(s);
	int bcast = is(c, "bcast"), scatter = is(c, "scatter"), alltoall = is(c, "alltoall"), gathers = gives_blocks(c);
	if (is(c, "barrier") || is(c, "pingpong") || size == 0 || ((is(c, "reduce") || is(c, "gather")) && s->lib->rank != c->root))
		return;
	for (size_t i = 0; i < all; i++) {
		size_t at = from + i;
		float want = size * (float)(at % 509) + size * (size - 1) / 2;
		if (bcast)
			want = element(first_root, i);
		if (scatter)
			want = element(c->root, at);
		if (alltoall) {
			while (i >= (size_t)c->pairs.gets_at[owner] + c->pairs.gets[owner])
				owner++;
			want = element(owner, c->pairs.begins[owner] + i - c->pairs.gets_at[owner]);
		}
		if (gathers) {
			while (i >= (size_t)c->offsets[owner] + c->counts[owner])
				owner++;
			want = element(owner, i - c->offsets[owner]);
		}
		s->wrong += c->recv[i] != want;
	}
}

/* sample returns this rank's seconds for s->calls calls. */
static double sample(struct series *s) {
	int first_root = root_of(s, s->turn);
	fill(s, first_root);
	if (s->single) {
		rewrite(s);
		s->lib->barrier();
	}
	s->lib->barrier();
	double begin = now();
	for (int i = 0; i < s->calls; i++) {
		s->call.root = root_of(s, s->turn);
		s->lib->run(&s->call);
		s->turn += s->calls > 1;
	}
	double took = now() - begin;
	s->lib->barrier(); /* checking must not take time from ranks that are still measured */
	check(s, first_root);
	return took;
}

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* fastest is the slowest rank's best of a few samples. */
static double fastest(struct series *s, int samples) {
	double best = 1e9;
	for (int i = 0; i < samples; i++) {
		double took = sample(s);
		best = took < best ? took : best;
	}
	s->lib->maximum(&best, 1);
	return best > 1e-9 ? best : 1e-9;
}

/* measure prints a row, on rank 0. The number of calls grows step by step: where ranks that spin keep each other from
 * the processor, a single call may take microseconds and most others milliseconds, and a sample must not take minutes. */
static void measure(struct series *s, double seconds) {
	s->calls = 1;
	double best = fastest(s, 3);
	while (!s->single && best < sample_seconds && s->calls < max_calls) {
		double grow = sample_seconds / best + 0.1;
		double calls = s->calls * (grow < 8 ? grow : 8) + 1;
		s->calls = calls < max_calls ? (int)calls : max_calls;
		best = fastest(s, 2);
	}
	double fit = seconds / best;
	int most = s->single ? max_singles : max_samples;
	int n = fit < min_samples ? min_samples : fit > most ? most : (int)fit;
	double *times = (double *)malloc(n * sizeof *times);
	for (int i = 0; i < n; i++)
		times[i] = sample(s) / s->calls * 1e6;
	s->lib->maximum(times, n);
	s->lib->maximum(&s->wrong, 1);
	qsort(times, n, sizeof *times, ascending);
	if (s->lib->rank == 0) {
		double all = 0;
		for (int i = 0; i < n; i++)
			all += times[i];
		printf("{\"collective\":\"%s\",\"bytes\":%zu,\"iters\":%d,\"min_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"mean_us\":%.3f,\"wrong\":%.0f}\n",
			s->call.collective, s->call.bytes, n, times[0], times[(n - 1) / 2], times[(n * 99 + 99) / 100 - 1], all / n, s->wrong);
		fflush(stdout); /* a later cell may never end */
	}
	free(times);
}

static float *buffer(size_t bytes) {
	float *b = (float *)malloc(bytes + 1);
	if (!b) {
		fprintf(stderr, "no memory for %zu bytes\n", bytes);
		exit(1);
	}
	memset(b, 0, bytes + 1); /* touched before anything is timed */
	return b;
}

/* read_counts fills in the blocks of all ranks: those of a list such as 1,0,3, or for - equal ones. */
static void read_counts(struct call *c, int ranks, const char *list) {
	c->differ = strcmp(list, "-") != 0;
	c->counts = (int *)malloc(2 * ranks * sizeof(int));
	c->offsets = c->counts + ranks;
	c->all = 0;
	for (int r = 0; r < ranks; r++) {
		c->counts[r] = (int)(c->bytes / sizeof(float));
		if (c->differ) {
			c->counts[r] = atoi(list);
			list += strcspn(list, ",");
			list += *list == ',';
		}
		c->offsets[r] = c->all;
		c->all += c->counts[r];
	}
}

/* read_pairs fills in what ranks give each other: a list has a row of counts for each, such as 1,0;3,2. */
static void read_pairs(struct call *c, int me, int ranks, const char *list) {
	struct pairs *p = &c->pairs;
	p->gives = (int *)calloc((size_t)ranks * 5, sizeof(int));
	p->gives_at = p->gives + ranks;
	p->gets = p->gives_at + ranks;
	p->gets_at = p->gets + ranks;
	p->begins = p->gets_at + ranks;
	p->out = p->in = 0;
	for (int from = 0; from < ranks; from++) {
		for (int to = 0, at = 0; to < ranks; to++) {
			int n = (int)(c->bytes / sizeof(float));
			if (c->differ) {
				n = atoi(list);
				list += strcspn(list, ",;");
				list += *list != 0;
			}
			if (from == me) {
				p->gives[to] = n;
				p->gives_at[to] = p->out;
				p->out += n;
			}
			if (to == me) {
				p->gets[from] = n;
				p->gets_at[from] = p->in;
				p->begins[from] = at;
				p->in += n;
			}
			at += n;
		}
	}
}

/* measure_all is the program behind main, once the library is up. */
static void measure_all(const struct library *lib, char **argv) {
	char *ops, *sizes, *op, *size;
	for (op = strtok_r(argv[1], ",", &ops); op; op = strtok_r(NULL, ",", &ops)) {
		int barrier = strcmp(op, "barrier") == 0;
		char *list = strdup(argv[2]);
		for (size = strtok_r(list, ",", &sizes); size; size = barrier ? NULL : strtok_r(NULL, ",", &sizes)) {
			struct series s = {lib, {op, barrier ? 0 : strtoul(size, NULL, 10), 0, NULL, NULL, NULL, NULL, 0, 0, {NULL, NULL, NULL, NULL, NULL, 0, 0}},
				atoi(argv[4]), atoi(argv[5]), 1, 0, strcmp(argv[8], "single") == 0, 0};
			read_counts(&s.call, lib->size, argv[7]);
			read_pairs(&s.call, lib->rank, lib->size, argv[7]);
			s.call.send = buffer(sent(&s) * sizeof(float));
			s.call.recv = buffer(received(&s) * sizeof(float));
			for (size_t i = 0; i < sent(&s); i++)
				s.call.send[i] = element(lib->rank, i);
			measure(&s, atof(argv[3]));
			free(s.call.counts);
			free(s.call.pairs.gives);
			free(s.call.send);
			free(s.call.recv);
		}
		free(list);
	}
}

static void want_arguments(int argc) {
	if (argc == 9)
		return;
	fprintf(stderr, "usage: driver OP,OP BYTES,BYTES SECONDS NODES RANKS_PER_NODE STORE COUNTS single|-\n");
	exit(2);
}
