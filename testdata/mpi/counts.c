/* Blocks whose sizes differ, of which a rank may know its own alone: types that differ by rank,
 * in place, blocks in any order with room between, empty, short and long ones. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, n, bad;
#define MUST(what) do { if (!(what)) { if (!bad++) printf("rank %d: line %d, round %d: %s\n", me, __LINE__, round, #what); } } while (0)

enum { MOST = 20000, RANKS = 16 };
static int *a, *b; /* room for twice as much: every second rank has gaps */
static MPI_Datatype gapped;

static int length(int round, int from, int to) {
	static const int some[] = {0, 1, 3, 100, 127, 130, 2000, MOST};
	return some[(unsigned)(round * 31 + from * 7 + to * 13) % 8];
}
static int value(int from, int to, int i) { return 1000000 * from + 10000 * to + i % 10000; }
static int at(int i, int apart) { return apart ? 2 * i : i; }

/* lay writes the displacements of blocks in turned order, one element apart. */
static void lay(const int *counts, int size, int *displs) {
	int end = 1;
	for (int k = 0; k < size; k++) {
		int i = (k + 1) % size;
		displs[i] = end;
		end += counts[i] + 1;
	}
}

static void on(MPI_Comm c, int round) {
	int r, size, out[RANKS], in[RANKS], od[RANKS], id[RANKS];
	MPI_Comm_rank(c, &r);
	MPI_Comm_size(c, &size);
	int root = round % size, odd = (r + round) % 2;
	MPI_Datatype t = odd ? gapped : MPI_INT;

	/* to the root */
	for (int i = 0; i < size; i++) in[i] = length(round, i, root);
	lay(in, size, id);
	memset(b, -1, 2 * (RANKS * (MOST + 1)) * sizeof *b);
	for (int i = 0; i < in[r]; i++) a[at(i, odd)] = value(r, root, i);
	if (r == root && round % 2) {
		for (int i = 0; i < in[r]; i++) b[at(id[r] + i, odd)] = value(r, root, i);
		MPI_Gatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, in, id, t, root, c);
	} else {
		MPI_Gatherv(a, in[r], t, r == root ? b : NULL, r == root ? in : NULL, r == root ? id : NULL, r == root ? t : MPI_DATATYPE_NULL, root, c);
	}
	for (int k = 0; r == root && k < size; k++) {
		for (int i = 0; i < in[k]; i++) MUST(b[at(id[k] + i, odd)] == value(k, root, i));
		MUST(b[at(id[k] + in[k], odd)] == -1);
	}

	/* from the root */
	for (int i = 0; i < size; i++) out[i] = length(round + 1, root, i);
	lay(out, size, od);
	for (int k = 0; r == root && k < size; k++)
		for (int i = 0; i < out[k]; i++) a[at(od[k] + i, odd)] = value(root, k, i);
	memset(b, -1, 2 * (MOST + 1) * sizeof *b);
	if (r == root && round % 2) {
		MPI_Scatterv(a, out, od, t, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, c);
	} else {
		MPI_Scatterv(r == root ? a : NULL, r == root ? out : NULL, r == root ? od : NULL, r == root ? t : MPI_DATATYPE_NULL, b, out[r], t, root, c);
		for (int i = 0; i < out[r]; i++) MUST(b[at(i, odd)] == value(root, r, i));
		MUST(b[at(out[r], odd)] == -1);
	}

	/* from all to all; in place both must be as long */
	int place = round % 3 == 2;
	for (int i = 0; i < size; i++) {
		out[i] = length(round, r, i);
		in[i] = length(round, i, r);
		if (place) out[i] = in[i] = length(round, r < i ? r : i, r < i ? i : r);
	}
	lay(out, size, od);
	lay(in, size, id);
	memset(b, -1, 2 * (RANKS * (MOST + 1)) * sizeof *b);
	for (int k = 0; k < size; k++)
		for (int i = 0; i < out[k]; i++) (place ? b : a)[at((place ? id : od)[k] + i, odd)] = value(r, k, i);
	if (place) MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, b, in, id, t, c);
	else MPI_Alltoallv(a, out, od, t, b, in, id, t, c);
	for (int k = 0; k < size; k++) {
		for (int i = 0; i < in[k]; i++) MUST(b[at(id[k] + i, odd)] == value(k, r, i));
		MUST(b[at(id[k] + in[k], odd)] == -1);
	}

	/* what all ranks know */
	for (int i = 0; i < size; i++) in[i] = length(round / 2, i, i);
	lay(in, size, id);
	memset(b, -1, 2 * (RANKS * (MOST + 1)) * sizeof *b);
	for (int i = 0; i < in[r]; i++) (round % 2 ? b : a)[at(round % 2 ? id[r] + i : i, odd)] = value(r, r, i);
	if (round % 2) MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, in, id, t, c);
	else MPI_Allgatherv(a, in[r], t, b, in, id, t, c);
	for (int k = 0; k < size && size > 1; k++) { /* MPICH 4.0 alone is wrong there */
		for (int i = 0; i < in[k]; i++) MUST(b[at(id[k] + i, odd)] == value(k, k, i));
		MUST(b[at(id[k] + in[k], odd)] == -1);
	}
	int all = 0, mine = 0;
	for (int k = 0; k < size; k++) {
		if (k < r) mine += in[k];
		all += in[k];
	}
	for (int i = 0; i < all; i++) (round % 2 ? b : a)[i] = i + r;
	MPI_Reduce_scatter(round % 2 ? MPI_IN_PLACE : a, b, in, MPI_INT, MPI_SUM, c);
	for (int i = 0; i < in[r]; i++) MUST(b[i] == size * (mine + i) + size * (size - 1) / 2);
	for (int k = 0; k < size; k++) in[k] = 2;
	for (int i = 0; i < 2 * size; i++) a[i] = i + r;
	MPI_Reduce_scatter(a, b, in, MPI_INT, MPI_MAX, c);
	for (int i = 0; i < 2; i++) MUST(b[i] == 2 * r + i + size - 1);
}

int main(int argc, char **argv) {
	int all;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	a = malloc(2 * (RANKS + 1) * (MOST + 1) * sizeof *a);
	b = malloc(2 * (RANKS + 1) * (MOST + 1) * sizeof *b);
	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gapped);
	MPI_Type_commit(&gapped);
	MPI_Comm sub;
	MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &sub);
	for (int round = 0; round < 12; round++) {
		on(MPI_COMM_WORLD, round);
		on(sub, round);
		if (round % 4 == 0) on(MPI_COMM_SELF, round);
	}
	MPI_Comm_free(&sub);
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (me == 0) printf("counts: %d wrong\n", all);
	MPI_Finalize();
	return all != 0;
}
