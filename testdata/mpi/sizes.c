/* Sizes that change from call to call, in turns: what a size compiled to must be its own. */
#include <mpi.h>
#include <stdio.h>

enum { SIZES = 300 };
static int a[97 * SIZES], b[97 * SIZES];

int main(int argc, char **argv) {
	int me, n, bad = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	for (int turn = 0; turn < 3; turn++)
		for (int i = 1; i <= SIZES; i++) {
			int len = i % 3 ? i : 97 * i;
			for (int k = 0; k < len; k++) a[k] = me + k + turn, b[k] = -1;
			if (len < 97 * SIZES) b[len] = -7;
			MPI_Allreduce(a, b, len, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
			for (int k = 0; k < len; k++) bad += b[k] != n * (k + turn) + n * (n - 1) / 2;
			bad += len < 97 * SIZES && b[len] != -7;
		}
	if (me == 0) printf("sizes: %d wrong\n", bad);
	MPI_Finalize();
	return 0;
}
