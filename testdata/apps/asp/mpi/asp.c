// All shortest paths as ../main.go has them, for any MPI: mpicc -O3 asp.c -o asp
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNREACHED = 1 << 29 };

static int32_t weight(int i, int j) {
	uint32_t x = (uint32_t)i * 2654435761u ^ (uint32_t)j * 40503u;
	x ^= x >> 13;
	x *= 0x5bd1e995u;
	x ^= x >> 15;
	if (i == j)
		return 0;
	return x % 4 == 0 ? (int32_t)(1 + x / 4 % 1000) : UNREACHED;
}

int main(int argc, char **argv) {
	int ranks, me, n = 512;
	for (int i = 1; i + 1 < argc; i += 2)
		if (!strcmp(argv[i], "-vertices"))
			n = atoi(argv[i + 1]);
	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	int first = (long)n * me / ranks, end = (long)n * (me + 1) / ranks, owner = 0;
	int32_t *mine = malloc(sizeof *mine * n * (end - first + 1)), *row = malloc(sizeof *row * n);
	for (int i = first; i < end; i++)
		for (int j = 0; j < n; j++)
			mine[(long)(i - first) * n + j] = weight(i, j);
	MPI_Barrier(MPI_COMM_WORLD);
	double begin = MPI_Wtime(), spent = 0;
	for (int k = 0; k < n; k++) {
		while (k >= (long)n * (owner + 1) / ranks)
			owner++;
		if (owner == me)
			memcpy(row, mine + (long)(k - first) * n, sizeof *row * n);
		double before = MPI_Wtime();
		MPI_Bcast(row, n, MPI_INT32_T, owner, MPI_COMM_WORLD);
		spent += MPI_Wtime() - before;
		for (int i = 0; i < end - first; i++) {
			int32_t *r = mine + (long)i * n, by = r[k];
			if (by >= UNREACHED)
				continue;
			for (int j = 0; j < n; j++)
				if (by + row[j] < r[j])
					r[j] = by + row[j];
		}
	}
	double times[2] = {MPI_Wtime() - begin, spent}, slowest[2];
	MPI_Reduce(times, slowest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	long sum = 0, all = 0;
	for (long i = 0; i < (long)n * (end - first); i++)
		sum += mine[i];
	MPI_Reduce(&sum, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (me == 0)
		printf("vertices=%d ranks=%d total_s=%.3f communication_s=%.3f share=%.1f%% sum=%ld\n", n, ranks, slowest[0], slowest[1], 100 * slowest[1] / slowest[0], all);
	MPI_Finalize();
	return 0;
}
