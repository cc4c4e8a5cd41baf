/* Calls that one rank might leave to MPI and another one not: the ranks' datatypes differ, they
 * work in place, the communicator is one of many. A wrong result or a rank that waits for
 * ever is the failure. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, n, bad;
#define MUST(what) do { if (!(what)) { if (!bad++) printf("rank %d: line %d, round %d: %s\n", me, __LINE__, round, #what); } } while (0)

enum { LEN = 30 };

/* every second rank has its ints apart: (int, gap) */
static int a[2 * LEN * 8], b[2 * LEN * 8];
static MPI_Datatype gapped, swapped;

static int at(int i, int apart) { return apart ? 2 * i : i; }

static void user(void *in, void *inout, int *len, MPI_Datatype *t) {
	(void)t;
	for (int i = 0; i < *len; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void on(MPI_Comm c, int round) {
	int r, size, odd;
	MPI_Comm_rank(c, &r);
	MPI_Comm_size(c, &size);
	odd = (r + round) % 2;
	MPI_Datatype t = odd ? gapped : MPI_INT;
	int root = round % size, sum = size * (size - 1) / 2;

	MPI_Barrier(c);
	for (int i = 0; i < LEN; i++) a[at(i, odd)] = r == root ? i + round : -1;
	MPI_Bcast(a, LEN, t, root, c);
	for (int i = 0; i < LEN; i++) MUST(a[at(i, odd)] == i + round);

	/* bytes whose order changes on the way: a type as large as its extent that is not flat */
	int two[2] = {1, 2};
	if (r != root) two[0] = two[1] = 0;
	MPI_Bcast(two, 1, r == root ? swapped : MPI_2INT, root, c);
	MUST(r == root || (two[0] == 2 && two[1] == 1));

	for (int i = 0; i < LEN; i++) a[at(i, odd)] = 100 * r + i + round;
	memset(b, -1, sizeof b);
	MPI_Allgather(a, LEN, t, b, LEN, MPI_INT, c);
	for (int i = 0; i < LEN * size; i++) MUST(b[i] == 100 * (i / LEN) + i % LEN + round);
	memset(b, -1, sizeof b);
	for (int i = 0; i < LEN; i++) b[at(r * LEN + i, odd)] = 100 * r + i + round;
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, LEN, t, c);
	for (int i = 0; i < LEN * size; i++) MUST(b[at(i, odd)] == 100 * (i / LEN) + i % LEN + round);
	MUST(!odd || b[1] == -1);

	memset(b, -1, sizeof b);
	if (r == root && round % 3 == 0) {
		for (int i = 0; i < LEN; i++) b[at(r * LEN + i, odd)] = 100 * r + i + round;
		MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, LEN, t, root, c);
	} else {
		MPI_Gather(a, LEN, t, r == root ? b : NULL, r == root ? LEN : -5, r == root ? t : MPI_DATATYPE_NULL, root, c);
	}
	for (int i = 0; r == root && i < LEN * size; i++) MUST(b[at(i, odd)] == 100 * (i / LEN) + i % LEN + round);

	for (int i = 0; i < LEN * size; i++) a[at(i, odd)] = r == root ? i + round : -1;
	memset(b, -1, sizeof b);
	if (r == root && round % 3 == 1) {
		MPI_Scatter(a, LEN, t, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, c);
	} else {
		MPI_Scatter(r == root ? a : NULL, r == root ? LEN : -5, r == root ? t : MPI_DATATYPE_NULL, b, LEN, t, root, c);
		for (int i = 0; i < LEN; i++) MUST(b[at(i, odd)] == LEN * r + i + round);
	}

	for (int i = 0; i < LEN * size; i++) a[at(i, odd)] = 1000 * r + i + round;
	MPI_Alltoall(a, LEN, t, b, LEN, MPI_INT, c);
	for (int i = 0; i < LEN * size; i++) MUST(b[i] == 1000 * (i / LEN) + LEN * r + i % LEN + round);

	for (int i = 0; i < LEN * size; i++) a[i] = r + i;
	MPI_Allreduce(a, b, LEN, MPI_INT, MPI_SUM, c);
	for (int i = 0; i < LEN; i++) MUST(b[i] == sum + size * i);
	memcpy(b, a, sizeof b);
	MPI_Allreduce(MPI_IN_PLACE, b, LEN, MPI_INT, MPI_MAX, c);
	for (int i = 0; i < LEN; i++) MUST(b[i] == size - 1 + i);
	memcpy(b, a, sizeof b);
	MPI_Reduce(r == root ? MPI_IN_PLACE : b, r == root ? b : NULL, LEN, MPI_INT, MPI_SUM, root, c);
	for (int i = 0; r == root && i < LEN; i++) MUST(b[i] == sum + size * i);
	MPI_Reduce_scatter_block(a, b, LEN, MPI_INT, MPI_SUM, c);
	for (int i = 0; i < LEN; i++) MUST(b[i] == sum + size * (LEN * r + i));
	memcpy(b, a, sizeof b);
	MPI_Reduce_scatter_block(MPI_IN_PLACE, b, LEN, MPI_INT, MPI_SUM, c);
	for (int i = 0; i < LEN; i++) MUST(b[i] == sum + size * (LEN * r + i));
	MPI_Scan(a, b, LEN, MPI_INT, MPI_SUM, c);
	for (int i = 0; i < LEN; i++) MUST(b[i] == r * (r + 1) / 2 + (r + 1) * i);
	memset(b, -1, sizeof b);
	MPI_Exscan(a, b, LEN, MPI_INT, MPI_SUM, c);
	for (int i = 0; i < LEN; i++) MUST(r == 0 ? b[i] == -1 : b[i] == r * (r - 1) / 2 + r * i);

	/* what is MPI's: a user's operation, a pair type, no elements */
	MPI_Op op;
	MPI_Op_create(user, 1, &op);
	MPI_Allreduce(a, b, LEN, MPI_INT, op, c);
	for (int i = 0; i < LEN; i++) MUST(b[i] == sum + size * i);
	MPI_Op_free(&op);
	struct { double v; int i; } in = {-r, r}, out;
	MPI_Allreduce(&in, &out, 1, MPI_DOUBLE_INT, MPI_MINLOC, c);
	MUST(out.i == size - 1);
	MPI_Allreduce(a, b, 0, MPI_INT, MPI_SUM, c);
	MPI_Bcast(NULL, 0, MPI_INT, root, c);

	/* other elements */
	double x[2] = {r + 0.5, -r}, y[2];
	MPI_Allreduce(x, y, 2, MPI_DOUBLE, MPI_SUM, c);
	MUST(y[0] == sum + 0.5 * size && y[1] == -sum);
	unsigned char f = 1 << r % 8, g;
	MPI_Allreduce(&f, &g, 1, MPI_BYTE, MPI_BOR, c);
	MUST(g == (size >= 8 ? 255 : (1 << size) - 1));
	int truth = r ? 7 : 0, any;
	MPI_Allreduce(&truth, &any, 1, MPI_INT, MPI_LAND, c);
	MUST(any == 0);
	MPI_Allreduce(&truth, &any, 1, MPI_INT, MPI_LOR, c);
	MUST(any == (size > 1));
	long long h = r, most;
	MPI_Allreduce(&h, &most, 1, MPI_LONG_LONG, MPI_MAX, c);
	MUST(most == size - 1);
}

int main(int argc, char **argv) {
	int all, lens[2] = {1, 1}, places[2] = {1, 0};
	MPI_Datatype pair;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gapped);
	MPI_Type_commit(&gapped);
	MPI_Type_indexed(2, lens, places, MPI_INT, &pair);
	MPI_Type_dup(pair, &swapped);
	MPI_Type_commit(&swapped);
	for (int round = 0; round < 6; round++) {
		MPI_Comm c, sub;
		on(MPI_COMM_WORLD, round);
		on(MPI_COMM_SELF, round);
		MPI_Comm_dup(MPI_COMM_WORLD, &c);
		MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &sub);
		for (int again = 0; again < 3; again++) {
			on(c, round);
			on(sub, round + again);
		}
		MPI_Comm_free(&sub);
		MPI_Comm_free(&c);
		if (n > 1) { /* between two groups, which is MPI's */
			MPI_Comm half, inter;
			int x = me, y = -1;
			MPI_Comm_split(MPI_COMM_WORLD, me > 0, me, &half);
			MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, me > 0 ? 0 : 1, 5, &inter);
			MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_MAX, inter);
			MUST(y == (me > 0 ? 0 : n - 1));
			MPI_Barrier(inter);
			MPI_Comm_free(&inter);
			MPI_Comm_free(&half);
		}
	}
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (me == 0) printf("fallbacks: %d wrong\n", all);
	MPI_Finalize();
	return all != 0;
}
