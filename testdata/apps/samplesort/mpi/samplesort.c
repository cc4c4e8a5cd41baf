// Sample sort as ../main.go has it, for any MPI: mpicc -O3 samplesort.c -o samplesort
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 32 };

typedef struct {
	uint64_t key;
	int32_t rank, index;
} record;

static uint64_t mix(uint64_t n) {
	n *= 0x9e3779b97f4a7c15u;
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9u;
	n = (n ^ n >> 27) * 0x94d049bb133111ebu;
	return n ^ n >> 31;
}

static int order(const void *x, const void *y) {
	const record *a = x, *b = y;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
}

static uint64_t digest(const record *all, int n) {
	uint64_t sum = 0;
	for (int i = 0; i < n; i++)
		sum += mix(all[i].key ^ (uint64_t)all[i].rank << 48 ^ (uint64_t)all[i].index << 20);
	return sum;
}

// merge makes one of sorted runs, two and two; it writes to both. at has the runs' beginnings, and the end.
static record *merge(record *all, record *other, int *at, int runs) {
	for (; runs > 1; runs = (runs + 1) / 2) {
		int total = at[runs], n = 0;
		for (int r = 0; r < runs; r += 2) {
			int a = at[r], middle = at[r + 1], b = middle, end = r + 2 <= runs ? at[r + 2] : total;
			at[r / 2] = n;
			if (r + 1 == runs)
				b = end = middle = total;
			while (a < middle && b < end)
				other[n++] = order(all + a, all + b) <= 0 ? all[a++] : all[b++];
			while (a < middle)
				other[n++] = all[a++];
			while (b < end)
				other[n++] = all[b++];
		}
		at[(runs + 1) / 2] = total;
		record *was = all;
		all = other, other = was;
	}
	return all;
}

// sort_all sorts n records of each rank; got is how many this one has then.
static record *sort_all(const record *given, int n, int ranks, MPI_Datatype type, int *got) {
	record *mine = malloc(sizeof *mine * (n + 1));
	memcpy(mine, given, sizeof *mine * n);
	qsort(mine, n, sizeof *mine, order);
	int few = n < SAMPLES ? n : SAMPLES, total = 0;
	record some[SAMPLES];
	for (int i = 0; i < few; i++)
		some[i] = mine[(long)i * n / few];
	int *counts = malloc(sizeof(int) * (ranks * 4 + 1)), *from = counts + ranks, *theirs = from + ranks, *to = theirs + ranks;
	MPI_Allgather(&few, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; total += counts[r++])
		from[r] = total;
	record *sampled = malloc(sizeof *sampled * (total + 1));
	MPI_Allgatherv(some, few, type, sampled, counts, from, type, MPI_COMM_WORLD);
	qsort(sampled, total, sizeof *sampled, order);
	for (int r = 0, at = 0; r < ranks; r++) {
		from[r] = at;
		if (r == ranks - 1 || total == 0) {
			at = n;
		} else { // the first that is not below the splitter
			int low = at, high = n;
			while (low < high) {
				int middle = (low + high) / 2;
				if (order(mine + middle, sampled + (long)(r + 1) * total / ranks) < 0)
					low = middle + 1;
				else
					high = middle;
			}
			at = low;
		}
		counts[r] = at - from[r];
	}
	MPI_Alltoall(counts, 1, MPI_INT, theirs, 1, MPI_INT, MPI_COMM_WORLD);
	int before = 0;
	*got = 0;
	for (int r = 0; r < ranks; *got += theirs[r++])
		to[r] = *got;
	to[ranks] = *got;
	record *sorted = malloc(sizeof *sorted * (*got + 1));
	MPI_Alltoallv(mine, counts, from, type, sorted, theirs, to, type, MPI_COMM_WORLD);
	sorted = merge(sorted, malloc(sizeof *sorted * (*got + 1)), to, ranks);
	MPI_Exscan(got, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	return sorted;
}

int main(int argc, char **argv) {
	int ranks, me, n = 100000, got = 0;
	for (int i = 1; i + 1 < argc; i += 2)
		if (!strcmp(argv[i], "-records"))
			n = atoi(argv[i + 1]);
	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Datatype type;
	MPI_Type_contiguous(sizeof(record), MPI_BYTE, &type);
	MPI_Type_commit(&type);
	record *mine = malloc(sizeof *mine * (n + 1)), *sorted = NULL;
	for (int i = 0; i < n; i++)
		mine[i] = (record){mix((uint64_t)me << 32 | i) >> 24, me, i};
	double slowest = 0;
	for (int k = 0; k < 2; k++) { // the first one warms up
		MPI_Barrier(MPI_COMM_WORLD);
		double begin = MPI_Wtime();
		sorted = sort_all(mine, n, ranks, type, &got);
		double took = MPI_Wtime() - begin;
		MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	}
	uint64_t sums[2] = {digest(mine, n), digest(sorted, got)}, all[2];
	MPI_Reduce(sums, all, 2, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (me == 0)
		printf("records=%d ranks=%d sort_ms=%.3f digest=%016lx%s\n", n, ranks, slowest * 1e3, all[1], all[0] == all[1] ? "" : " LOST");
	MPI_Finalize();
	return 0;
}
