/* A legal program: a rank's message needs that rank's progress while it waits in a collective. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
	int me, x = 1, sum = 0, len = 8 << 20;
	char *b = malloc(len);
	MPI_Request r = MPI_REQUEST_NULL;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	memset(b, me, len);
	for (int i = 0; i < 5; i++) {
		if (me == 0) MPI_Isend(b, len, MPI_BYTE, 1, 9, MPI_COMM_WORLD, &r);
		if (me == 1) MPI_Recv(b, len, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	}
	if (me == 0) printf("progress: sum %d\n", sum);
	MPI_Finalize();
	return 0;
}
