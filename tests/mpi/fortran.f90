! SPDX-License-Identifier: Apache-2.0
! A window of Fortran: made, used in fences and locks, asked for its attributes.
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
  call mpi_allreduce(wrong, old, 1, mpi_integer, mpi_sum, mpi_comm_world, ierror)
  if (rank == 0) print '(a, i0, a)', 'fortran: ', old, ' wrong'
  call mpi_finalize(ierror)
end program fortran
