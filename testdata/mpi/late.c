/* Rank 1 comes to the last of many allreduces when there is a file named by the argument. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
	int rank, mine = 1, all = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 100; i++) {
		while (i == 99 && rank == 1 && access(argv[1], F_OK) != 0) usleep(1000);
		MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	}
	if (rank == 0) printf("late: %d ranks\n", all);
	MPI_Finalize();
	return 0;
}
