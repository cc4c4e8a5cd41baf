/* calls N: N allreduces of one double, and what one takes in nanoseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "tierflow.h"

#define MUST(what) do { if (!(what)) { printf("%s: %s\n", #what, tf_error()); return 1; } } while (0)

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
	tf_config config = {.abi = TF_ABI};
	tf_comm *world = NULL;
	MUST(argc == 2 && !tf_open(&config, &world));
	tf_request sum = {.coll = TF_ALLREDUCE, .type = TF_F64, .op = TF_SUM, .count = 1};
	double mine = 1, all = 0;
	MUST(!tf_call(world, &sum, &mine, &all) && !tf_call(world, &sum, &mine, &all));
	long n = atol(argv[1]);
	double begin = now();
	for (long i = 0; i < n; i++) MUST(!tf_call(world, &sum, &mine, &all));
	printf("%.1f\n", (now() - begin) / n);
	MUST(!tf_close(world) && all == 1);
	return 0;
}
