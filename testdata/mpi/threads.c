/* Threads call collectives at once, each on its own communicator, of which they make more. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 3, CALLS = 150 };
static MPI_Comm comms[THREADS];
static int bad;

static void *work(void *p) {
	MPI_Comm c = *(MPI_Comm *)p;
	int n, me;
	MPI_Comm_size(c, &n);
	MPI_Comm_rank(c, &me);
	for (int i = 0; i < CALLS; i++) {
		long a = me + i, b = 0;
		char x[300] = {0};
		MPI_Allreduce(&a, &b, 1, MPI_LONG, MPI_SUM, c);
		if (me == i % n) x[299] = i;
		MPI_Bcast(x, 300, MPI_CHAR, i % n, c);
		if (b != (long)n * i + n * (n - 1) / 2 || x[299] != (char)i) __atomic_add_fetch(&bad, 1, __ATOMIC_SEQ_CST);
		if (i % 50 == 49) {
			MPI_Comm d;
			MPI_Comm_dup(c, &d);
			for (int again = 0; again < 3; again++) MPI_Barrier(d);
			MPI_Comm_free(&d);
		}
	}
	return NULL;
}

int main(int argc, char **argv) {
	int got, me, all;
	pthread_t t[THREADS];
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &got);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	for (int k = 0; k < THREADS; k++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]);
	for (int k = 0; k < THREADS; k++)
		if (got == MPI_THREAD_MULTIPLE) pthread_create(&t[k], NULL, work, &comms[k]);
		else work(&comms[k]);
	for (int k = 0; k < THREADS && got == MPI_THREAD_MULTIPLE; k++) pthread_join(t[k], NULL);
	MPI_Reduce(&bad, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (me == 0) printf("threads: %d wrong\n", all);
	MPI_Finalize();
	return 0;
}
