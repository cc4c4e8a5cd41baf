! The calls of Fortran's older interface, blocking and not, in place, with counts.
program fortran
  implicit none
  include 'mpif.h'
  integer, parameter :: len = 1000
  integer :: me, n, ierr, i, round, bad, all, root, q(4), done, index
  integer :: a(len), b(len), c(len * 16), counts(16), displs(16)
  logical :: flag
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  bad = 0
  do round = 1, 5
    root = mod(round, n)
    do i = 1, len
      a(i) = me + i
    end do
    call MPI_Allreduce(a, b, len, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (b(7) /= n * 7 + n * (n - 1) / 2) bad = bad + 1
    call MPI_Allreduce(MPI_IN_PLACE, a, len, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
    if (a(len) /= n - 1 + len) bad = bad + 1
    if (me == root) b(3) = round
    call MPI_Bcast(b, len, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
    if (b(3) /= round) bad = bad + 1
    do i = 1, n
      counts(i) = i * 40
      displs(i) = (i - 1) * len
    end do
    a(1) = 100 * me + round
    call MPI_Gatherv(a, counts(me + 1), MPI_INTEGER, c, counts, displs, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
    if (me == root) then
      do i = 1, n
        if (c(displs(i) + 1) /= 100 * (i - 1) + round) bad = bad + 1
      end do
    end if
    call MPI_Iallreduce(me, all, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, q(1), ierr)
    call MPI_Ibcast(b, len, MPI_INTEGER, root, MPI_COMM_WORLD, q(2), ierr)
    call MPI_Ibarrier(MPI_COMM_WORLD, q(3), ierr)
    call MPI_Iallgather(a, 1, MPI_INTEGER, c, 1, MPI_INTEGER, MPI_COMM_WORLD, q(4), ierr)
    select case (mod(round, 4))
    case (0)
      call MPI_Waitall(4, q, MPI_STATUSES_IGNORE, ierr)
    case (1)
      do i = 4, 1, -1
        call MPI_Wait(q(i), MPI_STATUS_IGNORE, ierr)
      end do
    case (2)
      do i = 1, 4
        call MPI_Waitany(4, q, index, MPI_STATUS_IGNORE, ierr)
      end do
    case (3)
      flag = .false.
      do while (.not. flag)
        call MPI_Testall(4, q, flag, MPI_STATUSES_IGNORE, ierr)
      end do
    end select
    if (all /= n * (n - 1) / 2 .or. c(n) /= 100 * (n - 1) + round) bad = bad + 1
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
  end do
  call MPI_Sendrecv(me, 1, MPI_INTEGER, mod(me + 1, n), 0, i, 1, MPI_INTEGER, mod(me + n - 1, n), 0, &
    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  if (i /= mod(me + n - 1, n)) bad = bad + 1
  call MPI_Reduce(bad, done, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  if (me == 0) print '(a,i0,a)', 'fortran: ', done, ' wrong'
  call MPI_Finalize(ierr)
end program
