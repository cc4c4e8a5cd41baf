/* Handlers of signals that know nothing of Go: one on a profiler's timer, with as much on its stack as a report takes, and one
 * of a signal that threads send each other, while all ranks make calls. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { CALLS = 400, MOST = 50000 };

static atomic_long samples, notes;
static atomic_int over;
static pthread_t caller;

static void work(atomic_long *count, const char *format, double x) {
	char line[8192];
	memset(line, 7, sizeof line);
	snprintf(line, sizeof line, format, x);
	if (line[sizeof line - 1] == 7) atomic_fetch_add(count, 1);
}

static void sample(int n) { work(&samples, "%g", n); }

static void note(int n) { work(&notes, "%f", n); }

static void backtrace(int n) { /* on the thread that calls MPI handlers have as much as without tierflow */
	char much[1 << 19];
	memset(much, n, sizeof much);
	__asm__ volatile("" ::"r"(much) : "memory");
	note(n);
}

static void *helper(void *unused) {
	(void)unused;
	while (!atomic_load(&over)) {
		pthread_kill(caller, SIGUSR1);
		kill(getpid(), SIGUSR2);
		usleep(500);
	}
	return NULL;
}

int main(int argc, char **argv) {
	static double x[MOST], y[MOST];
	struct sigaction action, seen;
	struct itimerval timer = {{0, 1000}, {0, 1000}};
	pthread_t thread;
	int provided, rank, size, wrong = 0;
	long all[2], least[2];
	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	memset(&action, 0, sizeof action);
	action.sa_handler = sample;
	action.sa_flags = SA_RESTART;
	sigaction(SIGPROF, &action, NULL);
	sigaction(SIGPROF, NULL, &seen);
	wrong += seen.sa_handler != sample || seen.sa_flags & SA_ONSTACK;
	signal(SIGUSR1, backtrace);
	signal(SIGUSR2, SIG_IGN);
	wrong += signal(SIGUSR2, note) != SIG_IGN;
	caller = pthread_self();
	setitimer(ITIMER_PROF, &timer, NULL);
	pthread_create(&thread, NULL, helper, NULL);
	for (int k = 0; k < CALLS; k++) {
		int n = k % 3 == 0 ? 100 : k % 3 == 1 ? 5000 : MOST;
		MPI_Request request;
		for (int i = 0; i < n; i++) x[i] = rank + i + k;
		MPI_Iallreduce(x, y, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
		usleep(500);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		for (int i = 0; i < n; i++) wrong += y[i] != (double)size * (i + k) + size * (size - 1) / 2.0;
	}
	memset(&timer, 0, sizeof timer);
	setitimer(ITIMER_PROF, &timer, NULL);
	atomic_store(&over, 1);
	pthread_join(thread, NULL);
	all[0] = atomic_load(&samples), all[1] = atomic_load(&notes);
	MPI_Allreduce(all, least, 2, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0) printf("signals: %d wrong%s\n", wrong, least[0] && least[1] ? "" : ", and no signal came");
	MPI_Finalize();
	return 0;
}
