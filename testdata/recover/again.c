// again sums until rank 3 kills itself, and says how long after that a second start of it has summed.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
	double data[1024] = {0}, sum[1024], died = 0;
	int rank, steps = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	FILE *f = fopen(argv[1], "r");
	if (f && fscanf(f, "%lf", &died) == 1)
		fclose(f);
	for (double end = now() + 1; died > 0 || now() < end + 60; steps++) {
		MPI_Allreduce(data, sum, 1024, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		if (died > 0)
			break;
		if (rank == 3 && now() > end) {
			f = fopen(argv[1], "w");
			fprintf(f, "%f\n", now());
			fclose(f);
			kill(getpid(), SIGKILL);
		}
	}
	if (rank == 0)
		printf("%.3f s from the death to the first allreduce\n", now() - died);
	MPI_Finalize();
}
