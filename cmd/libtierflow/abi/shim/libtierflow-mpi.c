/* libtierflow-mpi.so: collectives of an MPI program by tierflow. It is built by the mpicc of
 * one MPI, loaded by LD_PRELOAD, and stands between the program and that MPI:
 *
 *   tierflow mpi build --mpicc mpicc -o libtierflow-mpi.so
 *
 * Where tierflow can't do a call MPI does, and all ranks must decide the same: one rank in
 * MPI's collective and one in tierflow's would wait for ever. So a call is passed on only
 * by what MPI makes equal on all ranks: the communicator, operation and element type of a
 * reduction, and how many bytes there are. Datatypes of what is only moved may differ from
 * rank to rank. Their bytes are moved, packed where they don't lie side by side.
 *
 * A rank that waits lets MPI go on: others may wait for what it has sent before.
 *
 * Each collective is a row of a table with its parameters and what they mean. All calls of
 * it are made of that row: blocking, nonblocking, persistent, with large counts, Fortran's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TF_TYPES_ONLY
#include "tierflow.h"

/* handle is wide enough for the handles of every MPI: pointers here, numbers there. What is
 * passed on to an MPI that the shim was not built for must get there whole. */
typedef intptr_t handle;

/* WRAP defines what the program calls under MPI's name, and declares what MPI has under the
 * name PMPI_…, both with handles in place of mpi.h's types. An MPI may be without. */
#define WRAP(name, ...) WRAP_AS("MPI_" #name, "PMPI_" #name, name, __VA_ARGS__)
#define WRAP_AS(symbol, passed, name, ...) \
	extern __attribute__((weak)) int pass_##name(__VA_ARGS__) __asm__(passed); \
	int wrap_##name(__VA_ARGS__) __asm__(symbol); \
	__attribute__((visibility("default"))) int wrap_##name(__VA_ARGS__)

/* ---- the library */

static struct {
	int (*open)(const tf_config *, tf_comm **);
	int (*close)(tf_comm *);
	int (*watch)(tf_comm *, const tf_elsewhere *);
	int (*nodes)(tf_comm *);
	int (*draw)(tf_comm *, uint64_t *);
	int (*sub)(tf_comm *, uint64_t, const int *, int, tf_comm **);
	int (*ready)(tf_comm *, const tf_request *);
	int (*call)(tf_comm *, const tf_request *, const void *, void *);
	int (*start)(tf_comm *, const tf_request *, const void *, void *, tf_run **);
	int (*exchange)(tf_comm *, int, int, const tf_block *, const tf_block *, tf_run **);
	int (*wait)(tf_run *);
	int (*done)(int, tf_run *const *);
	int (*explain)(tf_comm *, const tf_request *, char *, size_t);
	const char *(*error)(void);
	int (*abi)(void);
} tf;

static char why[PATH_MAX + 256]; /* something can't be */

/* library_path finds libtierflow.so: TIERFLOW_LIB, or beside this file. */
static void library_path(char *path, size_t size) {
	const char *given = getenv("TIERFLOW_LIB");
	Dl_info self;
	const char *slash;
	if (given && *given)
		snprintf(path, size, "%s", given);
	else if (dladdr(&tf, &self) && (slash = strrchr(self.dli_fname, '/')))
		snprintf(path, size, "%.*s/libtierflow.so", (int)(slash - self.dli_fname), self.dli_fname);
	else
		snprintf(path, size, "libtierflow.so");
}

/* Signals. A handler that a program installs may be called on any thread, also on those that run Go: a goroutine's stack
 * is small, so Go asks for SA_ONSTACK, and gives its threads an alternate stack. Programs don't know that: they get it here,
 * and don't see it. */

static volatile char lent_stack[NSIG]; /* by signal: the program didn't ask for SA_ONSTACK */

static int real_sigaction(int n, const struct sigaction *new, struct sigaction *old) {
	static int (*real)(int, const struct sigaction *, struct sigaction *);
	if (!real) real = (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
	return real(n, new, old);
}

__attribute__((visibility("default"))) int sigaction(int n, const struct sigaction *new, struct sigaction *old) {
	struct sigaction onstack;
	int known = n > 0 && n < NSIG, before = known && lent_stack[n], lend = 0;
	if (known && new) {
		onstack = *new;
		lend = !(new->sa_flags & SA_ONSTACK) && ((new->sa_flags & SA_SIGINFO) || (new->sa_handler != SIG_DFL && new->sa_handler != SIG_IGN));
		if (lend) onstack.sa_flags |= SA_ONSTACK;
		new = &onstack;
	}
	int status = real_sigaction(n, new, old);
	if (status || !known) return status;
	if (old && before) old->sa_flags &= ~SA_ONSTACK;
	if (new) lent_stack[n] = lend;
	return status;
}

/* with_handler is the body of signal and its variants. */
static sighandler_t with_handler(int n, sighandler_t handler, int flags) {
	struct sigaction new = {.sa_handler = handler, .sa_flags = flags}, old;
	if (handler == SIG_ERR || sigaction(n, &new, &old)) return SIG_ERR;
	return old.sa_handler;
}

__attribute__((visibility("default"))) sighandler_t signal(int n, sighandler_t handler) { return with_handler(n, handler, SA_RESTART); }
__attribute__((visibility("default"))) sighandler_t bsd_signal(int n, sighandler_t handler) { return with_handler(n, handler, SA_RESTART); }
__attribute__((visibility("default"))) sighandler_t sysv_signal(int n, sighandler_t handler) { return with_handler(n, handler, SA_RESETHAND | SA_NODEFER); }
__attribute__((visibility("default"))) sighandler_t __sysv_signal(int n, sighandler_t handler) { return sysv_signal(n, handler); }

/* give_stack gives the calling thread an alternate stack that is as good as its own for handlers, unless it has one: Go's are
 * of 32 KiB, UCX's for its reports of crashes hardly larger. */
static void give_stack(void) {
	enum { SIZE = 1 << 20, GUARD = 1 << 16 };
	stack_t has;
	if (sigaltstack(NULL, &has) || has.ss_flags & SS_ONSTACK || (!(has.ss_flags & SS_DISABLE) && has.ss_size >= SIZE)) return;
	char *memory = mmap(NULL, SIZE + GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED || mprotect(memory + GUARD, SIZE, PROT_READ | PROT_WRITE)) return;
	stack_t new = {.ss_sp = memory + GUARD, .ss_size = SIZE};
	sigaltstack(&new, NULL);
}

/* load_library reports whether the library is there. Its runtime takes over signals as it
 * is loaded; those of crashes are given back, so that reports are the program's or MPI's. */
static int load_library(void) {
	static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE};
	struct sigaction kept[3];
	char path[PATH_MAX];
	library_path(path, sizeof path);
	for (int i = 0; i < 3; i++) sigaction(crashes[i], NULL, &kept[i]);
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	for (int i = 0; i < 3; i++) sigaction(crashes[i], &kept[i], NULL);
	if (!lib) {
		snprintf(why, sizeof why, "%s; TIERFLOW_LIB says where it is", dlerror());
		return 0;
	}
	struct { const char *name; void **at; } all[] = {
		{"tf_open", (void **)&tf.open}, {"tf_close", (void **)&tf.close}, {"tf_watch", (void **)&tf.watch}, {"tf_nodes", (void **)&tf.nodes}, {"tf_draw", (void **)&tf.draw}, {"tf_sub", (void **)&tf.sub},
		{"tf_ready", (void **)&tf.ready}, {"tf_call", (void **)&tf.call},
		{"tf_start", (void **)&tf.start}, {"tf_exchange", (void **)&tf.exchange}, {"tf_wait", (void **)&tf.wait}, {"tf_done", (void **)&tf.done}, {"tf_explain", (void **)&tf.explain},
		{"tf_error", (void **)&tf.error}, {"tf_abi", (void **)&tf.abi},
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!(*all[i].at = dlsym(lib, all[i].name))) {
			snprintf(why, sizeof why, "%s has no %s", path, all[i].name);
			return 0;
		}
	if (tf.abi() != TF_ABI) {
		snprintf(why, sizeof why, "%s has TF_ABI %d, the shim %d: build both from one tierflow", path, tf.abi(), TF_ABI);
		return 0;
	}
	return 1;
}

/* ---- what is left to MPI, by TIERFLOW_MPI */

static const char *const names[] = {
	[TF_BCAST] = "bcast", [TF_REDUCE] = "reduce", [TF_ALLREDUCE] = "allreduce", [TF_ALLGATHER] = "allgather",
	[TF_GATHER] = "gather", [TF_SCATTER] = "scatter", [TF_REDUCE_SCATTER] = "reducescatter",
	[TF_ALLTOALL] = "alltoall", [TF_BARRIER] = "barrier", [TF_SCAN] = "scan", [TF_EXSCAN] = "exscan",
};
enum { COLLECTIVES = sizeof names / sizeof *names };

static struct { long long min, max; } limits[COLLECTIVES]; /* bytes of a buffer or block; max < min: none */

static int read_size(const char **at, long long *n) {
	static const struct { const char *unit; int shift; } units[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"B", 0}, {"", 0}};
	char *end;
	if (**at < '0' || **at > '9') return 0;
	*n = strtoll(*at, &end, 10);
	for (int i = 0; i < 5; i++)
		if (!strncmp(end, units[i].unit, strlen(units[i].unit))) {
			*at = end + strlen(units[i].unit);
			if (*n > LLONG_MAX >> units[i].shift) return 0;
			*n <<= units[i].shift;
			return 1;
		}
	return 0;
}

/* read_limits reports whether a text is on, off or COLL[:MIN[-MAX]],… */
static int read_limits(const char *text) {
	int on = !*text || !strcmp(text, "on");
	for (int c = 1; c < COLLECTIVES; c++) {
		limits[c].min = 0;
		limits[c].max = on ? LLONG_MAX : -1;
	}
	if (on || !strcmp(text, "off")) return 1;
	for (const char *at = text;; at++) {
		int c = 1;
		size_t n = strcspn(at, ":,");
		while (c < COLLECTIVES && (strlen(names[c]) != n || strncmp(names[c], at, n))) c++;
		if (c == COLLECTIVES) return 0;
		limits[c].max = LLONG_MAX;
		at += n;
		if (*at == ':') {
			at++;
			if (!read_size(&at, &limits[c].min)) return 0;
			if (*at == '-' && (at++, !read_size(&at, &limits[c].max))) return 0;
		}
		if (!*at) return 1;
		if (*at != ',') return 0;
	}
}

/* ---- what there is */

/* how says what a collective's parameters mean. */
enum how {
	NOTHING,   /* there is no data */
	ONE,       /* one buffer, recv */
	REDUCTION, /* the same from all ranks */
	BLOCKS,    /* of equal size */
	COUNTED,   /* blocks of sizes that all ranks know */
	PAIRS      /* blocks of sizes that two ranks know */
};

enum row {
	Barrier, Bcast, Reduce, Allreduce, Reduce_scatter_block, Reduce_scatter, Scan, Exscan,
	Gather, Scatter, Allgather, Alltoall, Gatherv, Scatterv, Allgatherv, Alltoallv, ROWS
};

static const struct { const char *name; int coll; enum how how; } rows[ROWS] = {
	[Barrier] = {"barrier", TF_BARRIER, NOTHING}, [Bcast] = {"bcast", TF_BCAST, ONE},
	[Reduce] = {"reduce", TF_REDUCE, REDUCTION}, [Allreduce] = {"allreduce", TF_ALLREDUCE, REDUCTION},
	[Reduce_scatter_block] = {"reduce_scatter_block", TF_REDUCE_SCATTER, REDUCTION}, [Reduce_scatter] = {"reduce_scatter", TF_REDUCE_SCATTER, REDUCTION},
	[Scan] = {"scan", TF_SCAN, REDUCTION}, [Exscan] = {"exscan", TF_EXSCAN, REDUCTION},
	[Gather] = {"gather", TF_GATHER, BLOCKS}, [Scatter] = {"scatter", TF_SCATTER, BLOCKS},
	[Allgather] = {"allgather", TF_ALLGATHER, BLOCKS}, [Alltoall] = {"alltoall", TF_ALLTOALL, BLOCKS},
	[Gatherv] = {"gatherv", TF_GATHER, PAIRS}, [Scatterv] = {"scatterv", TF_SCATTER, PAIRS},
	[Allgatherv] = {"allgatherv", TF_ALLGATHER, COUNTED}, [Alltoallv] = {"alltoallv", TF_ALLTOALL, PAIRS},
};

/* why_passed says why a call is MPI's. */
enum why_passed { WRONG, COMMUNICATOR, NEW, OPERATION, NO_DATA, LIMITED, LARGE, FIRST, WHYS };
static const char *const whys[WHYS] = {
	[WRONG] = "wrong arguments", [COMMUNICATOR] = "communicator", [NEW] = "nonblocking on a new communicator",
	[OPERATION] = "operation or type", [NO_DATA] = "no data", [LIMITED] = "TIERFLOW_MPI", [LARGE] = "over 2 GiB", [FIRST] = "first use",
};

static struct { long ours, passed, why[WHYS]; } counts[ROWS]; /* calls */

/* always counts calls that are never ours. */
typedef struct always {
	const char *called;
	long calls;
	int64_t ns; /* in them */
	struct always *next;
} always;

static always *all_always;

/* call is what a program asks for. What its collective has no use for is 0. */
typedef struct {
	enum row row;
	const void *send;
	long long sn; /* elements, or of each block */
	handle st;
	void *recv;
	long long rn;
	handle rt;
	const void *scounts, *sdispls, *rcounts, *rdispls; /* of blocks: int, or with wide 64 bits */
	int wide;
	handle op;
	int root;
	handle comm;
} call;

/* ---- start and end */

static int wrong_mpi; /* the program runs another MPI than the shim was built for */
static int active;    /* tierflow does what it can */
static int rank, ranks;
static int after; /* a request's first uses that MPI does: compiling one costs more than many calls */
static int verbose; /* 2: say of each request how it is done */
static tf_comm *world;
static MPI_Comm progress_comm = MPI_COMM_NULL;
static MPI_Comm self_comm = MPI_COMM_NULL; /* on which requests are ended */
static MPI_Group world_group = MPI_GROUP_NULL;
static int keyval = MPI_KEYVAL_INVALID;
static unsigned generation = 1; /* of communicators: grows when one ends */

/* What the program does in MPI, for tierflow ps, top and diagnose. Time in calls that wait counts as waiting. The
 * coarse clock moves by ticks, and so the sum over many calls is right; it costs as much as a few loads. */
static tf_elsewhere elsewhere;
static int threads; /* several may be in MPI at once */

static int64_t coarse(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* go_elsewhere notes that the program waits in MPI, unless another thread does, and reports whether it has. */
static inline int go_elsewhere(const char *called) {
	const char *none = NULL;
	if (!active || __atomic_load_n(&elsewhere.call, __ATOMIC_RELAXED)) return 0;
	if (threads && !__atomic_compare_exchange_n(&elsewhere.call, &none, called, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return 0;
	int64_t now = coarse();
	__atomic_store_n(&elsewhere.since, now, __ATOMIC_RELAXED);
	__atomic_store_n(&elsewhere.call, called, __ATOMIC_RELEASE);
	__atomic_store_n(&elsewhere.waited, elsewhere.waited - now, __ATOMIC_RELEASE);
	return 1;
}

static inline void come_back(int went) {
	if (!went) return;
	__atomic_store_n(&elsewhere.waited, elsewhere.waited + coarse(), __ATOMIC_RELEASE);
	__atomic_store_n(&elsewhere.call, NULL, __ATOMIC_RELEASE);
}

/* tierflow_program is for gdb.py: the frame of the function that the program has called last, and its thread. */
static struct { void *volatile frame; volatile pthread_t thread; } tierflow_program __attribute__((used));

/* CALLED notes where the program calls the function that it stands in. */
#define CALLED() \
	do { \
		__atomic_store_n(&elsewhere.from, __builtin_return_address(0), __ATOMIC_RELAXED); \
		tierflow_program.frame = __builtin_frame_address(0); \
		tierflow_program.thread = pthread_self(); \
	} while (0)

/* note_always counts a call that is never ours. Threads may lose one to each other. */
static void note_always(always *a, int64_t ns) {
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	if (!a->calls && !a->next) {
		pthread_mutex_lock(&lock);
		if (!a->calls) {
			a->next = all_always;
			all_always = a;
		}
		a->calls++;
		pthread_mutex_unlock(&lock);
	} else {
		a->calls++;
	}
	a->ns += ns;
}

/* PASS returns what MPI's function does, as a call in which the program waits. */
#define PASS(called, ...) \
	do { \
		CALLED(); \
		int went = go_elsewhere(called), passed = __VA_ARGS__; \
		come_back(went); \
		return passed; \
	} while (0)

static int share(void *bytes, int n, void *arg) {
	(void)arg;
	if (PMPI_Bcast(bytes, n, MPI_BYTE, 0, MPI_COMM_WORLD) != MPI_SUCCESS) return 1;
	return PMPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS;
}

static void progress(void *arg) {
	int found;
	(void)arg;
	PMPI_Iprobe(MPI_ANY_SOURCE, 0, progress_comm, &found, MPI_STATUS_IGNORE);
}

/* all_well reports whether all ranks of a communicator are. Of those that are not the first
 * says why. */
static int all_well(MPI_Comm c, int well) {
	int me, first = INT_MAX, mine;
	PMPI_Comm_rank(c, &me);
	mine = well ? INT_MAX : me;
	PMPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, c);
	if (first == me) fprintf(stderr, "tierflow: rank %d: %s: MPI does its collectives itself\n", rank, why);
	return first == INT_MAX;
}

/* wrong_library reports whether the program runs an MPI that the shim was not built for. */
static int wrong_library(void) {
	char runs[MPI_MAX_LIBRARY_VERSION_STRING + 4096] = "", built[64]; /* the other MPI's may be longer */
	int n;
	PMPI_Get_library_version(runs, &n);
#if defined(OMPI_MAJOR_VERSION)
	snprintf(built, sizeof built, "Open MPI v%d.", OMPI_MAJOR_VERSION);
	const char *mpicc = strstr(runs, "MPICH") ? "mpicc.mpich" : "mpicc";
	int right = !strncmp(runs, built, strlen(built));
#else
	snprintf(built, sizeof built, "MPICH %s", MPICH_VERSION);
	const char *mpicc = strstr(runs, "Open MPI") ? "mpicc.openmpi" : "mpicc";
	char *dot = strchr(built, '.'), *at = strstr(runs, "MPICH Version:");
	if (dot) dot[1] = 0;
	if (at) at += strcspn(at, "0123456789");
	int right = at && !strncmp(at, built + strlen("MPICH "), strlen(built) - strlen("MPICH "));
#endif
	if (right) return 0;
	const char *mine = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
	runs[strcspn(runs, "\n,")] = 0;
	for (char *t = runs; *t; t++)
		if (*t == '\t') *t = ' ';
	if (!mine || !strcmp(mine, "0"))
		fprintf(stderr, "tierflow: this shim is for %sx, the program runs %s: tierflow mpi build --mpicc %s\n", built, runs, mpicc);
	return 1;
}

static pthread_mutex_t guard; /* of what has been started */

static void forget_comm(void *entry);
static int comm_ends(MPI_Comm c, int key, void *entry, void *extra) {
	(void)c, (void)key, (void)extra;
	forget_comm(entry);
	return MPI_SUCCESS;
}

/* settle takes rank 0's environment and reports whether tierflow is wanted. */
static int settle(void) {
	struct { char limits[500]; int after, verbose; } say = {"", 1, 0};
	const char *text = getenv("TIERFLOW_MPI"), *n = getenv("TIERFLOW_MPI_AFTER");
	if (text) snprintf(say.limits, sizeof say.limits, "%s", text);
	if (n) say.after = atoi(n) - 1;
	if ((text = getenv("TIERFLOW_MPI_VERBOSE"))) say.verbose = strcmp(text, "explain") ? 1 : 2;
	PMPI_Bcast(&say, sizeof say, MPI_BYTE, 0, MPI_COMM_WORLD);
	after = say.after;
	verbose = say.verbose;
	if (!read_limits(say.limits)) {
		char list[500] = ""; /* a line is written at once: launchers mix what other ranks write into its pieces */
		for (int c = 1, n = 0; c < COLLECTIVES && n < (int)sizeof list; c++) n += snprintf(list + n, sizeof list - n, "%s%s", c > 1 ? ", " : "", names[c]);
		if (rank == 0)
			fprintf(stderr, "tierflow: TIERFLOW_MPI=\"%s\": allowed are on, off, and a list of %s, each with :MIN or :MIN-MAX, such as 4KiB: MPI does its collectives itself\n", say.limits, list);
		return 0;
	}
	for (int c = 1; c < COLLECTIVES; c++)
		if (limits[c].max >= limits[c].min) return 1;
	return 0;
}

/* ---- who has the shim
 *
 * A rank without it makes MPI's calls alone, and one of ours that waits for it would wait for ever. So before the first
 * call of all ranks each says hello to rank 0, which answers when all have come, or some have not in time. Nothing is
 * sent to a rank that may be without, but for hellos to rank 0: their tag is the last one. */

/* leave_mark lets tierflow mpi run know of a rank with the shim. It reports whether it is the first of a name. */
static int leave_mark(const char *name) {
	char path[PATH_MAX];
	const char *folder = getenv("TIERFLOW_MPI_MARKS");
	if (!folder || !*folder) return 1;
	snprintf(path, sizeof path, "%s/%s", folder, name);
	int f = open(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (f >= 0) close(f);
	return f >= 0 || access(path, F_OK);
}

/* join_time returns how many ns ranks may take to come: TIERFLOW_JOIN_TIMEOUT, such as 1m30s. */
static int64_t join_time(void) {
	static const struct { const char *unit; double ns; } units[] = {{"ms", 1e6}, {"h", 3600e9}, {"m", 60e9}, {"s", 1e9}};
	const int64_t usual = 30000000000;
	const char *at = getenv("TIERFLOW_JOIN_TIMEOUT");
	double all = 0;
	while (at && *at) {
		char *end;
		double n = strtod(at, &end);
		size_t i = 0;
		while (i < 4 && strncmp(end, units[i].unit, strlen(units[i].unit))) i++;
		if (end == at || i == 4) return usual; /* joining complains */
		all += n * units[i].ns;
		at = end + strlen(units[i].unit);
	}
	return all > 0 ? (int64_t)all : usual;
}

/* await_all reports whether some requests end before a time; those that don't are cancelled, and null in the list of
 * ended ones, which may be NULL. */
static int await_all(int n, MPI_Request *list, char *ended, int64_t until) {
	int left = n;
	for (int looks = 0;; looks++) {
		for (int i = 0; i < n; i++) {
			int done = 0;
			if (list[i] == MPI_REQUEST_NULL) continue;
			PMPI_Test(&list[i], &done, MPI_STATUS_IGNORE);
			if (!done) continue;
			left--;
			if (ended) ended[i] = 1;
		}
		if (left == 0) return 1;
		if (coarse() > until) break;
		if (looks < 1000) sched_yield();
		else usleep(1000);
	}
	for (int i = 0; i < n; i++) {
		if (list[i] == MPI_REQUEST_NULL) continue;
		PMPI_Cancel(&list[i]);
		PMPI_Request_free(&list[i]);
	}
	return 0;
}

/* list_missing names the ranks, from 1 on, that have not come: 1, 4 to 7. */
static void list_missing(const char *came, char *text, size_t size) {
	size_t n = 0;
	text[0] = 0;
	for (int r = 1; r < ranks && n + 64 < size; r++) {
		int last = r;
		if (came[r - 1]) continue;
		while (last + 1 < ranks && !came[last]) last++;
		n += snprintf(text + n, size - n, "%s%d", n ? ", " : "", r);
		if (last > r) n += snprintf(text + n, size - n, last > r + 1 ? " to %d" : ", %d", last);
		r = last;
	}
}

/* say_missing names ranks without the shim; several is s for more than one. */
static void say_missing(const char *list, const char *several) {
	fprintf(stderr, "tierflow: rank %d: no shim in rank%s %s: linked statically, setuid, or LD_PRELOAD is lost there: MPI does its collectives itself\n", rank, several, list);
}

/* all_have_shim reports whether all ranks have the shim, the same on all that have it. */
static int all_have_shim(void) {
	static int all; /* an answer may come after the wait for it */
	int *top, known, tag = 32767;
	int64_t limit = join_time(), now = coarse();
	PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &top, &known);
	if (known) tag = *top;
	if (rank != 0) {
		MPI_Request r[2];
		PMPI_Irecv(&all, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, &r[0]);
		PMPI_Isend(NULL, 0, MPI_INT, 0, tag, MPI_COMM_WORLD, &r[1]);
		if (!await_all(2, r, NULL, now + 2 * limit)) { /* rank 0 may have begun to wait later */
			if (leave_mark("said")) say_missing("0", "");
			return 0;
		}
		return all;
	}
	MPI_Request *list = malloc((ranks - 1) * sizeof *list);
	char *came = calloc(ranks, 1), missing[1000];
	if (!list || !came) abort();
	for (int i = 0; i < ranks - 1; i++) PMPI_Irecv(NULL, 0, MPI_INT, i + 1, tag, MPI_COMM_WORLD, &list[i]);
	all = await_all(ranks - 1, list, came, now + limit);
	for (int i = 0; i < ranks - 1; i++)
		if (came[i]) PMPI_Send(&all, 1, MPI_INT, i + 1, tag, MPI_COMM_WORLD);
	if (!all) {
		list_missing(came, missing, sizeof missing);
		say_missing(missing, strpbrk(missing, ", ") ? "s" : "");
	}
	free(list);
	free(came);
	return all;
}

static void begin(void) {
	pthread_mutexattr_t again; /* an error's handler may call MPI */
	pthread_mutexattr_init(&again);
	pthread_mutexattr_settype(&again, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&guard, &again);
	PMPI_Query_thread(&threads);
	threads = threads == MPI_THREAD_MULTIPLE;
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks < 2 || !all_have_shim() || !settle()) return;
	give_stack();
	if (!all_well(MPI_COMM_WORLD, load_library())) return;
	PMPI_Comm_dup(MPI_COMM_WORLD, &progress_comm);
	PMPI_Comm_dup(MPI_COMM_SELF, &self_comm);
	PMPI_Comm_group(MPI_COMM_WORLD, &world_group);
	PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, comm_ends, &keyval, NULL);
	tf_config config = {.abi = TF_ABI, .rank = rank, .size = ranks, .share = share, .progress = progress};
	int joined = tf.open(&config, &world) == 0;
	if (!joined) snprintf(why, sizeof why, "%s", tf.error());
	active = all_well(MPI_COMM_WORLD, joined);
	if (active) tf.watch(world, &elsewhere);
	if (active && verbose && rank == 0) fprintf(stderr, "tierflow: rank 0: %d ranks on %d node%s\n", ranks, tf.nodes(world), tf.nodes(world) == 1 ? "" : "s");
}

/* has_begun is called when the program has MPI. */
static void has_begun(void) {
	char name[32];
	snprintf(name, sizeof name, "r%d", (int)getpid()); /* of another MPI's rank there is no more to know */
	leave_mark(name);
	if (!wrong_mpi) begin();
}

WRAP(Init, int *argc, char ***argv) {
	CALLED();
	wrong_mpi = wrong_library();
	int rc = pass_Init(argc, argv);
	if (rc == MPI_SUCCESS) has_begun();
	return rc;
}

WRAP(Init_thread, int *argc, char ***argv, int required, int *provided) {
	CALLED();
	wrong_mpi = wrong_library();
	int rc = pass_Init_thread(argc, argv, required, provided);
	if (rc == MPI_SUCCESS) has_begun();
	return rc;
}

/* print_counts prints a table of rank 0's calls, in one piece: launchers mix what other ranks write into others. */
static void print_counts(void) {
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out) return;
	fprintf(out, "tierflow: rank 0's calls          tierflow's  passed on  why\n");
	for (int i = 0; i < ROWS; i++) {
		const char *before = "  ";
		if (!counts[i].ours && !counts[i].passed) continue;
		fprintf(out, "tierflow:   %-24s %10ld %10ld", rows[i].name, counts[i].ours, counts[i].passed);
		for (int w = 0; w < WHYS; w++)
			if (counts[i].why[w]) fprintf(out, "%s%s %ld", before, whys[w], counts[i].why[w]), before = ", ";
		fprintf(out, "\n");
	}
	for (always *a = all_always; a; a = a->next) fprintf(out, "tierflow:   %-24s %10d %10ld  always MPI's: %.2f s\n", a->called, 0, a->calls, a->ns / 1e9);
	fprintf(out, "tierflow:   in calls passed on %.2f s\n", elsewhere.waited / 1e9);
	fclose(out);
	fwrite(text, 1, size, stderr);
	fflush(stderr);
	free(text);
}

static void end(void) {
	if (active && verbose && rank == 0) print_counts();
	if (active) {
		int went = go_elsewhere("MPI_Finalize");
		active = 0;
		PMPI_Barrier(MPI_COMM_WORLD);
		come_back(went);
		if (tf.close(world)) fprintf(stderr, "tierflow: rank %d: %s\n", rank, tf.error());
	}
	if (progress_comm != MPI_COMM_NULL) {
		PMPI_Comm_free(&progress_comm);
		PMPI_Comm_free(&self_comm);
		PMPI_Group_free(&world_group);
	}
}

WRAP(Finalize, void) {
	CALLED();
	end();
	return pass_Finalize();
}

/* ---- communicators */

typedef struct {
	uint64_t shape; /* collective, type, operation and root */
	int64_t count;
	int uses;
} use;

enum { USES = 4096 };

typedef struct {
	tf_comm *comm; /* NULL: MPI keeps it */
	int rank, size;
	int running; /* what was started and has not ended */
	int gone;    /* the program has freed it */
	use uses[USES]; /* of requests, by hash; a later one takes an earlier one's place */
} entry;

static void end_comm(entry *e) {
	if (active && e->comm && e->comm != world) tf.close(e->comm);
	free(e);
}

/* forget_comm lets what is running end first. */
static void forget_comm(void *p) {
	entry *e = p;
	__atomic_add_fetch(&generation, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&guard);
	e->gone = 1;
	int last = e->running == 0;
	pthread_mutex_unlock(&guard);
	if (last) end_comm(e);
}

/* world_ranks reports whether the members of a communicator are ranks of the world, and
 * which. */
static int world_ranks(MPI_Comm c, int n, int *own, int *out) {
	MPI_Group g;
	int all = 1;
	PMPI_Comm_group(c, &g);
	for (int i = 0; i < n; i++) own[i] = i;
	PMPI_Group_translate_ranks(g, n, own, world_group, out);
	PMPI_Group_free(&g);
	for (int i = 0; i < n; i++) all &= out[i] != MPI_UNDEFINED;
	return all;
}

/* enroll makes a communicator known to tierflow, or leaves it to MPI: the same on all its
 * ranks, all of which call it. With own it is one more communicator of the same ranks. */
static entry *enroll(MPI_Comm c, int own) {
	int inter, same;
	entry *e = calloc(1, sizeof *e);
	if (!e) abort();
	PMPI_Comm_test_inter(c, &inter);
	PMPI_Comm_rank(c, &e->rank);
	PMPI_Comm_size(c, &e->size);
	if (c == MPI_COMM_WORLD && !own) {
		e->comm = world;
	} else if (!inter && e->size > 1) {
		int *own = malloc(2 * e->size * sizeof *own), *list = own + e->size;
		if (!own) abort();
		same = world_ranks(c, e->size, own, list);
		if (same) {
			uint64_t id = 0;
			int well = e->rank || !tf.draw(world, &id);
			PMPI_Bcast(&id, 1, MPI_UINT64_T, 0, c);
			well = well && id && !tf.sub(world, id, list, e->size, &e->comm);
			if (!well) snprintf(why, sizeof why, "%s", id ? tf.error() : "no number for a communicator");
			if (!all_well(c, well)) {
				if (e->comm) tf.close(e->comm);
				e->comm = NULL;
			}
		}
		free(own);
	}
	if (!own) PMPI_Comm_set_attr(c, keyval, e);
	return e;
}

/* entry_of returns what is known of a communicator; NULL: MPI keeps it. May it wait, then one
 * that is not known becomes so. */
static entry *entry_of(handle h, int may_wait) {
	static _Thread_local struct { MPI_Comm comm; unsigned generation; entry *e; } last;
	MPI_Comm c = (MPI_Comm)h;
	unsigned now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
	if (!active || c == MPI_COMM_NULL) return NULL;
	if (last.generation != now || last.comm != c) {
		int found;
		void *e;
		PMPI_Comm_get_attr(c, keyval, &e, &found);
		if (!found && !may_wait && c != MPI_COMM_WORLD) return NULL;
		last.comm = c;
		if (found) {
			last.e = e;
		} else {
			int went = go_elsewhere("first use of a communicator");
			last.e = enroll(c, 0);
			come_back(went);
		}
		last.generation = now;
	}
	return last.e->comm ? last.e : NULL;
}

/* ---- datatypes and operations */

/* element returns the type of a reduction's elements, 0 if MPI keeps it. */
static int element(MPI_Datatype t) {
	static _Thread_local struct { int type; MPI_Datatype of; } last; /* a named type is never freed */
	int size, k = 0;
	if (last.type && last.of == t) return last.type;
	if (t == MPI_DATATYPE_NULL) return 0;
#define IS(x, as) if (!k && t == (x)) k = (as)
	IS(MPI_INT, TF_I32); IS(MPI_DOUBLE, TF_F64); IS(MPI_FLOAT, TF_F32);
	IS(MPI_LONG, TF_I64); IS(MPI_LONG_LONG, TF_I64); IS(MPI_SHORT, TF_I16); IS(MPI_SIGNED_CHAR, TF_I8); IS(MPI_CHAR, CHAR_MIN < 0 ? TF_I8 : TF_U8);
	IS(MPI_UNSIGNED, TF_U32); IS(MPI_UNSIGNED_LONG, TF_U64); IS(MPI_UNSIGNED_LONG_LONG, TF_U64);
	IS(MPI_UNSIGNED_SHORT, TF_U16); IS(MPI_UNSIGNED_CHAR, TF_U8); IS(MPI_BYTE, TF_U8); IS(MPI_C_BOOL, TF_U8);
	IS(MPI_INT8_T, TF_I8); IS(MPI_INT16_T, TF_I16); IS(MPI_INT32_T, TF_I32); IS(MPI_INT64_T, TF_I64);
	IS(MPI_UINT8_T, TF_U8); IS(MPI_UINT16_T, TF_U16); IS(MPI_UINT32_T, TF_U32); IS(MPI_UINT64_T, TF_U64);
	IS(MPI_AINT, TF_I64); IS(MPI_OFFSET, TF_I64); IS(MPI_COUNT, TF_I64);
	IS(MPI_C_FLOAT_COMPLEX, TF_C64); IS(MPI_C_DOUBLE_COMPLEX, TF_C128);
	IS(MPI_INTEGER, TF_I32); IS(MPI_REAL, TF_F32); IS(MPI_DOUBLE_PRECISION, TF_F64);
#undef IS
	static const int sizes[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
	if (!k || PMPI_Type_size(t, &size) != MPI_SUCCESS || size != sizes[k]) return 0; /* as large as usual */
	last.of = t;
	last.type = k;
	return k;
}

/* operation returns 0 if MPI keeps it: what it does, or what is wrong. */
static int operation(MPI_Op op, MPI_Datatype t, int k) {
	int complex = k >= TF_C64, real = k == TF_F32 || k == TF_F64, raw = t == MPI_BYTE, truth = t == MPI_C_BOOL;
	int o = 0;
	if (op == MPI_SUM) o = TF_SUM;
	else if (op == MPI_PROD) o = TF_PROD;
	else if (op == MPI_MIN) o = TF_MIN;
	else if (op == MPI_MAX) o = TF_MAX;
	else if (op == MPI_BAND) o = TF_BAND;
	else if (op == MPI_BOR) o = TF_BOR;
	else if (op == MPI_BXOR) o = TF_BXOR;
	else if (op == MPI_LAND) o = TF_LAND;
	else if (op == MPI_LOR) o = TF_LOR;
	else if (op == MPI_LXOR) o = TF_LXOR;
	if ((complex && o > TF_PROD) || (real && o > TF_MAX) || (raw && (o < TF_BAND || o > TF_BXOR)) || (truth && o < TF_LAND)) return 0;
	return o;
}

/* flat reports whether a buffer of a type is its bytes, in their order. */
static int flat(MPI_Datatype t) {
	int ints, aints, types, how, size, ok = 0;
	MPI_Aint low, extent;
	if (element(t)) return 1;
	PMPI_Type_get_envelope(t, &ints, &aints, &types, &how);
	PMPI_Type_size(t, &size);
	PMPI_Type_get_extent(t, &low, &extent);
	if (low != 0 || extent != size) return 0;
	if (how == MPI_COMBINER_NAMED) return 1;
	if (how == MPI_COMBINER_CONTIGUOUS || how == MPI_COMBINER_DUP) {
		int n[1];
		MPI_Aint a[1];
		MPI_Datatype inner[1];
		PMPI_Type_get_contents(t, ints, aints, types, n, a, inner);
		ok = flat(inner[0]);
		PMPI_Type_get_envelope(inner[0], &ints, &aints, &types, &how);
		if (how != MPI_COMBINER_NAMED) PMPI_Type_free(&inner[0]);
	}
	return ok;
}

/* ---- buffers */

/* side is what a rank gives, or where it gets: one buffer, or blocks. */
typedef struct {
	char *base;
	MPI_Datatype type;
	long long n;                /* elements of each block, if there are no counts */
	const void *counts, *displs; /* see call */
	int wide, blocks;           /* 0 blocks: there is nothing */
	int fill;                   /* what is there counts */
	long long size, bytes;      /* of an element; of all */
	MPI_Aint extent;            /* of an element, or of one block's step without displs */
	char *at, *copy;            /* the bytes side by side; those of a copy */
	int owns;                   /* 1: lists are copies; 2: the type too */
} side;

static long long nth(const void *list, int wide, int i) { return wide ? ((const long long *)list)[i] : ((const int *)list)[i]; }

static long long elements(const side *s, int i) { return s->counts ? nth(s->counts, s->wide, i) : s->n; }

/* first is where a block begins. */
static char *first(const side *s, int i) { return s->base + s->extent * (s->displs ? nth(s->displs, s->wide, i) : i * s->n); }

/* bytes_of returns how many bytes there are, -1 if that can't be. */
static long long bytes_of(long long count, handle t) {
	int size;
	if ((MPI_Datatype)t == MPI_DATATYPE_NULL || count < 0 || PMPI_Type_size((MPI_Datatype)t, &size) != MPI_SUCCESS || size < 0) return -1;
	return count * size;
}

/* measure reports whether a side can be, and looks how long it is. */
static int measure(side *s) {
	MPI_Aint low;
	int size;
	if (s->blocks == 0) return 1;
	if (s->type == MPI_DATATYPE_NULL || PMPI_Type_size(s->type, &size) != MPI_SUCCESS || size < 0) return 0;
	PMPI_Type_get_extent(s->type, &low, &s->extent);
	s->size = size;
	s->bytes = 0;
	for (int i = 0; i < s->blocks; i++) {
		if (elements(s, i) < 0) return 0;
		s->bytes += elements(s, i) * size;
	}
	return 1;
}

/* in_line reports whether blocks lie one behind the other. */
static int in_line(const side *s) {
	if (s->displs)
		for (int i = 1; i < s->blocks; i++)
			if (nth(s->displs, s->wide, i) != nth(s->displs, s->wide, i - 1) + elements(s, i - 1)) return 0;
	return 1;
}

/* each_block packs what a side has into its copy, or brings it back. */
static void each_block(side *s, int pack) {
	char *at = s->copy;
	for (int i = 0; i < s->blocks; i++) {
		long long left = elements(s, i), some = s->size ? INT_MAX / s->size : INT_MAX;
		char *b = first(s, i);
		for (; left > 0; left -= some) {
			int n = left < some ? left : some, done = 0;
			if (pack) PMPI_Pack(b, n, s->type, at, n * s->size, &done, MPI_COMM_SELF);
			else PMPI_Unpack(at, n * s->size, &done, b, n, s->type, MPI_COMM_SELF);
			at += n * s->size;
			b += n * s->extent;
		}
	}
}

/* open_side finds a side's bytes side by side, or copies them. */
static void open_side(side *s, int copy) {
	s->at = s->copy = NULL;
	if (s->blocks == 0 || s->bytes == 0) return;
	if (!copy && flat(s->type) && in_line(s)) {
		s->at = first(s, 0);
		return;
	}
	if (!(s->at = s->copy = malloc(s->bytes))) {
		fprintf(stderr, "tierflow: rank %d: no memory for %lld bytes of a derived type\n", rank, s->bytes);
		PMPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (s->fill) each_block(s, 1);
}

static void close_side(side *s, int deliver) {
	if (s->copy && deliver) each_block(s, 0);
	free(s->copy);
	s->copy = NULL;
}

/* ---- what a call becomes */

/* plan is a call that tierflow does. */
typedef struct {
	enum row row;
	entry *e;
	MPI_Comm comm;
	tf_request q;
	int64_t *counts;         /* the request's; NULL: none */
	side send, recv;
	int in_place, keep;      /* keep: what is received is no result here, or was put in */
	tf_block *give, *get;    /* of pairs; each has a block for each rank */
	enum why_passed why;     /* it is MPI's, if it is */
} plan;

/* use_of returns what a communicator knows of a request. */
static use *use_of(entry *e, uint64_t shape, int64_t count) {
	use *u = &e->uses[((shape ^ (uint64_t)count) * 0x9e3779b97f4a7c15u) >> 52];
	if (u->shape != shape || u->count != count) *u = (use){shape, count, 0};
	return u;
}

/* explain says how a call is done, and why so. Of pairs there is only what envelopes are. */
static void explain(const plan *p) {
	char text[4096];
	if (rows[p->row].how == PAIRS) fprintf(stderr, "tierflow: rank 0: %s: short blocks in envelopes, long ones from rank to rank\n", rows[p->row].name);
	else if (!tf.explain(p->e->comm, &p->q, text, sizeof text)) fprintf(stderr, "tierflow: rank 0: %s: %s\n", rows[p->row].name, text);
}

/* is_ours reports whether tierflow does a call that moves some bytes, or that many in each
 * block. It is asked once for each call, in the same order on all ranks. total is of all
 * blocks; key tells counts apart. */
static int is_ours(plan *p, long long bytes, long long total, int64_t key, int at_once) {
	const tf_request *q = &p->q;
	if (total < 1 && q->coll != TF_BARRIER) return p->why = NO_DATA, 0;
	if (bytes < limits[q->coll].min || bytes > limits[q->coll].max) return p->why = LIMITED, 0;
	if (total > INT_MAX) return p->why = LARGE, 0;
	uint64_t shape = (uint64_t)(p->row + 1) << 48 | (uint64_t)q->type << 40 | (uint64_t)q->op << 32 | (uint32_t)q->root;
	use *u = use_of(p->e, shape, key);
	if (u->uses < after && !at_once) return u->uses++, p->why = FIRST, 0;
	if (verbose > 1 && rank == 0 && u->uses <= after) {
		u->uses = after + 1;
		explain(p);
	}
	return 1;
}

/* A buffer given twice is in place for MPIs that don't look. */
#define IN_PLACE(send, recv) ((send) == MPI_IN_PLACE || (send) == (recv))

/* plan_reduction fills in a reduction. */
static int plan_reduction(plan *p, const call *k, int at_once) {
	entry *e = p->e;
	MPI_Datatype t = (MPI_Datatype)k->rt;
	long long n = k->rn, most = n, key;
	int kind, op, rooted = k->row == Reduce, blocks = 1, size = 0;
	if (k->row == Reduce_scatter) {
		n = most = 0;
		for (int i = 0; i < e->size; i++) {
			long long one = nth(k->rcounts, k->wide, i);
			if (one < 0) return 0;
			n += one;
			if (one > most) most = one;
		}
	}
	if (n < 1) return p->why = n ? WRONG : NO_DATA, 0;
	if (!(kind = element(t)) || !(op = operation((MPI_Op)k->op, t, kind))) return p->why = OPERATION, 0;
	PMPI_Type_size(t, &size);
	p->q.type = kind;
	p->q.op = op;
	p->q.count = key = most;
	p->q.in_place = IN_PLACE(k->send, k->recv) && (!rooted || e->rank == k->root);
	if (k->row == Reduce_scatter_block) blocks = e->size;
	if (k->row == Reduce_scatter && most * e->size != n) {
		p->counts = malloc(e->size * sizeof *p->counts);
		if (!p->counts) abort();
		key = -1;
		for (int i = 0; i < e->size; i++) {
			p->counts[i] = nth(k->rcounts, k->wide, i);
			key = (key ^ p->counts[i]) * 0x100000001b3;
		}
		p->q.counts = p->counts;
	}
	p->send.at = (char *)k->send;
	p->recv.at = k->recv;
	return is_ours(p, most * size, n * blocks * size, key, at_once);
}

/* plan_blocks fills in what moves blocks that all ranks know. */
static int plan_blocks(plan *p, const call *k, int at_once) {
	entry *e = p->e;
	int root = e->rank == k->root, coll = p->q.coll, counted = k->row == Allgatherv;
	int in = coll == TF_SCATTER ? root && k->recv == MPI_IN_PLACE : (coll != TF_GATHER || root) && k->send == MPI_IN_PLACE;
	side *s = &p->send, *r = &p->recv;
	*s = (side){(char *)k->send, (MPI_Datatype)k->st, k->sn, .blocks = 1, .fill = 1};
	*r = (side){k->recv, (MPI_Datatype)k->rt, k->rn, k->rcounts, k->rdispls, k->wide, .blocks = e->size, .fill = in};
	if (coll == TF_SCATTER) {
		s->blocks = root ? e->size : 0;
		r->blocks = !in;
	} else if (coll == TF_ALLTOALL) {
		s->blocks = e->size;
	} else if (coll == TF_GATHER && !root) {
		r->blocks = 0;
	}
	if (in && coll != TF_SCATTER) s->blocks = 0;
	if (!measure(s) || !measure(r)) return 0;
	p->q.type = TF_U8;
	p->q.in_place = in;
	if (!counted) {
		long long one = r->blocks ? r->bytes / r->blocks : s->bytes;
		if (coll == TF_SCATTER && root) one = s->bytes / s->blocks;
		p->q.count = one;
		return is_ours(p, one, one > INT_MAX ? one : one * e->size, one, at_once);
	}
	long long most = 0, key = -1;
	p->counts = malloc(e->size * sizeof *p->counts);
	if (!p->counts) abort();
	for (int i = 0; i < e->size; i++) {
		p->counts[i] = elements(r, i) * r->size;
		key = (key ^ p->counts[i]) * 0x100000001b3;
		if (p->counts[i] > most) most = p->counts[i];
	}
	p->q.count = most;
	if (most * e->size != r->bytes) p->q.counts = p->counts;
	return is_ours(p, most, r->bytes, p->q.counts ? key : most, at_once);
}

/* plan_pairs fills in what moves blocks that two ranks know. Limits of their bytes are not for
 * it: a rank doesn't know those of others. */
static int plan_pairs(plan *p, const call *k, int at_once) {
	entry *e = p->e;
	int coll = p->q.coll, root = e->rank == k->root, in;
	side *s = &p->send, *r = &p->recv;
	if (limits[coll].min > 0 || limits[coll].max < LLONG_MAX) return p->why = LIMITED, 0;
	*s = (side){(char *)k->send, (MPI_Datatype)k->st, k->sn, k->scounts, k->sdispls, k->wide, .blocks = e->size, .fill = 1};
	*r = (side){k->recv, (MPI_Datatype)k->rt, k->rn, k->rcounts, k->rdispls, k->wide, .blocks = e->size};
	switch (coll) {
	case TF_GATHER:
		in = root && k->send == MPI_IN_PLACE;
		s->blocks = !in;
		if (!root) r->blocks = 0;
		break;
	case TF_SCATTER:
		in = root && k->recv == MPI_IN_PLACE;
		if (!root) s->blocks = 0;
		r->blocks = !in;
		break;
	default:
		in = k->send == MPI_IN_PLACE;
		if (in) {
			*s = *r;
			s->fill = 1;
		}
	}
	p->in_place = in;
	r->fill = in && coll == TF_GATHER; /* this rank's block comes back as it is */
	if (!measure(s) || !measure(r)) return 0;
	return is_ours(p, 0, 1, -1, at_once);
}

/* knows reports whether a communicator has been looked at. */
static int knows(MPI_Comm c) {
	void *e;
	int found = 0;
	if (active && c != MPI_COMM_NULL) PMPI_Comm_get_attr(c, keyval, &e, &found);
	return found;
}

/* decide reports whether a call is tierflow's, the same on all ranks, and fills in what it
 * becomes. It touches no buffer. */
static int decide(plan *p, const call *k, int may_wait, int at_once) {
	long long n;
	*p = (plan){.row = k->row, .comm = (MPI_Comm)k->comm, .e = entry_of(k->comm, may_wait)};
	if (!p->e) return p->why = may_wait || knows((MPI_Comm)k->comm) ? COMMUNICATOR : NEW, 0;
	if (k->root < 0 || k->root >= p->e->size) return 0;
	p->q = (tf_request){.coll = rows[k->row].coll, .root = k->root};
	int yes = 0;
	switch (rows[k->row].how) {
	case NOTHING:
		return is_ours(p, 0, 0, 0, at_once);
	case ONE:
		if ((n = bytes_of(k->rn, k->rt)) < 0) return 0;
		p->recv = (side){k->recv, (MPI_Datatype)k->rt, k->rn, .blocks = 1, .fill = p->e->rank == k->root};
		p->keep = p->recv.fill;
		p->q.type = TF_U8;
		p->q.count = n;
		return is_ours(p, n, n, n, at_once) && measure(&p->recv);
	case REDUCTION:
		yes = plan_reduction(p, k, at_once);
		break;
	case BLOCKS: case COUNTED:
		yes = plan_blocks(p, k, at_once);
		break;
	case PAIRS:
		yes = plan_pairs(p, k, at_once);
	}
	if (!yes) free(p->counts);
	return yes;
}

/* list_blocks finds where a side's blocks are, in the order of ranks. */
static void list_blocks(side *s, tf_block *list, int copy, int only) {
	int direct = !copy && s->blocks && flat(s->type);
	char *at;
	if (direct) s->at = s->copy = NULL;
	else open_side(s, 1);
	at = s->copy;
	for (int i = 0; i < s->blocks; i++) {
		tf_block *b = &list[s->blocks == 1 ? only : i];
		b->bytes = elements(s, i) * s->size;
		b->at = direct ? first(s, i) : at;
		at += b->bytes;
	}
}

static void open_pairs(plan *p) {
	int n = p->e->size, me = p->e->rank, coll = p->q.coll;
	if (!p->give && !(p->give = malloc(2 * n * sizeof *p->give))) abort();
	p->get = p->give + n;
	memset(p->give, 0, 2 * n * sizeof *p->give);
	list_blocks(&p->send, p->give, coll == TF_ALLTOALL && p->in_place, p->q.root);
	list_blocks(&p->recv, p->get, 0, p->q.root);
	if (p->in_place && coll != TF_ALLTOALL) p->give[me] = p->get[me] = (tf_block){0};
}

/* open_plan finds the bytes that go and come. */
static void open_plan(plan *p) {
	enum how how = rows[p->row].how;
	if (how == PAIRS) {
		open_pairs(p);
	} else if (how != REDUCTION && how != NOTHING) {
		open_side(&p->send, 0);
		open_side(&p->recv, 0);
	}
}

/* close_plan brings what has come to where the program wants it. */
static void close_plan(plan *p, int failed) {
	enum how how = rows[p->row].how;
	if (how == REDUCTION || how == NOTHING) return;
	close_side(&p->send, 0);
	close_side(&p->recv, !failed && !p->keep);
}

/* keep_list returns a copy of a list of counts or displacements. */
static const void *keep_list(const void *list, const side *s) {
	size_t n = s->blocks * (s->wide ? sizeof(long long) : sizeof(int));
	void *copy = list && n ? malloc(n) : NULL;
	if (list && n && !copy) abort();
	return copy ? memcpy(copy, list, n) : NULL;
}

/* keep_side copies what a program may free before the call ends: types, and though it must not
 * lists. */
static void keep_side(side *s) {
	int a, b, c, how;
	if (s->blocks == 0) return;
	PMPI_Type_get_envelope(s->type, &a, &b, &c, &how);
	if (how != MPI_COMBINER_NAMED) PMPI_Type_dup(s->type, &s->type);
	s->counts = keep_list(s->counts, s);
	s->displs = keep_list(s->displs, s);
	s->owns = how != MPI_COMBINER_NAMED ? 2 : 1;
}

static void free_side(side *s) {
	if (!s->owns) return;
	if (s->owns > 1) PMPI_Type_free(&s->type);
	free((void *)s->counts);
	free((void *)s->displs);
}

static void free_plan(plan *p) {
	free(p->counts);
	free(p->give);
	free_side(&p->send);
	free_side(&p->recv);
}

/* finish reports a call's end to the program as MPI would. */
static int finish(MPI_Comm c, int failed) {
	if (!failed) return MPI_SUCCESS;
	fprintf(stderr, "tierflow: rank %d: %s\n", rank, tf.error());
	PMPI_Comm_call_errhandler(c, MPI_ERR_OTHER);
	return MPI_ERR_OTHER;
}

static int run_plan(plan *p, tf_run **run) {
	if (rows[p->row].how == PAIRS) return tf.exchange(p->e->comm, p->q.coll, p->q.root, p->give, p->get, run);
	if (run) return tf.start(p->e->comm, &p->q, p->send.at, p->recv.at, run);
	return tf.call(p->e->comm, &p->q, p->send.at, p->recv.at);
}

static void pass_on(const plan *p) {
	counts[p->row].passed++;
	counts[p->row].why[p->why]++;
}

/* blocking does a call and returns what MPI's would; or it reports that it is MPI's. */
static int blocking(const call *k, int *rc) {
	plan p;
	if (!decide(&p, k, 1, 0)) {
		pass_on(&p);
		return 0;
	}
	counts[k->row].ours++;
	open_plan(&p);
	int failed = run_plan(&p, NULL);
	close_plan(&p, failed);
	free_plan(&p);
	*rc = finish(p.comm, failed);
	return 1;
}

/* ---- what is started
 *
 * A request of MPI stands for it: the receive of a message from this rank to itself, which is
 * sent when it has ended. So MPI's calls work on it, alone and among others. Who waits for
 * it waits in tierflow first, as in a blocking call. */

typedef struct pending {
	struct pending *next;          /* with the same hash */
	struct pending *newer, *older; /* running */
	MPI_Request handle;
	int tag; /* of its message */
	int persistent, orphan; /* orphan: the program has freed it */
	int waited;             /* a thread is in tf.wait */
	tf_run *run;            /* NULL: it doesn't run */
	plan p;
} pending;

enum { BUCKETS = 256 };
static pending *buckets[BUCKETS];
static pending *newest, *oldest;
static int running;    /* what may be waited for */
static int persistents;
static int *free_tags, tags_free, tags_made; /* free_tags has room for tags_made */

static unsigned bucket_of(MPI_Request r) { return ((uint64_t)(uintptr_t)r * 0x9e3779b97f4a7c15u) >> 56; }

static int take_tag(void) {
	if (tags_free > 0) return free_tags[--tags_free];
	int *more = realloc(free_tags, (tags_made + 1) * sizeof *more);
	if (!more) abort();
	free_tags = more;
	return tags_made++;
}

static void remember(pending *d) {
	pending **b = &buckets[bucket_of(d->handle)];
	d->next = *b;
	*b = d;
	persistents += d->persistent;
}

static pending *find_pending(MPI_Request r) {
	pending *d = buckets[bucket_of(r)];
	while (d && d->handle != r) d = d->next;
	return d;
}

static void forget(pending *d) {
	pending **b = &buckets[bucket_of(d->handle)];
	while (*b != d) b = &(*b)->next;
	*b = d->next;
	persistents -= d->persistent;
	free_tags[tags_free++] = d->tag;
	free_plan(&d->p);
	if (d->persistent) end_comm(d->p.e);
	free(d);
}

/* begin_run starts what stands behind a request. The guard is held. */
static int begin_run(pending *d) {
	open_plan(&d->p);
	if (run_plan(&d->p, &d->run)) {
		close_plan(&d->p, 1);
		return 1;
	}
	d->older = newest;
	d->newer = NULL;
	*(newest ? &newest->newer : &oldest) = d;
	newest = d;
	d->p.e->running++;
	__atomic_add_fetch(&running, 1, __ATOMIC_RELEASE);
	return 0;
}

/* end_run ends what has ended in tierflow. The guard is held. */
static void end_run(pending *d, int failed) {
	entry *e = d->p.e;
	close_plan(&d->p, failed);
	*(d->newer ? &d->newer->older : &newest) = d->older;
	*(d->older ? &d->older->newer : &oldest) = d->newer;
	__atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
	d->run = NULL;
	d->waited = 0;
	if (failed && !e->gone) finish(d->p.comm, 1);
	PMPI_Send(NULL, 0, MPI_BYTE, 0, d->tag, self_comm);
	int last = --e->running == 0 && e->gone;
	if (!d->persistent || d->orphan) forget(d);
	if (last) end_comm(e);
}

/* end_some ends what is done. */
static void end_some(void) {
	enum { SOME = 64 };
	tf_run *runs[SOME];
	pending *all[SOME];
	pthread_mutex_lock(&guard);
	for (;;) {
		int n = 0, i;
		for (pending *d = oldest; d && n < SOME; d = d->newer)
			if (!d->waited) all[n] = d, runs[n++] = d->run;
		if (n == 0 || (i = tf.done(n, runs)) < 0) break;
		end_run(all[i], tf.wait(runs[i]));
	}
	pthread_mutex_unlock(&guard);
}

/* settle waits for those of some requests that are tierflow's. */
static void settle_requests(int n, const MPI_Request *list) {
	for (int i = 0; i < n; i++) {
		pthread_mutex_lock(&guard);
		pending *d = find_pending(list[i]);
		if (d && d->run && !d->waited) {
			tf_run *r = d->run;
			d->waited = 1;
			pthread_mutex_unlock(&guard);
			int failed = tf.wait(r);
			pthread_mutex_lock(&guard);
			end_run(d, failed);
		}
		pthread_mutex_unlock(&guard);
	}
}

static int any_runs(void) { return __atomic_load_n(&running, __ATOMIC_ACQUIRE) > 0; }

static void will_wait(int n, const MPI_Request *list) {
	if (any_runs() && n > 0 && list) settle_requests(n, list);
}

static void will_test(void) {
	if (any_runs()) end_some();
}

static pending *new_pending(const plan *p, int persistent) {
	pending *d = calloc(1, sizeof *d);
	if (!d) abort();
	d->p = *p;
	keep_side(&d->p.send);
	keep_side(&d->p.recv);
	d->persistent = persistent;
	d->tag = take_tag();
	return d;
}

/* nonblocking starts a call and makes its request, or reports that it is MPI's. */
static int nonblocking(const call *k, MPI_Request *request, int *rc) {
	plan p;
	if (!decide(&p, k, 0, 0)) {
		pass_on(&p);
		return 0;
	}
	counts[k->row].ours++;
	pthread_mutex_lock(&guard);
	pending *d = new_pending(&p, 0);
	int failed = begin_run(d);
	if (!failed) {
		PMPI_Irecv(NULL, 0, MPI_BYTE, 0, d->tag, self_comm, &d->handle);
		*request = d->handle;
		remember(d);
	} else {
		free_tags[tags_free++] = d->tag;
		free_plan(&d->p);
		free(d);
	}
	*rc = finish(p.comm, failed);
	pthread_mutex_unlock(&guard);
	return 1;
}

/* persistent makes a request that MPI_Start starts, or reports that it is MPI's. */
static int persistent(const call *k, MPI_Request *request, int *rc) {
	plan p;
	if (!decide(&p, k, 1, 1)) {
		pass_on(&p);
		return 0;
	}
	p.e = enroll(p.comm, 1); /* ranks may start requests in any order */
	if (!p.e->comm) {
		p.why = COMMUNICATOR;
		pass_on(&p);
		free_plan(&p);
		free(p.e);
		return 0;
	}
	counts[k->row].ours++;
	pthread_mutex_lock(&guard);
	pending *d = new_pending(&p, 1);
	*rc = PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, d->tag, self_comm, &d->handle);
	*request = d->handle;
	remember(d);
	pthread_mutex_unlock(&guard);
	return 1;
}

/* start_persistent starts those of some requests that are tierflow's; MPI has started all. */
static int start_persistent(int n, const MPI_Request *list) {
	int rc = MPI_SUCCESS;
	pthread_mutex_lock(&guard);
	for (int i = 0; i < n && persistents; i++) {
		pending *d = find_pending(list[i]);
		if (d && !d->run && begin_run(d)) {
			rc = finish(d->p.comm, 1);
			PMPI_Send(NULL, 0, MPI_BYTE, 0, d->tag, self_comm);
		}
	}
	pthread_mutex_unlock(&guard);
	return rc;
}

WRAP(Start, MPI_Request *r) {
	int rc = pass_Start(r);
	return rc == MPI_SUCCESS && persistents ? start_persistent(1, r) : rc;
}

WRAP(Startall, int n, MPI_Request *r) {
	int rc = pass_Startall(n, r);
	return rc == MPI_SUCCESS && persistents ? start_persistent(n, r) : rc;
}

static void will_free(const MPI_Request *r) {
	if (!r || (!any_runs() && !persistents)) return;
	pthread_mutex_lock(&guard);
	pending *d = find_pending(*r);
	if (d && d->run) d->orphan = 1;
	else if (d) forget(d);
	pthread_mutex_unlock(&guard);
}

WRAP(Request_free, MPI_Request *r) {
	will_free(r);
	return pass_Request_free(r);
}

WRAP(Wait, MPI_Request *r, void *s) {
	CALLED();
	will_wait(1, r);
	PASS("MPI_Wait", pass_Wait(r, s));
}

WRAP(Waitall, int n, MPI_Request *r, void *s) {
	CALLED();
	will_wait(n, r);
	PASS("MPI_Waitall", pass_Waitall(n, r, s));
}

WRAP(Test, MPI_Request *r, int *flag, void *s) {
	will_test();
	return pass_Test(r, flag, s);
}

WRAP(Testall, int n, MPI_Request *r, int *flag, void *s) {
	will_test();
	return pass_Testall(n, r, flag, s);
}

WRAP(Testany, int n, MPI_Request *r, int *i, int *flag, void *s) {
	will_test();
	return pass_Testany(n, r, i, flag, s);
}

WRAP(Testsome, int n, MPI_Request *r, int *out, int *list, void *s) {
	will_test();
	return pass_Testsome(n, r, out, list, s);
}

WRAP(Request_get_status, handle r, int *flag, void *s) {
	will_test();
	return pass_Request_get_status(r, flag, s);
}

WRAP(Waitany, int n, MPI_Request *r, int *i, void *s) {
	CALLED();
	int went = go_elsewhere("MPI_Waitany"), done = 0, rc = MPI_SUCCESS;
	while (any_runs() && !done && rc == MPI_SUCCESS) {
		end_some();
		if ((rc = PMPI_Testany(n, r, i, &done, s)) == MPI_SUCCESS && !done) sched_yield();
	}
	if (!done && rc == MPI_SUCCESS) rc = pass_Waitany(n, r, i, s);
	come_back(went);
	return rc;
}

WRAP(Waitsome, int n, MPI_Request *r, int *out, int *list, void *s) {
	CALLED();
	int went = go_elsewhere("MPI_Waitsome"), done = 0, rc = MPI_SUCCESS;
	while (any_runs() && !done && rc == MPI_SUCCESS) {
		end_some();
		if ((rc = PMPI_Testsome(n, r, out, list, s)) == MPI_SUCCESS && !(done = *out != 0)) sched_yield();
	}
	if (!done && rc == MPI_SUCCESS) rc = pass_Waitsome(n, r, out, list, s);
	come_back(went);
	return rc;
}

/* ---- the table of calls: parameters, arguments, what they mean. N is a count, L a list of
 * counts and D one of displacements. */

#define P_Barrier(N, L, D) handle c
#define A_Barrier c
#define M_Barrier .comm = c

#define P_Bcast(N, L, D) void *b, N n, handle t, int root, handle c
#define A_Bcast b, n, t, root, c
#define M_Bcast .recv = b, .rn = n, .rt = t, .root = root, .comm = c

#define P_Allreduce(N, L, D) const void *s, void *r, N n, handle t, handle op, handle c
#define A_Allreduce s, r, n, t, op, c
#define M_Allreduce .send = s, .recv = r, .rn = n, .rt = t, .op = op, .comm = c
#define P_Scan P_Allreduce
#define A_Scan A_Allreduce
#define M_Scan M_Allreduce
#define P_Exscan P_Allreduce
#define A_Exscan A_Allreduce
#define M_Exscan M_Allreduce
#define P_Reduce_scatter_block P_Allreduce
#define A_Reduce_scatter_block A_Allreduce
#define M_Reduce_scatter_block M_Allreduce

#define P_Reduce(N, L, D) const void *s, void *r, N n, handle t, handle op, int root, handle c
#define A_Reduce s, r, n, t, op, root, c
#define M_Reduce .send = s, .recv = r, .rn = n, .rt = t, .op = op, .root = root, .comm = c

#define P_Reduce_scatter(N, L, D) const void *s, void *r, const L *ns, handle t, handle op, handle c
#define A_Reduce_scatter s, r, ns, t, op, c
#define M_Reduce_scatter .send = s, .recv = r, .rcounts = ns, .wide = sizeof *ns > 4, .rt = t, .op = op, .comm = c

#define P_Allgather(N, L, D) const void *s, N sn, handle st, void *r, N rn, handle rt, handle c
#define A_Allgather s, sn, st, r, rn, rt, c
#define M_Allgather .send = s, .sn = sn, .st = st, .recv = r, .rn = rn, .rt = rt, .comm = c
#define P_Alltoall P_Allgather
#define A_Alltoall A_Allgather
#define M_Alltoall M_Allgather

#define P_Gather(N, L, D) const void *s, N sn, handle st, void *r, N rn, handle rt, int root, handle c
#define A_Gather s, sn, st, r, rn, rt, root, c
#define M_Gather .send = s, .sn = sn, .st = st, .recv = r, .rn = rn, .rt = rt, .root = root, .comm = c
#define P_Scatter P_Gather
#define A_Scatter A_Gather
#define M_Scatter M_Gather

#define P_Allgatherv(N, L, D) const void *s, N sn, handle st, void *r, const L *rns, const D *rds, handle rt, handle c
#define A_Allgatherv s, sn, st, r, rns, rds, rt, c
#define M_Allgatherv .send = s, .sn = sn, .st = st, .recv = r, .rcounts = rns, .rdispls = rds, .wide = sizeof *rns > 4, .rt = rt, .comm = c

#define P_Gatherv(N, L, D) const void *s, N sn, handle st, void *r, const L *rns, const D *rds, handle rt, int root, handle c
#define A_Gatherv s, sn, st, r, rns, rds, rt, root, c
#define M_Gatherv .send = s, .sn = sn, .st = st, .recv = r, .rcounts = rns, .rdispls = rds, .wide = sizeof *rns > 4, .rt = rt, .root = root, .comm = c

#define P_Scatterv(N, L, D) const void *s, const L *sns, const D *sds, handle st, void *r, N rn, handle rt, int root, handle c
#define A_Scatterv s, sns, sds, st, r, rn, rt, root, c
#define M_Scatterv .send = s, .scounts = sns, .sdispls = sds, .wide = sizeof *sns > 4, .st = st, .recv = r, .rn = rn, .rt = rt, .root = root, .comm = c

#define P_Alltoallv(N, L, D) const void *s, const L *sns, const D *sds, handle st, void *r, const L *rns, const D *rds, handle rt, handle c
#define A_Alltoallv s, sns, sds, st, r, rns, rds, rt, c
#define M_Alltoallv .send = s, .scounts = sns, .sdispls = sds, .st = st, .recv = r, .rcounts = rns, .rdispls = rds, .wide = sizeof *sns > 4, .rt = rt, .comm = c

#define WITH_DATA(X) \
	X(Bcast, Ibcast) X(Reduce, Ireduce) X(Allreduce, Iallreduce) X(Reduce_scatter_block, Ireduce_scatter_block) \
	X(Reduce_scatter, Ireduce_scatter) X(Scan, Iscan) X(Exscan, Iexscan) X(Gather, Igather) X(Scatter, Iscatter) \
	X(Allgather, Iallgather) X(Alltoall, Ialltoall) X(Gatherv, Igatherv) X(Scatterv, Iscatterv) \
	X(Allgatherv, Iallgatherv) X(Alltoallv, Ialltoallv)
#define ALL(X) X(Barrier, Ibarrier) WITH_DATA(X)

#define DO(what, ...) \
	CALLED(); \
	call k = {.row = __VA_ARGS__}; \
	int rc; \
	if (what) return rc

#define BLOCKING(name, iname) \
	WRAP(name, P_##name(int, int, int)) { DO(blocking(&k, &rc), name, M_##name); PASS("MPI_" #name, pass_##name(A_##name)); } \
	WRAP(iname, P_##name(int, int, int), MPI_Request *q) { DO(nonblocking(&k, q, &rc), name, M_##name); return pass_##iname(A_##name, q); }
ALL(BLOCKING)

#if MPI_VERSION >= 4
#define PERSISTENT(name, iname) \
	WRAP(name##_init, P_##name(int, int, int), handle info, MPI_Request *q) { DO(persistent(&k, q, &rc), name, M_##name); return pass_##name##_init(A_##name, info, q); }
#define LARGE(name, iname) \
	WRAP(name##_c, P_##name(MPI_Count, MPI_Count, MPI_Aint)) { DO(blocking(&k, &rc), name, M_##name); PASS("MPI_" #name "_c", pass_##name##_c(A_##name)); } \
	WRAP(iname##_c, P_##name(MPI_Count, MPI_Count, MPI_Aint), MPI_Request *q) { DO(nonblocking(&k, q, &rc), name, M_##name); return pass_##iname##_c(A_##name, q); } \
	WRAP(name##_init_c, P_##name(MPI_Count, MPI_Count, MPI_Aint), handle info, MPI_Request *q) { DO(persistent(&k, q, &rc), name, M_##name); return pass_##name##_init_c(A_##name, info, q); }
WITH_DATA(LARGE)
ALL(PERSISTENT)
#elif defined(OMPI_MAJOR_VERSION)
#define PERSISTENT(name, iname) \
	WRAP_AS("MPIX_" #name "_init", "PMPIX_" #name "_init", name##_init, P_##name(int, int, int), handle info, MPI_Request *q) { DO(persistent(&k, q, &rc), name, M_##name); return pass_##name##_init(A_##name, info, q); }
ALL(PERSISTENT)
#endif

/* ---- calls that are MPI's always, and wait for other ranks: seen from outside */

/* AS_ALWAYS passes a call on, and counts it. */
#define AS_ALWAYS(named, ...) \
	static always seen = {.called = named}; \
	CALLED(); \
	int went = go_elsewhere(named); \
	int64_t began = elsewhere.since; \
	__VA_ARGS__; \
	come_back(went); \
	if (verbose && active) note_always(&seen, went ? coarse() - began : 0)

#define WAITING(name, params, args) \
	WRAP params { \
		AS_ALWAYS("MPI_" #name, int rc = pass_##name args); \
		return rc; \
	}
WAITING(Send, (Send, const void *b, int n, handle t, int to, int tag, handle c), (b, n, t, to, tag, c))
WAITING(Ssend, (Ssend, const void *b, int n, handle t, int to, int tag, handle c), (b, n, t, to, tag, c))
WAITING(Recv, (Recv, void *b, int n, handle t, int from, int tag, handle c, void *s), (b, n, t, from, tag, c, s))
WAITING(Sendrecv, (Sendrecv, const void *b, int n, handle t, int to, int tag, void *rb, int rn, handle rt, int from, int rtag, handle c, void *s),
	(b, n, t, to, tag, rb, rn, rt, from, rtag, c, s))
WAITING(Sendrecv_replace, (Sendrecv_replace, void *b, int n, handle t, int to, int tag, int from, int rtag, handle c, void *s), (b, n, t, to, tag, from, rtag, c, s))
WAITING(Probe, (Probe, int from, int tag, handle c, void *s), (from, tag, c, s))
WAITING(Mprobe, (Mprobe, int from, int tag, handle c, void *m, void *s), (from, tag, c, m, s))
WAITING(Comm_dup, (Comm_dup, handle c, void *made), (c, made))
WAITING(Comm_split, (Comm_split, handle c, int color, int key, void *made), (c, color, key, made))
WAITING(Comm_create, (Comm_create, handle c, handle group, void *made), (c, group, made))
WAITING(Win_fence, (Win_fence, int assert, handle win), (assert, win))
WAITING(Alltoallw, (Alltoallw, const void *s, const int *sn, const int *sd, const void *st, void *r, const int *rn, const int *rd, const void *rt, handle c),
	(s, sn, sd, st, r, rn, rd, rt, c))

/* ---- Fortran
 *
 * MPICH's calls what C programs call. Open MPI's calls PMPI_…, from functions that both its
 * older interfaces and mpi_f08 call: these are wrapped here, with a row of the table each. */
#if defined(OMPI_MAJOR_VERSION)

#define FWRAP(name, ...) FWRAP_AS("pmpi_" #name "_", name, __VA_ARGS__)
#define FWRAP_AS(passed, name, ...) \
	extern __attribute__((weak)) void fpass_##name(__VA_ARGS__) __asm__(passed); \
	void fwrap_##name(__VA_ARGS__) __asm__("ompi_" #name "_f"); \
	void fmore_##name(__VA_ARGS__) __asm__("mpi_" #name "_") __attribute__((alias("ompi_" #name "_f"), visibility("default"))); \
	__attribute__((visibility("default"))) void fwrap_##name(__VA_ARGS__)

typedef MPI_Fint *fint;

/* address is what a buffer of Fortran is in C. */
static void *address(void *b) {
	static void *place, *bottom;
	if (!place) {
		bottom = dlsym(RTLD_DEFAULT, "mpi_fortran_bottom_");
		place = dlsym(RTLD_DEFAULT, "mpi_fortran_in_place_");
		if (!place) place = &place; /* there is no Fortran */
	}
	return b == place ? MPI_IN_PLACE : b && b == bottom ? MPI_BOTTOM : b;
}

#define T(t) (handle)PMPI_Type_f2c(*(t))
#define C(c) (handle)PMPI_Comm_f2c(*(c))
#define O(o) (handle)PMPI_Op_f2c(*(o))

/* Parameters of Fortran, arguments, and the same for C: for a count list ints are as long. */
#define FP_Barrier fint c
#define FA_Barrier c
#define FM_Barrier .comm = C(c)
#define FP_Bcast void *b, fint n, fint t, fint root, fint c
#define FA_Bcast b, n, t, root, c
#define FM_Bcast .recv = address(b), .rn = *n, .rt = T(t), .root = *root, .comm = C(c)
#define FP_Allreduce void *s, void *r, fint n, fint t, fint op, fint c
#define FA_Allreduce s, r, n, t, op, c
#define FM_Allreduce .send = address(s), .recv = address(r), .rn = *n, .rt = T(t), .op = O(op), .comm = C(c)
#define FP_Scan FP_Allreduce
#define FA_Scan FA_Allreduce
#define FM_Scan FM_Allreduce
#define FP_Exscan FP_Allreduce
#define FA_Exscan FA_Allreduce
#define FM_Exscan FM_Allreduce
#define FP_Reduce_scatter_block FP_Allreduce
#define FA_Reduce_scatter_block FA_Allreduce
#define FM_Reduce_scatter_block FM_Allreduce
#define FP_Reduce void *s, void *r, fint n, fint t, fint op, fint root, fint c
#define FA_Reduce s, r, n, t, op, root, c
#define FM_Reduce .send = address(s), .recv = address(r), .rn = *n, .rt = T(t), .op = O(op), .root = *root, .comm = C(c)
#define FP_Reduce_scatter FP_Allreduce
#define FA_Reduce_scatter FA_Allreduce
#define FM_Reduce_scatter .send = address(s), .recv = address(r), .rcounts = n, .rt = T(t), .op = O(op), .comm = C(c)
#define FP_Allgather void *s, fint sn, fint st, void *r, fint rn, fint rt, fint c
#define FA_Allgather s, sn, st, r, rn, rt, c
#define FM_Allgather .send = address(s), .sn = *sn, .st = T(st), .recv = address(r), .rn = *rn, .rt = T(rt), .comm = C(c)
#define FP_Alltoall FP_Allgather
#define FA_Alltoall FA_Allgather
#define FM_Alltoall FM_Allgather
#define FP_Gather void *s, fint sn, fint st, void *r, fint rn, fint rt, fint root, fint c
#define FA_Gather s, sn, st, r, rn, rt, root, c
#define FM_Gather .send = address(s), .sn = *sn, .st = T(st), .recv = address(r), .rn = *rn, .rt = T(rt), .root = *root, .comm = C(c)
#define FP_Scatter FP_Gather
#define FA_Scatter FA_Gather
#define FM_Scatter FM_Gather
#define FP_Allgatherv void *s, fint sn, fint st, void *r, fint rns, fint rds, fint rt, fint c
#define FA_Allgatherv s, sn, st, r, rns, rds, rt, c
#define FM_Allgatherv .send = address(s), .sn = *sn, .st = T(st), .recv = address(r), .rcounts = rns, .rdispls = rds, .rt = T(rt), .comm = C(c)
#define FP_Gatherv void *s, fint sn, fint st, void *r, fint rns, fint rds, fint rt, fint root, fint c
#define FA_Gatherv s, sn, st, r, rns, rds, rt, root, c
#define FM_Gatherv .send = address(s), .sn = *sn, .st = T(st), .recv = address(r), .rcounts = rns, .rdispls = rds, .rt = T(rt), .root = *root, .comm = C(c)
#define FP_Scatterv void *s, fint sns, fint sds, fint st, void *r, fint rn, fint rt, fint root, fint c
#define FA_Scatterv s, sns, sds, st, r, rn, rt, root, c
#define FM_Scatterv .send = address(s), .scounts = sns, .sdispls = sds, .st = T(st), .recv = address(r), .rn = *rn, .rt = T(rt), .root = *root, .comm = C(c)
#define FP_Alltoallv void *s, fint sns, fint sds, fint st, void *r, fint rns, fint rds, fint rt, fint c
#define FA_Alltoallv s, sns, sds, st, r, rns, rds, rt, c
#define FM_Alltoallv .send = address(s), .scounts = sns, .sdispls = sds, .st = T(st), .recv = address(r), .rcounts = rns, .rdispls = rds, .rt = T(rt), .comm = C(c)

_Static_assert(sizeof(MPI_Fint) == sizeof(int), "lists of Fortran's integers are C's");

#define FDO(what, ...) \
	CALLED(); \
	call k = {.row = __VA_ARGS__}; \
	int rc; \
	if (what) { \
		*ierr = rc; \
		return; \
	}

#define FPASS(called, ...) \
	do { \
		int went = go_elsewhere(called); \
		__VA_ARGS__; \
		come_back(went); \
	} while (0)

#define FORTRAN(name, lower) \
	FWRAP(lower, FP_##name, fint ierr) { FDO(active && blocking(&k, &rc), name, FM_##name) FPASS("MPI_" #name, fpass_##lower(FA_##name, ierr)); } \
	FWRAP(i##lower, FP_##name, fint q, fint ierr) { \
		MPI_Request made; \
		FDO(active && nonblocking(&k, &made, &rc) && (*q = PMPI_Request_c2f(made), 1), name, FM_##name) \
		fpass_i##lower(FA_##name, q, ierr); \
	}
FORTRAN(Barrier, barrier)
FORTRAN(Bcast, bcast) FORTRAN(Reduce, reduce) FORTRAN(Allreduce, allreduce) FORTRAN(Scan, scan) FORTRAN(Exscan, exscan)
FORTRAN(Reduce_scatter_block, reduce_scatter_block) FORTRAN(Reduce_scatter, reduce_scatter)
FORTRAN(Gather, gather) FORTRAN(Scatter, scatter) FORTRAN(Allgather, allgather) FORTRAN(Alltoall, alltoall)
FORTRAN(Gatherv, gatherv) FORTRAN(Scatterv, scatterv) FORTRAN(Allgatherv, allgatherv) FORTRAN(Alltoallv, alltoallv)

#define FWAITING(named, lower, params, args) \
	FWRAP params { AS_ALWAYS("MPI_" #named, fpass_##lower args); }
FWAITING(Send, send, (send, void *b, fint n, fint t, fint to, fint tag, fint c, fint ierr), (b, n, t, to, tag, c, ierr))
FWAITING(Ssend, ssend, (ssend, void *b, fint n, fint t, fint to, fint tag, fint c, fint ierr), (b, n, t, to, tag, c, ierr))
FWAITING(Recv, recv, (recv, void *b, fint n, fint t, fint from, fint tag, fint c, fint s, fint ierr), (b, n, t, from, tag, c, s, ierr))
FWAITING(Sendrecv, sendrecv, (sendrecv, void *b, fint n, fint t, fint to, fint tag, void *rb, fint rn, fint rt, fint from, fint rtag, fint c, fint s, fint ierr),
	(b, n, t, to, tag, rb, rn, rt, from, rtag, c, s, ierr))
FWAITING(Probe, probe, (probe, fint from, fint tag, fint c, fint s, fint ierr), (from, tag, c, s, ierr))
FWAITING(Comm_dup, comm_dup, (comm_dup, fint c, fint made, fint ierr), (c, made, ierr))
FWAITING(Comm_split, comm_split, (comm_split, fint c, fint color, fint key, fint made, fint ierr), (c, color, key, made, ierr))
FWAITING(Comm_create, comm_create, (comm_create, fint c, fint group, fint made, fint ierr), (c, group, made, ierr))
FWAITING(Win_fence, win_fence, (win_fence, fint assert, fint win, fint ierr), (assert, win, ierr))

/* fwill_wait is will_wait of Fortran's requests. */
static void fwill_wait(int n, fint list) {
	for (int i = 0; i < n && any_runs(); i++) {
		MPI_Request r = PMPI_Request_f2c(list[i]);
		settle_requests(1, &r);
	}
}

FWRAP(wait, fint r, fint s, fint ierr) {
	CALLED();
	fwill_wait(1, r);
	FPASS("MPI_Wait", fpass_wait(r, s, ierr));
}

FWRAP(waitall, fint n, fint r, fint s, fint ierr) {
	CALLED();
	fwill_wait(*n, r);
	FPASS("MPI_Waitall", fpass_waitall(n, r, s, ierr));
}

/* mpi_f08 calls these by the names of the profiling interface. */
#define FWRAP_TEST(upper, name, ...) \
	void fpmpi_##name(__VA_ARGS__) __asm__("pmpi_" #name "_") __attribute__((alias("ompi_" #name "_f"), visibility("default"))); \
	FWRAP_AS("PMPI_" #upper, name, __VA_ARGS__)

FWRAP_TEST(TEST, test, fint r, fint flag, fint s, fint ierr) {
	will_test();
	fpass_test(r, flag, s, ierr);
}

FWRAP_TEST(TESTALL, testall, fint n, fint r, fint flag, fint s, fint ierr) {
	will_test();
	fpass_testall(n, r, flag, s, ierr);
}

FWRAP_TEST(TESTANY, testany, fint n, fint r, fint i, fint flag, fint s, fint ierr) {
	will_test();
	fpass_testany(n, r, i, flag, s, ierr);
}

FWRAP_TEST(TESTSOME, testsome, fint n, fint r, fint out, fint list, fint s, fint ierr) {
	will_test();
	fpass_testsome(n, r, out, list, s, ierr);
}

FWRAP_TEST(REQUEST_GET_STATUS, request_get_status, fint r, fint flag, fint s, fint ierr) {
	will_test();
	fpass_request_get_status(r, flag, s, ierr);
}

FWRAP(waitany, fint n, fint r, fint i, fint s, fint ierr) {
	CALLED();
	int went = go_elsewhere("MPI_Waitany");
	MPI_Fint done = 0;
	*ierr = MPI_SUCCESS;
	while (any_runs() && !done && *ierr == MPI_SUCCESS) {
		end_some();
		fpass_testany(n, r, i, &done, s, ierr);
		if (!done) sched_yield();
	}
	if (!done && *ierr == MPI_SUCCESS) fpass_waitany(n, r, i, s, ierr);
	come_back(went);
}

FWRAP(waitsome, fint n, fint r, fint out, fint list, fint s, fint ierr) {
	CALLED();
	int went = go_elsewhere("MPI_Waitsome");
	*out = 0;
	*ierr = MPI_SUCCESS;
	while (any_runs() && *out == 0 && *ierr == MPI_SUCCESS) {
		end_some();
		fpass_testsome(n, r, out, list, s, ierr);
		if (*out == 0) sched_yield();
	}
	if (*out == 0 && *ierr == MPI_SUCCESS) fpass_waitsome(n, r, out, list, s, ierr);
	come_back(went);
}

/* MPI_Init of Fortran calls PMPI_Init. */
static void after_init(fint ierr) {
	if (*ierr == MPI_SUCCESS) has_begun();
}

FWRAP(init, fint ierr) {
	CALLED();
	wrong_mpi = wrong_library();
	fpass_init(ierr);
	after_init(ierr);
}

FWRAP(init_thread, fint required, fint provided, fint ierr) {
	CALLED();
	wrong_mpi = wrong_library();
	fpass_init_thread(required, provided, ierr);
	after_init(ierr);
}

FWRAP(finalize, fint ierr) {
	CALLED();
	end();
	fpass_finalize(ierr);
}

FWRAP(request_free, fint r, fint ierr) {
	MPI_Request c = PMPI_Request_f2c(*r);
	will_free(&c);
	fpass_request_free(r, ierr);
}
#endif
