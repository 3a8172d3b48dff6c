! SPDX-License-Identifier: Apache-2.0
! A window of Fortran: made, used in fences and locks, asked for its attributes; and the blocking calls, which go on to
! the MPI with all of their arguments.
program fortran
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: rank, ranks, right, left, win, ierror, wrong, request, absolute, lengths(2)
  integer, target :: value, old
  integer(kind=mpi_address_kind) :: bytes, at, attribute, addresses(2)
  integer, pointer :: part(:), values(:)
  type(c_ptr) :: base
  logical :: flag

  call mpi_init(ierror)
  call mpi_comm_rank(mpi_comm_world, rank, ierror)
  call mpi_comm_size(mpi_comm_world, ranks, ierror)
  right = mod(rank + 1, ranks)
  left = mod(rank + ranks - 1, ranks)
  wrong = 0
  bytes = 64
  call mpi_win_allocate(bytes, 4, mpi_info_null, mpi_comm_world, base, win, ierror)
  call c_f_pointer(base, part, [16])
  part = 0
  call mpi_win_fence(0, win, ierror)
  value = 10 + rank
  at = 1
  call mpi_put(value, 1, mpi_integer, right, at, 1, mpi_integer, win, ierror)
  call mpi_win_fence(mpi_mode_nosucceed, win, ierror)
  if (part(2) /= 10 + left) wrong = wrong + 1
  call mpi_win_lock(mpi_lock_shared, 0, 0, win, ierror)
  value = 1
  at = 2
  call mpi_fetch_and_op(value, old, mpi_integer, 0, at, mpi_sum, win, ierror)
  call mpi_win_unlock(0, win, ierror)
  if (old < 0 .or. old >= ranks) wrong = wrong + 1
  call mpi_barrier(mpi_comm_world, ierror)
  call mpi_win_lock_all(0, win, ierror)
  call mpi_rget(old, 1, mpi_integer, 0, at, 1, mpi_integer, win, request, ierror)
  call mpi_wait(request, mpi_status_ignore, ierror)
  call mpi_win_unlock_all(win, ierror)
  if (old /= ranks) wrong = wrong + 1
  ! The addresses of variables, from MPI_BOTTOM on: the second one first.
  allocate(values(2))
  values = [30 + rank, 40 + rank]
  lengths = 1
  call mpi_get_address(values(2), addresses(1), ierror)
  call mpi_get_address(values(1), addresses(2), ierror)
  call mpi_type_create_hindexed(2, lengths, addresses, mpi_integer, absolute, ierror)
  call mpi_type_commit(absolute, ierror)
  call mpi_win_fence(0, win, ierror)
  at = 4
  call mpi_put(mpi_bottom, 1, absolute, right, at, 2, mpi_integer, win, ierror)
  call mpi_win_fence(0, win, ierror)
  if (part(5) /= 40 + left .or. part(6) /= 30 + left) wrong = wrong + 1
  call mpi_accumulate(mpi_bottom, 1, absolute, right, 2 * at, 2, mpi_integer, mpi_sum, win, ierror)
  call mpi_win_fence(0, win, ierror)
  if (part(9) /= 40 + left .or. part(10) /= 30 + left) wrong = wrong + 1
  call mpi_get(mpi_bottom, 1, absolute, rank, at, 2, mpi_integer, win, ierror)
  call mpi_win_fence(mpi_mode_nosucceed, win, ierror)
  if (values(1) /= 30 + left .or. values(2) /= 40 + left) wrong = wrong + 1
  call mpi_type_free(absolute, ierror)
  call mpi_win_get_attr(win, mpi_win_size, attribute, flag, ierror)
  if (.not. flag .or. attribute /= 64) wrong = wrong + 1
  call mpi_win_free(win, ierror)
  call messages
  call collectives
  call mpi_allreduce(wrong, old, 1, mpi_integer, mpi_sum, mpi_comm_world, ierror)
  if (rank == 0) print '(a, i0, a)', 'fortran: ', old, ' wrong'
  call mpi_finalize(ierror)

contains

  subroutine expect(holds)
    logical, intent(in) :: holds
    if (.not. holds .or. ierror /= mpi_success) wrong = wrong + 1
    ierror = -1
  end subroutine expect

  subroutine messages
    integer :: in, out, status(mpi_status_size), message, which, requests(2), statuses(mpi_status_size, 2)
    out = 70 + rank
    in = 0
    call mpi_sendrecv(out, 1, mpi_integer, right, 1, in, 1, mpi_integer, left, 1, mpi_comm_world, status, ierror)
    call expect(in == 70 + left .and. status(mpi_source) == left)
    call mpi_irecv(in, 1, mpi_integer, left, 2, mpi_comm_world, requests(1), ierror)
    call mpi_send(out, 1, mpi_integer, right, 2, mpi_comm_world, ierror)
    call mpi_wait(requests(1), status, ierror)
    call expect(in == 70 + left .and. status(mpi_tag) == 2)
    in = 0
    call mpi_irecv(in, 1, mpi_integer, left, 3, mpi_comm_world, requests(1), ierror)
    requests(2) = mpi_request_null
    call mpi_ssend(out, 1, mpi_integer, right, 3, mpi_comm_world, ierror)
    call mpi_waitany(2, requests, which, status, ierror)
    call expect(in == 70 + left .and. which == 1)
    call mpi_isend(out, 1, mpi_integer, right, 4, mpi_comm_world, requests(1), ierror)
    call mpi_probe(left, 4, mpi_comm_world, status, ierror)
    call expect(status(mpi_source) == left)
    call mpi_recv(in, 1, mpi_integer, left, 4, mpi_comm_world, status, ierror)
    call expect(in == 70 + left .and. status(mpi_tag) == 4)
    call mpi_isend(out, 1, mpi_integer, right, 5, mpi_comm_world, requests(2), ierror)
    call mpi_mprobe(left, 5, mpi_comm_world, message, status, ierror)
    call expect(status(mpi_tag) == 5)
    call mpi_mrecv(in, 1, mpi_integer, message, status, ierror)
    call expect(in == 70 + left)
    call mpi_waitall(2, requests, statuses, ierror)
    call expect(all(requests == mpi_request_null))
  end subroutine messages

  subroutine collectives
    integer :: mine(ranks), others(ranks), ones(ranks), places(ranks), i, sum
    ones = 1
    places = [(i, i = 0, ranks - 1)]
    sum = ranks * (ranks - 1) / 2
    mine = rank
    call mpi_bcast(mine, 1, mpi_integer, ranks - 1, mpi_comm_world, ierror)
    call expect(mine(1) == ranks - 1)
    mine = rank
    call mpi_reduce(mine, others, 1, mpi_integer, mpi_sum, 0, mpi_comm_world, ierror)
    call expect(rank /= 0 .or. others(1) == sum)
    call mpi_allreduce(mine(1), others(1), 1, mpi_integer, mpi_sum, mpi_comm_world, ierror)
    call expect(others(1) == sum)
    call mpi_gather(mine, 1, mpi_integer, others, 1, mpi_integer, 0, mpi_comm_world, ierror)
    call expect(rank /= 0 .or. all(others == places))
    call mpi_scatter(places, 1, mpi_integer, others, 1, mpi_integer, 0, mpi_comm_world, ierror)
    call expect(others(1) == rank)
    call mpi_allgather(mine, 1, mpi_integer, others, 1, mpi_integer, mpi_comm_world, ierror)
    call expect(all(others == places))
    others = -1
    call mpi_allgatherv(mine, 1, mpi_integer, others, ones, places, mpi_integer, mpi_comm_world, ierror)
    call expect(all(others == places))
    call mpi_alltoall(mine, 1, mpi_integer, others, 1, mpi_integer, mpi_comm_world, ierror)
    call expect(all(others == places))
    others = -1
    call mpi_alltoallv(mine, ones, places, mpi_integer, others, ones, places, mpi_integer, mpi_comm_world, ierror)
    call expect(all(others == places))
    call mpi_allreduce(mpi_in_place, mine(1), 1, mpi_integer, mpi_sum, mpi_comm_world, ierror)
    call expect(mine(1) == sum)
  end subroutine collectives
end program fortran
