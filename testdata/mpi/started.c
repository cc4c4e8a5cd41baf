/* What is started and ends later: many at once among messages, ended by every call that ends
 * requests, on communicators that are freed before, and persistent ones where there are. Open
 * MPI 4.1 alone crashes when such a communicator is freed, and MPICH 4.0 in Testall of persistent
 * ones: the program is for what stands before them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if MPI_VERSION < 4 && defined(OMPI_MAJOR_VERSION)
#include <mpi-ext.h>
#endif
#if MPI_VERSION >= 4
#define INIT(name) MPI_##name##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define INIT(name) MPIX_##name##_init
#endif

static int me, n, bad;
#define MUST(what) do { if (!(what)) { if (!bad++) printf("rank %d: line %d, round %d: %s\n", me, __LINE__, round, #what); } } while (0)

enum { MANY = 40, LONG = 1 << 18, RANKS = 16 };
static double *big_in, *big_out;

static void end_all(MPI_Request *q, int count, int how) {
	int left = count, flag = 0, index, done, list[3 * MANY];
	switch (how % 7) {
	case 0: MPI_Waitall(count, q, MPI_STATUSES_IGNORE); break;
	case 1: for (int i = count - 1; i >= 0; i--) MPI_Wait(&q[i], MPI_STATUS_IGNORE); break;
	case 2: while (left--) MPI_Waitany(count, q, &index, MPI_STATUS_IGNORE); break;
	case 3: while (left > 0) { MPI_Waitsome(count, q, &done, list, MPI_STATUSES_IGNORE); left -= done; } break;
	case 4: while (!flag) MPI_Testall(count, q, &flag, MPI_STATUSES_IGNORE); break;
	case 5: while (left > 0) { MPI_Testsome(count, q, &done, list, MPI_STATUSES_IGNORE); left -= done; } break;
	case 6:
		for (int i = 0; i < count; i++) {
			for (flag = 0; !flag;) MPI_Request_get_status(q[i], &flag, MPI_STATUS_IGNORE);
			for (flag = 0; !flag;) MPI_Test(&q[i], &flag, MPI_STATUS_IGNORE);
		}
	}
	for (int i = 0; i < count; i++)
		if (q[i] != MPI_REQUEST_NULL) bad++;
}

static void started(MPI_Comm c, int round) {
	int r, size, q = 0;
	long in[MANY], sum[MANY], most[MANY], all[MANY][RANKS], first[MANY];
	MPI_Request list[3 * MANY];
	MPI_Comm_rank(c, &r);
	MPI_Comm_size(c, &size);
	for (int i = 0; i < LONG; i++) big_in[i] = i + r;
	MPI_Iallreduce(big_in, big_out, LONG, MPI_DOUBLE, MPI_SUM, c, &list[q++]);
	for (int i = 0; i < MANY; i++) {
		in[i] = 100 * i + r + round;
		sum[i] = most[i] = -1;
		first[i] = r == i % size ? 7 * i + round : -1;
		switch (i % 4) {
		case 0: MPI_Iallreduce(&in[i], &sum[i], 1, MPI_LONG, MPI_SUM, c, &list[q++]); break;
		case 1: MPI_Ibcast(&first[i], 1, MPI_LONG, i % size, c, &list[q++]); break;
		case 2: MPI_Iallgather(&in[i], 1, MPI_LONG, all[i], 1, MPI_LONG, c, &list[q++]); break;
		case 3: MPI_Ireduce(&in[i], &most[i], 1, MPI_LONG, MPI_MAX, i % size, c, &list[q++]);
		}
		if (i == 20) MPI_Ibarrier(c, &list[q++]);
		if (i % 10 == 5) { /* messages among them */
			MPI_Isend(&in[i], 1, MPI_LONG, (r + 1) % size, i, c, &list[q++]);
			MPI_Irecv(&sum[i], 1, MPI_LONG, (r + size - 1) % size, i, c, &list[q++]);
		}
	}
	end_all(list, q, round);
	for (int i = 0; i < LONG; i++) MUST(big_out[i] == (double)size * i + size * (size - 1) / 2);
	for (int i = 0; i < MANY; i++) {
		if (i % 4 == 0) MUST(sum[i] == (long)size * (100 * i + round) + size * (size - 1) / 2);
		if (i % 4 == 1) MUST(first[i] == 7 * i + round);
		for (int k = 0; i % 4 == 2 && k < size; k++) MUST(all[i][k] == 100 * i + k + round);
		if (i % 4 == 3 && r == i % size) MUST(most[i] == 100 * i + size - 1 + round);
		if (i % 10 == 5) MUST(sum[i] == 100 * i + (r + size - 1) % size + round);
	}
}

/* others starts the rest, with blocks that differ, and waits in a receive whose sender waits
 * for the collective first. */
static void others(MPI_Comm c, int round) {
	int r, size, q = 0, one = 1, x = -1;
	static int a[RANKS * 3000], b[RANKS * 3000], g[RANKS * 3000], s[3000], t[RANKS], u[RANKS], apart[4 * RANKS];
	MPI_Request list[16];
	MPI_Comm_rank(c, &r);
	MPI_Comm_size(c, &size);
	int counts[RANKS], displs[RANKS], same[RANKS], places[RANKS], scan = 0, ex = -1, part = 0, parts = 0;
	for (int i = 0, end = 0; i < size; i++) {
		counts[i] = i % 2 ? 3000 : i + 2;
		displs[i] = end;
		end += counts[i];
		same[i] = 1 + (r + i) % 2 * 2000;
		places[i] = 3000 * i;
		for (int k = 0; k < same[i]; k++) a[places[i] + k] = 100 * r + i + k;
	}
	for (int k = 0; k < 3000; k++) s[k] = r + k;
	MPI_Ialltoallv(a, same, places, MPI_INT, b, same, places, MPI_INT, c, &list[q++]);
	MPI_Igatherv(s, counts[r], MPI_INT, g, counts, displs, MPI_INT, size - 1, c, &list[q++]);
	int *gaps = malloc(size * sizeof *gaps), *lens = malloc(size * sizeof *lens);
	for (int i = 0; i < size; i++) gaps[i] = 4 * i, lens[i] = 2;
	for (int i = 0; i < 4 * size; i++) apart[i] = -1;
	MPI_Iallgatherv(places, 2, MPI_INT, apart, lens, gaps, MPI_INT, c, &list[q++]);
	for (int i = 0; i < size; i++) gaps[i] = lens[i] = 1 << 28; /* which programs do */
	free(gaps);
	free(lens);
	int pair[4] = {r == 0 ? 5 : 0, -1, r == 0 ? 6 : 0, -1};
	MPI_Datatype column; /* freed before the call ends, as programs may */
	MPI_Type_vector(2, 1, 2, MPI_INT, &column);
	MPI_Type_commit(&column);
	MPI_Ibcast(pair, 1, column, 0, c, &list[q++]);
	MPI_Type_free(&column);
	MPI_Iscan(&one, &scan, 1, MPI_INT, MPI_SUM, c, &list[q++]);
	MPI_Iexscan(&one, &ex, 1, MPI_INT, MPI_SUM, c, &list[q++]);
	MPI_Ialltoall(places, 1, MPI_INT, t, 1, MPI_INT, c, &list[q++]);
	MPI_Igather(&r, 1, MPI_INT, u, 1, MPI_INT, 0, c, &list[q++]);
	MPI_Ireduce_scatter_block(places, &part, 1, MPI_INT, MPI_SUM, c, &list[q++]);
	MPI_Iscatter(places, 1, MPI_INT, &parts, 1, MPI_INT, size - 1, c, &list[q++]);
	if (size > 1 && r == 0) MPI_Recv(&x, 1, MPI_INT, 1, 3, c, MPI_STATUS_IGNORE); /* MPI alone goes on here */
	end_all(list, q, round);
	if (r == 1) MPI_Send(&one, 1, MPI_INT, 0, 3, c);
	for (int i = 0; i < size; i++)
		for (int k = 0; k < same[i]; k++) MUST(b[places[i] + k] == 100 * i + r + k);
	for (int i = 0; r == size - 1 && i < size; i++)
		for (int k = 0; k < counts[i]; k++) MUST(g[displs[i] + k] == i + k);
	MUST(pair[0] == 5 && pair[1] == -1 && pair[2] == 6 && pair[3] == -1);
	for (int i = 0; i < 4 * size; i++) MUST(apart[i] == (i % 4 < 2 ? 3000 * (i % 4) : -1));
	for (int i = 0; i < size; i++) MUST(t[i] == 3000 * r && (r || u[i] == i));
	MUST(scan == r + 1 && (r == 0 || ex == r) && part == size * 3000 * r && parts == 3000 * r);
	MUST(size == 1 || r || x == 1);
}

#ifdef INIT
static void persistent(MPI_Comm c, int round) {
	int r, size, x = 0, q = 0;
	long in = 0, sum = 0, word = 0, all[RANKS];
	MPI_Request list[8];
	MPI_Comm_rank(c, &r);
	MPI_Comm_size(c, &size);
	INIT(Allreduce)(&in, &sum, 1, MPI_LONG, MPI_SUM, c, MPI_INFO_NULL, &list[q++]);
	INIT(Bcast)(&word, 1, MPI_LONG, size - 1, c, MPI_INFO_NULL, &list[q++]);
	INIT(Allgather)(&in, 1, MPI_LONG, all, 1, MPI_LONG, c, MPI_INFO_NULL, &list[q++]);
	INIT(Barrier)(c, MPI_INFO_NULL, &list[q++]);
	MPI_Recv_init(&x, 1, MPI_INT, (r + size - 1) % size, 8, c, &list[q++]);
	for (int turn = 0; turn < 10; turn++) {
		int flag = 0, mine = r + turn;
		in = r + turn;
		word = r == size - 1 ? turn : -1;
		if (turn % 2) MPI_Startall(q, list);
		else for (int i = 0; i < q; i++) MPI_Start(&list[(i + r) % q]); /* in an order of this rank's */
		MPI_Send(&mine, 1, MPI_INT, (r + 1) % size, 8, c);
		if (turn % 3 == 0) MPI_Waitall(q, list, MPI_STATUSES_IGNORE);
		else if (turn % 3 == 1) while (!flag) MPI_Testall(q, list, &flag, MPI_STATUSES_IGNORE);
		else for (int i = 0; i < q; i++) MPI_Wait(&list[i], MPI_STATUS_IGNORE);
		MUST(sum == (long)size * turn + size * (size - 1) / 2 && word == turn && x == (r + size - 1) % size + turn);
		for (int k = 0; k < size; k++) MUST(all[k] == k + turn);
		MPI_Waitall(q, list, MPI_STATUSES_IGNORE); /* of those that don't run: at once */
	}
	for (int i = 0; i < q; i++) MPI_Request_free(&list[i]);
}
#endif

int main(int argc, char **argv) {
	int all, round;
	MPI_Comm c;
	MPI_Request q;
	long one = 1, sum = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	big_in = malloc(LONG * sizeof *big_in);
	big_out = malloc(LONG * sizeof *big_out);
	for (round = 0; round < 7; round++) {
		started(MPI_COMM_WORLD, round);
		others(MPI_COMM_WORLD, round);
#ifdef INIT
		if (round < 3) persistent(MPI_COMM_WORLD, round);
#endif
		MPI_Comm_dup(MPI_COMM_WORLD, &c);
		MPI_Barrier(c);
		if (round < 2) started(c, round);
		MPI_Iallreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, c, &q);
		MPI_Comm_free(&c); /* it ends all the same */
		MPI_Wait(&q, MPI_STATUS_IGNORE);
		MUST(sum == n);
	}
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (me == 0) printf("started: %d wrong\n", all);
	MPI_Finalize();
	return all != 0;
}
