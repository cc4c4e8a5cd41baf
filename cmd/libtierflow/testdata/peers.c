/* What ranks of libtierflow.so do beyond collectives, from sends to a death: what is wrong is printed, and the status is 1. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tierflow.h"

#define MUST(what) do { if (!(what)) { printf("rank %d: line %d: %s: %s\n", rank, __LINE__, #what, tf_error()); return 1; } } while (0)
#define FAILS(call, text) MUST((call) == 1 && strstr(tf_error(), text) && !tf_recoverable())

static const int64_t tick = 1000 * 1000; /* a limit for what would never end, in ns */
static int rank = -1, size;
static tf_comm *world;
static const tf_request barrier = {.coll = TF_BARRIER};

/* again makes one more communicator of all ranks. */
static int again(tf_comm **comm) {
	uint64_t id = 0;
	int all[16];
	tf_request number = {.coll = TF_BCAST, .type = TF_U64, .count = 1};
	for (int i = 0; i < size; i++) all[i] = i;
	if (rank == 0) MUST(!tf_draw(world, &id));
	MUST(!tf_call(world, &number, NULL, &id) && !tf_sub(world, id, all, size, comm));
	return 0;
}

/* Each rank sends to the next; rank 0 also receives from whoever has sent. */
static int messages(void) {
	int next = (rank + 1) % size, before = (rank + size - 1) % size, done = 0;
	double out[3] = {rank, 2, 3}, in[4];
	tf_status got = {0};
	tf_run *run, *sent;
	MUST(!tf_start_recv(world, before, 5, TF_F64, in, 4, &got, &run) && !tf_send(world, next, 5, TF_F64, out, 3, 0));
	MUST(!tf_wait(run) && got.count == 3 && got.source == before && in[0] == before && in[2] == 3);

	MUST(!tf_start_send(world, next, 6, TF_F64, out, 2, &sent) && !tf_recv(world, before, 6, TF_F64, in, 2, 60000 * tick, &got));
	while (!done) MUST(!tf_test(sent, &done));
	MUST(got.count == 2 && in[1] == 2 && tf_wait(sent) && strstr(tf_error(), "no started call"));

	int32_t mine = rank, seen = 0;
	if (rank > 0) MUST(!tf_send(world, 0, 7, TF_I32, &mine, 1, 0));
	for (int i = 1; rank == 0 && i < size; i++) {
		if (i % 2) MUST(!tf_recv(world, TF_ANY, 7, TF_I32, &mine, 1, 0, &got));
		else MUST(!tf_start_recv(world, TF_ANY, 7, TF_I32, &mine, 1, &got, &run) && !tf_wait(run));
		MUST(got.source == mine && got.count == 1);
		seen |= 1 << mine;
	}
	MUST(rank > 0 || seen == (1 << size) - 2);
	MUST(!tf_send(world, next, 8, TF_I32, NULL, 0, 0) && !tf_recv(world, before, 8, TF_I32, NULL, 0, 0, NULL));

	int32_t two[2] = {0};
	MUST(!tf_send(world, next, 9, TF_U32, two, 2, 0) && !tf_send(world, next, 9, TF_I32, two, 2, 0));
	FAILS(tf_recv(world, before, 9, TF_I32, two, 2, 0, NULL), "u32, and rank");
	FAILS(tf_recv(world, before, 9, TF_I32, two, 1, 0, NULL), "longer");
	return 0;
}

static int wrong(void) {
	int32_t x = 0, done;
	char text[1];
	tf_run *run;
	tf_comm *comm, *none = (tf_comm *)12345;
	tf_status got;
	tf_request sum = {.coll = TF_ALLREDUCE, .type = TF_I32, .op = TF_SUM, .count = -1};
	tf_block negative[16] = {{.at = &x, .bytes = -4}}, nowhere[16] = {{.bytes = 4}};
	FAILS(tf_send(none, 0, 0, TF_I32, &x, 1, 0), "12345 is no communicator");
	FAILS(tf_recv(NULL, 0, 0, TF_I32, &x, 1, 0, &got), "0 is no communicator");
	FAILS(tf_send(world, size, 0, TF_I32, &x, 1, 0), "ranks are 0 to 3");
	FAILS(tf_send(world, TF_ANY, 0, TF_I32, &x, 1, 0), "ranks are 0 to 3");
	FAILS(tf_recv(world, -2, 0, TF_I32, &x, 1, 0, &got), "ranks are 0 to 3");
	FAILS(tf_start_recv(world, -2, 0, TF_I32, &x, 1, &got, &run), "ranks are 0 to 3");
	FAILS(tf_send(world, 0, -1, TF_I32, &x, 1, 0), "tag -1 is not between 0 and");
	FAILS(tf_recv(world, TF_ANY, -1, TF_I32, &x, 1, 0, &got), "tag -1 is not between 0 and");
	FAILS(tf_send(world, 0, 0, 0, &x, 1, 0), "type 0; allowed are those of enum tf_type, 1 to 14");
	FAILS(tf_recv(world, 0, 0, 99, &x, 1, 0, &got), "type 99");
	FAILS(tf_send(world, 0, 0, TF_I32, &x, -1, 0), "count -1; allowed are 0 and more");
	FAILS(tf_start_send(world, 0, 0, TF_F64, &x, INT64_MAX / 4, &run), "less than 2^63 bytes");
	FAILS(tf_recv(world, 0, 0, TF_I32, NULL, 1, 0, &got), "buffer is NULL");
	FAILS(tf_start_send(world, 0, 0, TF_I32, &x, 1, NULL), "run is NULL");
	FAILS(tf_start_recv(world, 0, 0, TF_I32, &x, 1, &got, NULL), "run is NULL");
	FAILS(tf_send(world, 0, 0, TF_I32, &x, 1, -1), "limit of -1 ns");
	FAILS(tf_call_within(world, &barrier, NULL, NULL, -1), "limit of -1 ns");
	FAILS(tf_call(world, &sum, &x, &x), "count -1");
	FAILS(tf_call(world, NULL, &x, &x), "request is NULL");
	FAILS(tf_ready(world, NULL), "request is NULL");
	FAILS(tf_start(world, &barrier, NULL, NULL, NULL), "run is NULL");
	FAILS(tf_explain(world, &barrier, NULL, 1), "text is NULL");
	FAILS(tf_explain(world, NULL, text, 1), "request is NULL");
	FAILS(tf_exchange(world, TF_ALLTOALL, 0, negative, NULL, NULL), "give[0] has -4 bytes");
	FAILS(tf_exchange(world, TF_ALLTOALL, 0, NULL, nowhere, &run), "get[0] has 4 bytes");
	FAILS(tf_wait_for((tf_run *)12345, 1, &done), "12345 is no started call");
	FAILS(tf_wait_for((tf_run *)12345, 1, NULL), "done is NULL");
	FAILS(tf_test((tf_run *)12345, NULL), "done is NULL");
	MUST(tf_done(0, NULL) == -1 && tf_done(-1, NULL) == -1 && tf_done(1, NULL) == 0);
	FAILS(tf_draw(world, NULL), "id is NULL");
	FAILS(tf_sub(world, 1, NULL, 1, &comm), "allowed are 1 to 4");
	FAILS(tf_sub(world, 1, &x, 5, &comm), "5 ranks");
	FAILS(tf_sub(world, 1, &x, 1, NULL), "sub is NULL");
	FAILS(tf_abort(none, "why"), "12345 is no communicator");
	FAILS(tf_agree(world, 1, 0, NULL), "all is NULL");
	FAILS(tf_agree(world, 1, -1, &done), "limit of -1 ns");
	FAILS(tf_shrink(world, 0, NULL, NULL), "next is NULL");
	FAILS(tf_shrink(none, 0, &comm, NULL), "12345 is no communicator");

	tf_config config = {.abi = TF_ABI}, soon = {.abi = TF_ABI, .options = "{\"call_timeout\": \"soon\"}"};
	FAILS(tf_open(NULL, &comm), "config is NULL");
	FAILS(tf_open(&config, NULL), "world is NULL");
	FAILS(tf_open(&soon, &comm), "allowed are durations such as 30s");

	MUST(!again(&comm) && !tf_close(comm));
	FAILS(tf_send(comm, 0, 0, TF_I32, &x, 1, 0), "no communicator");
	FAILS(tf_abort(comm, NULL), "no communicator");
	MUST(!tf_call(world, &barrier, NULL, NULL)); /* nothing is broken */
	return 0;
}

/* Rank 0's waits end at their limits: the first breaks nothing, that of a call breaks its communicator. */
static int limits(void) {
	int32_t x = rank, done = 1;
	tf_status got = {0};
	tf_comm *other;
	tf_run *run;
	MUST(!again(&other));
	if (rank == 0) {
		MUST(!tf_start_recv(world, 1, 1, TF_I32, &x, 1, &got, &run));
		for (int i = 0; i < 3; i++) MUST(!tf_wait_for(run, tick, &done) && !done);
		MUST(!tf_test(run, &done) && !done && tf_done(1, &run) == -1);
		MUST(tf_recv(world, TF_ANY, 77, TF_I32, &x, 1, tick, NULL) == 1 && strstr(tf_error(), "limit of 1ms"));
		MUST(!tf_send(world, 1, 2, TF_I32, &x, 1, 0));
		MUST(!tf_wait_for(run, 0, &done) && done && x == 1 && got.source == 1 && got.count == 1);
		MUST(tf_wait_for(run, 0, &done) && !done);
		MUST(!tf_start(world, &barrier, NULL, NULL, &run) && !tf_wait_for(run, tick, &done) && !done);
		MUST(tf_call_within(other, &barrier, NULL, NULL, tick) == 1 && strstr(tf_error(), "rank 1") && strstr(tf_error(), "limit of 1ms"));
		MUST(tf_recv(other, 1, 1, TF_I32, &x, 1, 0, NULL) == 1);
		for (int i = 1; i < size; i++) MUST(!tf_send(world, i, 3, TF_I32, &x, 1, 0));
		MUST(!tf_wait(run)); /* the barrier that tf_wait_for has left alone */
	} else {
		if (rank == 1) MUST(!tf_recv(world, 0, 2, TF_I32, &x, 1, 0, NULL) && !tf_send(world, 0, 1, TF_I32, &rank, 1, 0));
		MUST(!tf_recv(world, 0, 3, TF_I32, &x, 1, 0, NULL));
		MUST(tf_call(other, &barrier, NULL, NULL) == 1 && tf_recoverable());
		MUST(!tf_call(world, &barrier, NULL, NULL));
	}
	tf_close(other);
	return 0;
}

/* A wait at its limit lets an exchange go on. Its end is known when its memory serves the next one. */
static int exchanges(void) {
	int32_t mine[16] = {0}, theirs[16];
	int done;
	tf_block give[16], get[16];
	tf_run *first, *second;
	for (int i = 0; i < size; i++) {
		give[i] = (tf_block){&mine[i], 4};
		get[i] = (tf_block){&theirs[i], 4};
	}
	for (int i = 0; rank > 0 && i < 2; i++) {
		MUST(!tf_recv(world, 0, 4, TF_I32, NULL, 0, 0, NULL) && !tf_exchange(world, TF_ALLTOALL, 0, give, get, NULL));
	}
	if (rank > 0) return 0;
	MUST(!tf_exchange(world, TF_ALLTOALL, 0, give, get, &first) && !tf_wait_for(first, tick, &done) && !done);
	for (int i = 1; i < size; i++) MUST(!tf_send(world, i, 4, TF_I32, NULL, 0, 0));
	while (tf_done(1, &first) < 0) sched_yield();
	MUST(!tf_exchange(world, TF_ALLTOALL, 0, give, get, &second) && !tf_test(first, &done) && done);
	for (int i = 1; i < size; i++) MUST(!tf_send(world, i, 4, TF_I32, NULL, 0, 0));
	MUST(!tf_wait(second));
	return 0;
}

static void *give_up(void *comm) { return (void *)(intptr_t)tf_abort(comm, "the disk is full"); }

/* Rank 0 waits in a barrier to which nobody comes, the others for messages that nobody sends, and another thread of rank 0 ends all that. */
static int aborts(void) {
	int32_t x;
	void *failed = NULL;
	tf_comm *other, *next;
	tf_run *run;
	pthread_t thread;
	MUST(!again(&other));
	if (rank == 0) {
		MUST(!pthread_create(&thread, NULL, give_up, other));
		FAILS(tf_call(other, &barrier, NULL, NULL), "the disk is full");
		MUST(!pthread_join(thread, &failed) && !failed);
	} else if (rank == 1) {
		if (!tf_start_recv(other, 0, 1, TF_I32, &x, 1, NULL, &run)) MUST(tf_wait(run));
		MUST(strstr(tf_error(), "the disk is full") && tf_recoverable());
	} else {
		MUST(tf_recv(other, 0, 1, TF_I32, &x, 1, 0, NULL) && strstr(tf_error(), "the disk is full") && tf_recoverable());
	}
	MUST(!tf_shrink(other, 0, &next, NULL) && tf_size(next) == size && !tf_call(next, &barrier, NULL, NULL)); /* nobody is lost */
	MUST(!tf_close(other) && !tf_close(next) && !tf_call(world, &barrier, NULL, NULL));
	return 0;
}

/* A child of fork has no part in the job, and its parent keeps its own. */
static int forks(void) {
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		tf_config config = {.abi = TF_ABI};
		tf_comm *comm;
		tf_run *run;
		int ok = tf_call(world, &barrier, NULL, NULL) == 1 && strstr(tf_error(), "tf_call: this process was forked off");
		ok = ok && tf_open(&config, &comm) == 1 && tf_start(world, &barrier, NULL, NULL, &run) == 1 && tf_close(world) == 1;
		_exit(ok && tf_rank(world) == -1 && tf_done(1, &run) == 0 && tf_abi() == TF_ABI && !tf_recoverable() ? 0 : 1);
	}
	MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	MUST(!tf_call(world, &barrier, NULL, NULL));
	return 0;
}

/* The last rank but one dies. The others go on, and the job ends with their new communicator. */
static int death(void) {
	int all = 1, old[16], dead = size - 2;
	int32_t one = 1, sum = 0;
	tf_comm *next, *same;
	tf_request add = {.coll = TF_ALLREDUCE, .type = TF_I32, .op = TF_SUM, .count = 1};
	MUST(!tf_agree(world, 1, 0, &all) && all == 1);
	MUST(!tf_agree(world, rank != 0, 0, &all) && all == 0);
	if (rank == dead) _exit(0);
	MUST(tf_call(world, &add, &one, &sum) && tf_recoverable());
	MUST(!tf_agree(world, 0, 0, &all) && all == 0);
	MUST(!tf_shrink(world, 0, &next, old) && !tf_shrink(world, 60000 * tick, &same, NULL) && next == same);
	MUST(tf_size(next) == size - 1 && tf_size(world) == size && old[0] == 0 && old[size - 2] == size - 1 && old[tf_rank(next)] == rank);
	MUST(!tf_call(next, &add, &one, &sum) && sum == size - 1);
	FAILS(tf_call(world, &add, &one, &sum), "closed");
	MUST(!tf_close(world) && !tf_call(next, &add, &one, &sum) && !tf_close(next));
	return 0;
}

static int unused(void *bytes, int n, void *arg) { return 1; }

static pthread_t waiting;
static void count(void *calls) { *(int *)calls += pthread_equal(waiting, pthread_self()); }

/* A job of one rank waits for a message of its own as long as its options let it. A wait with a limit calls progress on its thread. */
static int alone(void) {
	int32_t x, calls = 0, done;
	tf_run *run;
	tf_config config = {.abi = TF_ABI, .size = 1, .share = unused, .options = "{\"call_timeout\": \"1ms\"}"};
	tf_config lending = {.abi = TF_ABI, .size = 1, .share = unused, .progress = count, .arg = &calls};
	MUST(!tf_open(&config, &world) && tf_size(world) == 1);
	MUST(tf_recv(world, 0, 1, TF_I32, &x, 1, 0, NULL) == 1 && strstr(tf_error(), "limit of 1ms") && tf_recoverable()); /* others would hear of it and go on */
	tf_close(world);

	waiting = pthread_self();
	MUST(!tf_open(&lending, &world) && !tf_start_recv(world, 0, 1, TF_I32, &x, 1, NULL, &run));
	calls = 0;
	MUST(!tf_wait_for(run, tick, &done) && !done && calls > 0);
	MUST(!tf_send(world, 0, 1, TF_I32, &calls, 1, 0) && !tf_wait_for(run, 0, &done) && done && x > 0);
	return tf_close(world);
}

/* In a uniform job a bcast of its root ends when the others have come. */
static int uniform(void) {
	tf_config config = {.abi = TF_ABI, .options = "{\"uniform\": true}"};
	tf_request bcast = {.coll = TF_BCAST, .type = TF_I32, .count = 1};
	tf_run *run;
	int32_t x = 0, done = 1;
	MUST(!tf_open(&config, &world));
	rank = tf_rank(world);
	size = tf_size(world);
	if (rank > 0) {
		MUST(!tf_recv(world, 0, 1, TF_I32, &x, 1, 0, NULL) && !tf_call(world, &bcast, NULL, &x) && x == 8);
		return tf_close(world);
	}
	x = 8;
	MUST(!tf_start(world, &bcast, NULL, &x, &run) && !tf_wait_for(run, tick, &done) && !done);
	for (int i = 1; i < size; i++) MUST(!tf_send(world, i, 1, TF_I32, &x, 1, 0));
	MUST(!tf_wait(run));
	return tf_close(world);
}

int main(void) {
	tf_config config = {.abi = TF_ABI, .options = "{\"uniform\": false, \"managed\": false, \"call_timeout\": \"10m\"}"};
	if (alone() || uniform()) return 1;
	MUST(!tf_open(&config, &world));
	rank = tf_rank(world);
	size = tf_size(world);
	MUST(size == 4);
	return messages() || wrong() || limits() || exchanges() || aborts() || forks() || death();
}
