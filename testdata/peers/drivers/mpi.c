/* Measures an MPI library. Errors are fatal in MPI unless asked otherwise. */
#define _GNU_SOURCE
#include <mpi.h>

#include "measure.h"

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void maximum(double *values, int n) {
	MPI_Allreduce(MPI_IN_PLACE, values, n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static int rank, ranks;

/* A message from the first rank to the last, and back. */
static void ping_pong(const struct call *c, int n, int last) {
	if (rank == 0) {
		MPI_Send(c->send, n, MPI_FLOAT, last, 0, MPI_COMM_WORLD);
		MPI_Recv(c->recv, n, MPI_FLOAT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == last) {
		MPI_Recv(c->recv, n, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(c->recv, n, MPI_FLOAT, 0, 0, MPI_COMM_WORLD);
	}
}

static void run(const struct call *c) {
	int n = (int)(c->bytes / sizeof(float));
	if (is(c, "barrier"))
		MPI_Barrier(MPI_COMM_WORLD);
	else if (is(c, "bcast"))
		MPI_Bcast(c->recv, n, MPI_FLOAT, c->root, MPI_COMM_WORLD);
	else if (is(c, "reduce"))
		MPI_Reduce(c->send, c->recv, n, MPI_FLOAT, MPI_SUM, c->root, MPI_COMM_WORLD);
	else if (is(c, "allreduce"))
		MPI_Allreduce(c->send, c->recv, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	else if (is(c, "allgather") && c->differ)
		MPI_Allgatherv(c->send, c->counts[rank], MPI_FLOAT, c->recv, c->counts, c->offsets, MPI_FLOAT, MPI_COMM_WORLD);
	else if (is(c, "allgather"))
		MPI_Allgather(c->send, n, MPI_FLOAT, c->recv, n, MPI_FLOAT, MPI_COMM_WORLD);
	else if (is(c, "gather") && c->differ)
		MPI_Gatherv(c->send, c->counts[rank], MPI_FLOAT, c->recv, c->counts, c->offsets, MPI_FLOAT, c->root, MPI_COMM_WORLD);
	else if (is(c, "gather"))
		MPI_Gather(c->send, n, MPI_FLOAT, c->recv, n, MPI_FLOAT, c->root, MPI_COMM_WORLD);
	else if (is(c, "scatter") && c->differ)
		MPI_Scatterv(c->send, c->counts, c->offsets, MPI_FLOAT, c->recv, c->counts[rank], MPI_FLOAT, c->root, MPI_COMM_WORLD);
	else if (is(c, "scatter"))
		MPI_Scatter(c->send, n, MPI_FLOAT, c->recv, n, MPI_FLOAT, c->root, MPI_COMM_WORLD);
	else if (is(c, "alltoall") && c->differ)
		MPI_Alltoallv(c->send, c->pairs.gives, c->pairs.gives_at, MPI_FLOAT,
			c->recv, c->pairs.gets, c->pairs.gets_at, MPI_FLOAT, MPI_COMM_WORLD);
	else if (is(c, "alltoall"))
		MPI_Alltoall(c->send, n, MPI_FLOAT, c->recv, n, MPI_FLOAT, MPI_COMM_WORLD);
	else if (is(c, "scan"))
		MPI_Scan(c->send, c->recv, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	else if (is(c, "exscan"))
		MPI_Exscan(c->send, c->recv, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	else if (is(c, "reducescatter"))
		MPI_Reduce_scatter(c->send, c->recv, c->counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	else if (is(c, "pingpong"))
		ping_pong(c, n, ranks - 1);
	else {
		fprintf(stderr, "no collective %s here\n", c->collective);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
}

int main(int argc, char **argv) {
	struct library lib = {0, 0, barrier, maximum, run};
	want_arguments(argc);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &lib.rank);
	rank = lib.rank;
	MPI_Comm_size(MPI_COMM_WORLD, &lib.size);
	ranks = lib.size;
	measure_all(&lib, argv);
	MPI_Finalize();
	return 0;
}
