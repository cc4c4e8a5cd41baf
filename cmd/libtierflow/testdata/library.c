/* Calls of libtierflow.so on each rank: what is wrong is printed, and the status is 1. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include "tierflow.h"

#define MUST(what) do { if (!(what)) { printf("rank %d: line %d: %s: %s\n", rank, __LINE__, #what, tf_error()); return 1; } } while (0)

int main(void) {
	tf_config old = {.abi = TF_ABI + 1}, config = {.abi = TF_ABI, .options = "{\"plan\": \"\"}"}, typo = {.abi = TF_ABI, .options = "{\"plann\": \"\"}"};
	tf_comm *world = NULL, *sub = NULL;
	int rank = -1;
	MUST(tf_open(&old, &world) && strstr(tf_error(), "TF_ABI"));
	MUST(tf_open(&typo, &world) && strstr(tf_error(), "plann"));
	MUST(!tf_open(&config, &world));
	rank = tf_rank(world);
	int size = tf_size(world);
	MUST(rank >= 0 && size > 1 && tf_rank(NULL) == -1);

	double mine[3] = {rank, 1, 2}, all[3] = {0};
	tf_request sum = {.coll = TF_ALLREDUCE, .type = TF_F64, .op = TF_SUM, .count = 3};
	char text[4096] = "";
	MUST(!tf_ready(world, &sum) && !tf_explain(world, &sum, text, sizeof text) && strstr(text, "allreduce"));
	for (int i = 0; i < 100; i++) {
		mine[1] = i;
		MUST(!tf_call(world, &sum, mine, all));
		MUST(all[0] == size * (size - 1) / 2 && all[1] == i * size && all[2] == 2 * size);
	}
	MUST(tf_call(world, &sum, NULL, all) && strstr(tf_error(), "NULL"));
	tf_request none = {.coll = 99}, averaged = {.coll = TF_ALLREDUCE, .type = TF_F64, .op = 200, .count = 3};
	MUST(tf_call(world, &none, mine, all) && tf_call(world, &averaged, mine, all));

	uint64_t id = 0;
	int ranks[2] = {size - 1, 0};
	if (rank == 0) MUST(!tf_draw(world, &id));
	tf_request number = {.coll = TF_BCAST, .type = TF_U64, .count = 1};
	MUST(!tf_call(world, &number, NULL, &id));
	if (rank == 0 || rank == size - 1) {
		MUST(!tf_sub(world, id, ranks, 2, &sub));
		int32_t me = rank, both[2];
		tf_request gather = {.coll = TF_ALLGATHER, .type = TF_I32, .count = 1};
		MUST(!tf_call(sub, &gather, &me, both) && both[0] == size - 1 && both[1] == 0);
		MUST(!tf_close(sub) && tf_call(sub, &gather, &me, both));
	}

	/* blocks that differ: known to all, and to two ranks each */
	int64_t counts[16];
	int32_t piece[2000], pieces[16 * 2000];
	for (int i = 0, end = 0; i < size; end += counts[i++]) counts[i] = i == 1 ? 1000 : i + 1;
	for (int i = 0; i < 2000; i++) piece[i] = 10000 * rank + i;
	tf_request differ = {.coll = TF_ALLGATHER, .type = TF_I32, .counts = counts};
	for (int again = 0; again < 3; again++) {
		counts[0] = 1 + again / 2;
		memset(pieces, 0, sizeof pieces);
		MUST(!tf_call(world, &differ, piece, pieces));
		for (int i = 0, end = 0; i < size; end += counts[i++]) MUST(pieces[end] == 10000 * i && pieces[end + counts[i] - 1] == 10000 * i + counts[i] - 1);
		tf_block give[16] = {{0}}, get[16];
		tf_run *run;
		give[size - 1] = (tf_block){piece, 4 * counts[rank]};
		for (int i = 0; i < size; i++) get[i] = (tf_block){pieces + 2000 * i, 4 * counts[i]};
		memset(pieces, 0, sizeof pieces);
		MUST(!tf_exchange(world, TF_GATHER, size - 1, give, rank == size - 1 ? get : NULL, again == 1 ? &run : NULL));
		if (again == 1) MUST(!tf_wait(run));
		for (int i = 0; rank == size - 1 && i < size; i++) MUST(pieces[2000 * i + counts[i] - 1] == 10000 * i + counts[i] - 1);
	}

	/* many at once, ended in any order */
	enum { MANY = 40 };
	tf_run *runs[MANY];
	int64_t in[MANY], out[MANY];
	for (int round = 0; round < 3; round++) {
		tf_request one = {.coll = TF_ALLREDUCE, .type = TF_I64, .op = TF_MAX, .count = 1};
		for (int i = 0; i < MANY; i++) {
			in[i] = i * (rank + 1) + round;
			MUST(!tf_start(world, &one, &in[i], &out[i], &runs[i]));
		}
		for (int i = MANY - 1; i >= 0; i--) {
			int done = 0;
			if (round == 1) {
				MUST(!tf_wait(runs[i]));
			} else {
				while (tf_done(i + 1, runs) < 0) sched_yield();
				while (!done) MUST(!tf_test(runs[i], &done));
			}
			MUST(out[i] == i * size + round);
		}
	}
	MUST(!tf_close(world));
	return 0;
}
