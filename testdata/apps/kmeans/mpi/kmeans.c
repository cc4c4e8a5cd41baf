// Clusters of points as ../main.go has them, for any MPI: mpicc -O3 kmeans.c -o kmeans
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNKS = 24, DIMS = 4 };

// uniform is number n of those from 0 to 1.
static double uniform(uint64_t n) {
	n *= 0x9e3779b97f4a7c15u;
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9u;
	n = (n ^ n >> 27) * 0x94d049bb133111ebu;
	return (double)((n ^ n >> 31) >> 11) * 0x1p-53;
}

static double *chunk(int number, long points, long *n) {
	long first = number * points / CHUNKS;
	*n = (number + 1) * points / CHUNKS - first;
	double *all = malloc(sizeof *all * *n * DIMS);
	for (long i = 0; i < *n * DIMS; i++) {
		double spread = -2;
		for (int k = 0; k < 4; k++)
			spread += uniform((first * DIMS + i) * 4 + k);
		all[i] = 0.7 * spread + (i / DIMS * 2654435761u >> (i % DIMS * 3)) % 7;
	}
	return all;
}

static void assign(double *sums, const double *points, long n, const double *centres, int clusters) {
	for (; n > 0; n--, points += DIMS) {
		int nearest = 0;
		double least = INFINITY;
		for (int k = 0; k < clusters; k++) {
			double away = 0;
			for (int d = 0; d < DIMS; d++)
				away += (points[d] - centres[k * DIMS + d]) * (points[d] - centres[k * DIMS + d]);
			if (away < least)
				nearest = k, least = away;
		}
		double *to = sums + nearest * (DIMS + 1);
		for (int d = 0; d < DIMS; d++)
			to[d] += points[d];
		to[DIMS]++;
		sums[clusters * (DIMS + 1)] += least;
	}
}

int main(int argc, char **argv) {
	int ranks, me, clusters = 16, steps = 20, mine = 0;
	long points = 240000, counts[CHUNKS], n0;
	double *chunks[CHUNKS], inertia = 0;
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "-points"))
			points = atol(argv[i + 1]);
		if (!strcmp(argv[i], "-clusters"))
			clusters = atoi(argv[i + 1]);
		if (!strcmp(argv[i], "-steps"))
			steps = atoi(argv[i + 1]);
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	for (int number = me; number < CHUNKS; number += ranks, mine++)
		chunks[mine] = chunk(number, points, &counts[mine]);
	double *first = chunk(0, points, &n0), *centres = malloc(sizeof *centres * clusters * DIMS);
	for (long i = 0; i < clusters * DIMS; i++)
		centres[i] = first[i % (n0 * DIMS)] + i / (n0 * DIMS);
	int size = clusters * (DIMS + 1) + 1;
	double *sums = malloc(sizeof *sums * size);
	MPI_Barrier(MPI_COMM_WORLD);
	double begin = MPI_Wtime();
	for (int t = 0; t < steps; t++) {
		memset(sums, 0, sizeof *sums * size);
		for (int i = 0; i < mine; i++)
			assign(sums, chunks[i], counts[i], centres, clusters);
		MPI_Allreduce(MPI_IN_PLACE, sums, size, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		for (int k = 0; k < clusters; k++)
			for (int d = 0; d < DIMS; d++)
				if (sums[k * (DIMS + 1) + DIMS] > 0)
					centres[k * DIMS + d] = sums[k * (DIMS + 1) + d] / sums[k * (DIMS + 1) + DIMS];
		inertia = sums[size - 1] / points;
	}
	if (me == 0)
		printf("points=%ld ranks=%d steps=%d inertia=%.12g step_ms=%.3f\n", points, ranks, steps, inertia, (MPI_Wtime() - begin) * 1e3 / steps);
	MPI_Finalize();
	return 0;
}
