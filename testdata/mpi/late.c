/* Rank 1 comes to some calls of the others when there is a file, in the folder of the argument, with the call's name. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static const char *folder;
static int rank;

static void come_to(const char *call) {
	char name[4096];
	snprintf(name, sizeof name, "%s/%s", folder, call);
	while (rank == 1 && access(name, F_OK) != 0) usleep(1000);
}

static void add(void *in, void *out, int *n, MPI_Datatype *type) {
	(void)type;
	for (int i = 0; i < *n; i++) ((int *)out)[i] += ((int *)in)[i];
}

int main(int argc, char **argv) {
	int mine = 1, all = 0, which;
	MPI_Op op;
	MPI_Request request;
	folder = argc > 1 ? argv[1] : ".";
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Op_create(add, 1, &op);
	for (int i = 0; i < 99; i++) MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	come_to("taken");
	MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	come_to("passed-on");
	MPI_Allreduce(&mine, &all, 1, MPI_INT, op, MPI_COMM_WORLD);
	come_to("message");
	if (rank == 0) MPI_Recv(&mine, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank == 1) MPI_Send(&mine, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
	come_to("started");
	MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	come_to("any");
	MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	MPI_Waitany(1, &request, &which, MPI_STATUS_IGNORE);
	if (rank == 0) printf("late: %d ranks\n", all);
	come_to("end");
	MPI_Finalize();
	return 0;
}
