/* libtierflow: hierarchical collectives for C and whatever calls C. It knows no MPI.
 *
 *   tf_config config = {.abi = TF_ABI};       // the job that the process was started in
 *   tf_comm *world;
 *   if (tf_open(&config, &world)) puts(tf_error());
 *   tf_request sum = {.coll = TF_ALLREDUCE, .type = TF_F64, .op = TF_SUM, .count = n};
 *   if (tf_call(world, &sum, mine, all)) puts(tf_error());
 *   tf_close(world);
 *
 * Functions that return int return 0, or 1 after a failure that tf_error explains. Any
 * thread may call them. Collectives of one communicator are called one after the other, in
 * the same order on all ranks; those of different communicators are independent.
 *
 * ns is a call's time limit in nanoseconds; 0 is none but the job's, option call_timeout. A call
 * that its limit ends breaks the communicator on all ranks, and tf_error says which ranks it
 * waited for.
 *
 * The library brings the Go runtime along: load it once, and never unload it. A process forked
 * off has no place in the job: there all calls fail. */
#ifndef TIERFLOW_H
#define TIERFLOW_H

#include <stddef.h>
#include <stdint.h>

#define TF_ABI 2 /* grows with every change that breaks programs; new functions and options break none */
#define TF_ANY (-1)

typedef struct tf_comm tf_comm; /* a communicator; 0 is none */
typedef struct tf_run tf_run;   /* a collective, send or receive that was started; 0 is none */

enum tf_collective {
	TF_BCAST = 1, TF_REDUCE, TF_ALLREDUCE, TF_ALLGATHER, TF_GATHER, TF_SCATTER,
	TF_REDUCE_SCATTER, TF_ALLTOALL, TF_BARRIER, TF_SCAN, TF_EXSCAN
};

enum tf_type {
	TF_I8 = 1, TF_I16, TF_I32, TF_I64, TF_U8, TF_U16, TF_U32, TF_U64,
	TF_F16, TF_BF16, TF_F32, TF_F64, TF_C64, TF_C128
};

enum tf_op {
	TF_SUM = 1, TF_PROD, TF_MIN, TF_MAX,
	TF_BAND = 7, TF_BOR, TF_BXOR, TF_LAND, TF_LOR, TF_LXOR, TF_AVERAGE
};

typedef struct {
	int32_t abi;        /* TF_ABI */
	int32_t rank, size; /* with share: this process's, of all */
	/* share gives all ranks rank 0's bytes, and returns 0. Every rank calls it once, in
	 * tf_open, if there are several. NULL: the environment says who the rank is, as
	 * tierflow run, mpirun, mpiexec and srun set it. */
	int (*share)(void *bytes, int n, void *arg);
	/* progress is called again and again by a thread that waits in tf_call, and lets
	 * another library go on. The thread then never sleeps. NULL: none. */
	void (*progress)(void *arg);
	void *arg;           /* for both */
	/* {"plan": …, "table": …, "machine": …, "links": …, "recorder": …, "deterministic": true,
	 * "uniform": true, "managed": true, "call_timeout": "30s"}; NULL: none. With uniform, rank 0's,
	 * a collective ends alike on all ranks that go on after a death: tf_agree isn't needed. managed,
	 * rank 0's, or TIERFLOW_MANAGED=1, lets the library act outside of the job: tierflow ps shows the
	 * ranks. call_timeout is the limit of each call of this rank; else TIERFLOW_CALL_TIMEOUT says it. */
	const char *options;
} tf_config;

/* tf_request is what all ranks ask for. What a collective has no use for is not looked at. */
typedef struct {
	uint8_t coll, type, op;
	uint8_t in_place; /* 1: this rank's data is in recv, that of a scatter's root in send; the other is not looked at */
	int32_t root;
	int64_t count; /* elements in a buffer, or in one rank's block of it */
	/* Elements of each rank's block, where they differ: of an allgather, gather, scatter or
	 * reduce-scatter, the same on all ranks. NULL: blocks are equal. With it count is not
	 * looked at. */
	const int64_t *counts;
} tf_request;

typedef struct {
	void *at;
	int64_t bytes; /* 0: at is not looked at */
} tf_block;

typedef struct {
	int64_t count; /* elements that have come */
	int source;    /* their sender */
} tf_status;

/* tf_elsewhere is what a program does in another library, such as MPI, of whose calls some are this one's. Who stands
 * between the two keeps it up to date, by one thread at a time; it is read at any moment. */
typedef struct {
	const char *call; /* the call that the program is in, such as MPI_Recv; NULL: none */
	int64_t since;    /* when that began: ns of CLOCK_MONOTONIC_COARSE */
	int64_t waited;   /* ns in such calls; while in one, less when it began, so negative */
	const void *from; /* return address of the last call of either library */
} tf_elsewhere;

#ifndef TF_TYPES_ONLY
#ifdef __cplusplus
extern "C" {
#endif

int tf_open(const tf_config *config, tf_comm **world); /* enters the job; returns when all ranks have come */
int tf_close(tf_comm *comm);                           /* leaves it; of the world: the job, with all communicators */

/* tf_watch lets tierflow ps, top and diagnose see what a rank does elsewhere. It must stay there until the process ends. */
int tf_watch(tf_comm *world, const tf_elsewhere *at);

int tf_rank(tf_comm *comm);                            /* -1: no such communicator */
int tf_size(tf_comm *comm);
int tf_nodes(tf_comm *comm); /* that the ranks are on */

/* tf_draw draws a number for a further communicator. One of its ranks draws it and tells the
 * others; each then makes it by tf_sub of the same ranks of the world, without a message. */
int tf_draw(tf_comm *world, uint64_t *id);
int tf_sub(tf_comm *world, uint64_t id, const int *ranks, int n, tf_comm **sub);

/* tf_call runs a collective. A buffer that this rank has no use for may be NULL. */
int tf_call(tf_comm *comm, const tf_request *request, const void *send, void *recv);
int tf_call_within(tf_comm *comm, const tf_request *request, const void *send, void *recv, int64_t ns);

/* tf_ready compiles what tf_call of the request would compile, without a message. */
int tf_ready(tf_comm *comm, const tf_request *request);

/* tf_start begins a collective, which goes on by itself. It ends with the tf_test or tf_wait_for
 * that says done, with tf_wait, or with one of them that fails; the run is gone then. Buffers must not be touched before. */
int tf_start(tf_comm *comm, const tf_request *request, const void *send, void *recv, tf_run **run);
int tf_test(tf_run *run, int *done);
int tf_wait(tf_run *run);                /* waits until it has ended, in place of tf_test */
int tf_done(int n, tf_run *const *runs); /* the first of them that has ended, or is none; -1: all go on */

/* tf_wait_for waits at most so long. A run that isn't done then goes on, and nothing breaks:
 * tf_abort ends it. */
int tf_wait_for(tf_run *run, int64_t ns, int *done);

/* tf_send sends count elements to a rank, and returns when the buffer may be used again. tf_recv
 * receives at most count of them from a rank, or the next message with the tag from any rank:
 * TF_ANY. A longer message, or one of another type, is an error. status, if not NULL, gets what
 * has come. A tag, from 0 on, tells messages between the same ranks apart; equal ones arrive in
 * order. When its limit ends a receive from TF_ANY before there is a message, the communicator
 * stays whole. */
int tf_send(tf_comm *comm, int to, int tag, int type, const void *buffer, int64_t count, int64_t ns);
int tf_recv(tf_comm *comm, int from, int tag, int type, void *buffer, int64_t count, int64_t ns, tf_status *status);

/* These begin it, as tf_start does. status is written at the end of the run. */
int tf_start_send(tf_comm *comm, int to, int tag, int type, const void *buffer, int64_t count, tf_run **run);
int tf_start_recv(tf_comm *comm, int from, int tag, int type, void *buffer, int64_t count, tf_status *status, tf_run **run);

/* tf_exchange is a gather, scatter or alltoall of blocks whose sizes only the two ranks know
 * that a block is between: give[i] is this rank's for rank i, get[i] is where that of rank i
 * goes, and NULL stands for a list without a use. root is 0 for an alltoall. With run it is
 * started, else it has ended when the call returns. */
int tf_exchange(tf_comm *comm, int coll, int root, const tf_block *give, const tf_block *get, tf_run **run);

/* tf_abort breaks the communicator on all ranks: calls in other threads, and later ones, fail
 * with the reason; NULL: none. It waits for nobody. Other communicators stay whole. */
int tf_abort(tf_comm *comm, const char *reason);

/* tf_agree says in all whether every living rank says ok, the same on all of them. The
 * communicator may be broken: so ranks learn whether a call has ended well everywhere. A rank's
 * word stands if the call fails. The limit breaks nothing. */
int tf_agree(tf_comm *comm, int ok, int64_t ns, int *all);

/* tf_shrink makes a communicator of the living ranks, in the old order, after a failure that
 * tf_recoverable calls one. All ranks get the same; called again it gives the same. The old one is
 * broken then. old, if not NULL, has room for tf_size(comm) numbers: the old rank of each new one.
 * After a shrink of the world the job ends with the tf_close of the last one; the others are
 * closed too. The limit breaks no more, and tf_shrink may be called again. A launcher
 * must let the job go on: tierflow run --min. */
int tf_shrink(tf_comm *comm, int64_t ns, tf_comm **next, int *old);

/* tf_explain writes, into size bytes, the plan of a request, who chose it and why. */
int tf_explain(tf_comm *comm, const tf_request *request, char *text, size_t size);

const char *tf_error(void); /* of this thread's last failure; good until the next */
int tf_recoverable(void);   /* 1: it comes from another rank, and the living can go on by tf_shrink */
int tf_abi(void);           /* the library's TF_ABI */

#ifdef __cplusplus
}
#endif
#endif
#endif
