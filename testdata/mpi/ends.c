/* Ends badly after some collectives: segv, abort, or a call in which the ranks' roots differ,
 * so that each waits for another one; the last also with errors that are returned. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
	int me, n, x = 1, y = 0;
	const char *how = argc > 1 ? argv[1] : "";
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	for (int i = 0; i < 10; i++) MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (y != n) return 9;
	if (!strcmp(how, "segv") && me == 1) *(volatile int *)0 = 1;
	if (!strcmp(how, "abort") && me == 1) MPI_Abort(MPI_COMM_WORLD, 7);
	if (!strcmp(how, "roots")) MPI_Bcast(&x, 1, MPI_INT, me == 0, MPI_COMM_WORLD);
	if (!strcmp(how, "returned")) {
		MPI_Comm c;
		MPI_Comm_dup(MPI_COMM_WORLD, &c);
		MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
		if (MPI_Bcast(&x, 1, MPI_INT, me == 0, c) == MPI_SUCCESS || MPI_Bcast(&x, 1, MPI_INT, 0, c) == MPI_SUCCESS) return 9;
	}
	printf("ends: rank %d has come to its end\n", me);
	MPI_Finalize();
	return 0;
}
