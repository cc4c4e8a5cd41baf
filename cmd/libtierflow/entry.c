//go:build cgo

/* The functions of tierflow.h: each calls the one in Go. A process that was forked off has none of the threads that
 * Go's runtime counts on, and a call could wait for them without an end. So it fails here. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "abi/tierflow.h"
#include "entry.h"

static int tf_forked; /* this process comes from a fork of one with the library */

static void note_fork(void) { tf_forked = 1; }
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, note_fork); }

/* A pointer alone: a library loaded late has little room for variables of each thread. */
static _Thread_local tf_failure *failure;
tf_failure *tf_failure_of_thread(void) { return failure ? failure : (failure = calloc(1, sizeof *failure)); }

const char *tf_error(void) {
	tf_failure *f = tf_failure_of_thread();
	return f ? f->text : "there is no memory for an error's text";
}

int tf_recoverable(void) { return failure && failure->recoverable; }
int tf_abi(void) { return TF_ABI; }

static void *last_caller; /* where the program has called a function last */
void *tf_last_caller(void) { return __atomic_load_n(&last_caller, __ATOMIC_RELAXED); }

static int fail_forked(int status, const char *name) {
	tf_failure *f = tf_failure_of_thread();
	if (f) {
		f->recoverable = 0;
		snprintf(f->text, sizeof f->text, "%s: this process was forked off after libtierflow was loaded, and has no place in a job; "
			"allowed are calls in the process before the fork: load the library after it, or exec", name);
	}
	return status;
}

/* CALL defines a function by Go's, and its result in a process that was forked off. */
#define CALL(name, go, status, params, ...) \
	extern int go params; \
	int name params { \
		__atomic_store_n(&last_caller, __builtin_return_address(0), __ATOMIC_RELAXED); \
		return tf_forked ? fail_forked(status, #name) : go(__VA_ARGS__); \
	}

CALL(tf_open, tfOpen, 1, (const tf_config *config, tf_comm **world), config, world)
CALL(tf_close, tfClose, 1, (tf_comm *comm), comm)
CALL(tf_watch, tfWatch, 1, (tf_comm *comm, const tf_elsewhere *at), comm, at)
CALL(tf_rank, tfRank, -1, (tf_comm *comm), comm)
CALL(tf_size, tfSize, -1, (tf_comm *comm), comm)
CALL(tf_nodes, tfNodes, -1, (tf_comm *comm), comm)
CALL(tf_draw, tfDraw, 1, (tf_comm *world, uint64_t *id), world, id)
CALL(tf_sub, tfSub, 1, (tf_comm *world, uint64_t id, const int *ranks, int n, tf_comm **sub), world, id, ranks, n, sub)
CALL(tf_call, tfCall, 1, (tf_comm *comm, const tf_request *request, const void *send, void *recv), comm, request, send, recv)
CALL(tf_call_within, tfCallWithin, 1, (tf_comm *comm, const tf_request *request, const void *send, void *recv, int64_t ns), comm, request, send, recv, ns)
CALL(tf_ready, tfReady, 1, (tf_comm *comm, const tf_request *request), comm, request)
CALL(tf_start, tfStart, 1, (tf_comm *comm, const tf_request *request, const void *send, void *recv, tf_run **run), comm, request, send, recv, run)
CALL(tf_test, tfTest, 1, (tf_run *run, int *done), run, done)
CALL(tf_wait, tfWait, 1, (tf_run *run), run)
CALL(tf_wait_for, tfWaitFor, 1, (tf_run *run, int64_t ns, int *done), run, ns, done)
CALL(tf_done, tfDone, 0, (int n, tf_run *const *runs), n, runs)
CALL(tf_exchange, tfExchange, 1, (tf_comm *comm, int coll, int root, const tf_block *give, const tf_block *get, tf_run **run), comm, coll, root, give, get, run)
CALL(tf_send, tfSend, 1, (tf_comm *comm, int to, int tag, int type, const void *buffer, int64_t count, int64_t ns), comm, to, tag, type, buffer, count, ns)
CALL(tf_recv, tfRecv, 1, (tf_comm *comm, int from, int tag, int type, void *buffer, int64_t count, int64_t ns, tf_status *status), comm, from, tag, type, buffer, count, ns, status)
CALL(tf_start_send, tfStartSend, 1, (tf_comm *comm, int to, int tag, int type, const void *buffer, int64_t count, tf_run **run), comm, to, tag, type, buffer, count, run)
CALL(tf_start_recv, tfStartRecv, 1, (tf_comm *comm, int from, int tag, int type, void *buffer, int64_t count, tf_status *status, tf_run **run), comm, from, tag, type, buffer, count, status, run)
CALL(tf_abort, tfAbort, 1, (tf_comm *comm, const char *reason), comm, reason)
CALL(tf_agree, tfAgree, 1, (tf_comm *comm, int ok, int64_t ns, int *all), comm, ok, ns, all)
CALL(tf_shrink, tfShrink, 1, (tf_comm *comm, int64_t ns, tf_comm **next, int *old), comm, ns, next, old)
CALL(tf_explain, tfExplain, 1, (tf_comm *comm, const tf_request *request, char *text, size_t size), comm, request, text, size)
