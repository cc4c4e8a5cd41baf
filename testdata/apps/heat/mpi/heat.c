// Heat on a plate as ../main.go has it, for any MPI: mpicc -O3 heat.c -o heat
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int height, width;
static double *now, *next;

static double step(int top, int bottom, int left, int right) {
	double change = 0;
	int w = width + 2;
	for (int i = top; i < bottom; i++) {
		double *above = now + (i - 1) * w, *row = now + i * w, *below = now + (i + 1) * w, *to = next + i * w;
		for (int k = left; k < right; k++) {
			to[k] = 0.25 * ((above[k] + below[k]) + (row[k - 1] + row[k + 1]));
			double d = fabs(to[k] - row[k]);
			if (d > change)
				change = d;
		}
	}
	return change;
}

// line is a side of the block, of its outermost cells or of the frame.
static double *line(int side, int frame, int *stride, int *n) {
	int w = width + 2;
	*stride = side < 2 ? 1 : w, *n = side < 2 ? width : height;
	int at[4] = {(1 - frame) * w + 1, (height + frame) * w + 1, w + 1 - frame, w + width + frame};
	return now + at[side];
}

static double most(double a, double b) { return a > b ? a : b; }
static int later(int a, int b) { return a > b ? a : b; }

int main(int argc, char **argv) {
	int ranks, me, side = 512, steps = 100;
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "-side"))
			side = atoi(argv[i + 1]);
		if (!strcmp(argv[i], "-steps"))
			steps = atoi(argv[i + 1]);
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	int rows = sqrt(ranks);
	while (ranks % rows)
		rows--;
	int cols = ranks / rows, row = me / cols, col = me % cols;
	height = (long)side * (row + 1) / rows - (long)side * row / rows;
	width = (long)side * (col + 1) / cols - (long)side * col / cols;
	size_t cells = (size_t)(height + 2) * (width + 2);
	now = calloc(cells, sizeof *now), next = calloc(cells, sizeof *next);
	for (int k = 0; k < width + 2 && row == 0; k++)
		now[k] = next[k] = 1;
	int peer[4] = {row > 0 ? me - cols : -1, row < rows - 1 ? me + cols : -1, col > 0 ? me - 1 : -1, col < cols - 1 ? me + 1 : -1};
	double *send[4], *get[4], change = 0;
	for (int s = 0; s < 4; s++)
		send[s] = malloc(sizeof(double) * later(height, width)), get[s] = malloc(sizeof(double) * later(height, width));
	double begin = MPI_Wtime();
	for (int t = 0; t < steps; t++) {
		MPI_Request all[8];
		MPI_Status ended[8];
		int n, stride, started = 0;
		for (int s = 0; s < 4; s++) {
			if (peer[s] < 0)
				continue;
			double *from = line(s, 0, &stride, &n);
			for (int i = 0; i < n; i++)
				send[s][i] = from[i * stride];
			MPI_Irecv(get[s], n, MPI_DOUBLE, peer[s], 0, MPI_COMM_WORLD, &all[started++]);
			MPI_Isend(send[s], n, MPI_DOUBLE, peer[s], 0, MPI_COMM_WORLD, &all[started++]);
		}
		double mine = step(2, height, 2, width);
		MPI_Waitall(started, all, ended);
		for (int s = 0; s < 4; s++) {
			if (peer[s] < 0)
				continue;
			double *to = line(s, 1, &stride, &n);
			for (int i = 0; i < n; i++)
				to[i * stride] = get[s][i];
		}
		mine = most(mine, most(step(1, 2, 1, width + 1), step(later(2, height), height + 1, 1, width + 1)));
		mine = most(mine, most(step(2, height, 1, 2), step(2, height, later(2, width), width + 1)));
		double *was = now;
		now = next, next = was;
		if (t % 10 == 9 || t == steps - 1)
			MPI_Allreduce(&mine, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	}
	if (me == 0)
		printf("side=%d ranks=%d steps=%d change=%.3g step_ms=%.3f\n", side, ranks, steps, change, (MPI_Wtime() - begin) * 1e3 / steps);
	MPI_Finalize();
	return 0;
}
