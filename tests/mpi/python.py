# SPDX-License-Identifier: Apache-2.0
"""The window calls of mpi4py, whose extension module was compiled long before this library."""
import sys
from array import array

try:
    from mpi4py import MPI
except ImportError as why:
    print(f"skipped: {why}")
    sys.exit(77)

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
right, left = (rank + 1) % size, (rank - 1) % size
wrong = 0


def check(what, found, expected):
    global wrong
    if found != expected:
        wrong += 1
        print(f"rank {rank}: {what} is {found}, not {expected}", flush=True)


def longs(*values):
    return [array("l", values), MPI.LONG]


def in_fences(win, part):
    got = longs(0)
    win.Fence()
    win.Put(longs(10 + rank), right, 0)
    win.Accumulate(longs(1), right, [1, 1, MPI.LONG], MPI.SUM)
    win.Fence()
    win.Get(got, right, 0)
    win.Fence(MPI.MODE_NOSUCCEED)
    check("put", part()[0], 10 + left)
    check("accumulate", part()[1], 1)
    check("get", got[0][0], 10 + rank)


def in_groups(win, part):
    everyone = win.Get_group()
    to, source = everyone.Incl([right]), everyone.Incl([left])
    for test in (False, True):
        win.Post(source)
        win.Start(to)
        win.Put(longs(20 + rank), right, 2)
        win.Complete()
        if test:
            while not win.Test():
                pass
        else:
            win.Wait()
        check("put in a group", part()[2], 20 + left)


def in_locks(win, part):
    old, result = longs(0), longs(0)
    win.Lock(right, MPI.LOCK_EXCLUSIVE)
    win.Put(longs(0), right, 3)
    win.Unlock(right)
    comm.Barrier()
    win.Lock_all()
    win.Fetch_and_op(longs(5), old, 0, 3, MPI.SUM)
    win.Flush_local(0)
    check("a multiple of five", old[0][0] % 5, 0)
    win.Flush(0)
    win.Flush_all()
    comm.Barrier()
    win.Compare_and_swap(longs(1), longs(5 * size), result, 0, 3)
    win.Flush_local_all()
    comm.Barrier()
    requests = [win.Rput(longs(30 + rank), right, 4), win.Raccumulate(longs(1), right, [5, 1, MPI.LONG], MPI.MAX)]
    MPI.Request.Waitall(requests)
    win.Flush(right)
    request = win.Rget(result, right, 4)
    request.Wait()
    check("rget", result[0][0], 30 + rank)
    request = win.Rget_accumulate(longs(0), result, right, [4, 1, MPI.LONG], MPI.NO_OP)
    while not request.Test():
        pass
    check("rget_accumulate", result[0][0], 30 + rank)
    win.Get_accumulate(longs(2), result, right, [4, 1, MPI.LONG], MPI.PROD)
    win.Unlock_all()
    comm.Barrier()
    win.Lock(rank)
    win.Sync()
    if rank == 0:
        check("swapped by one", part()[3], 1)
    check("product", part()[4], 2 * (30 + left))
    win.Unlock(rank)
    comm.Barrier()


def use(win, part):
    check("unit", win.Get_attr(MPI.WIN_DISP_UNIT), 8)
    win.Set_name("window")
    check("name", win.Get_name(), "window")
    in_fences(win, part)
    in_groups(win, part)
    in_locks(win, part)
    win.Free()


def dynamic():
    memory = array("l", [0] * 4)
    win = MPI.Win.Create_dynamic(comm=comm)
    win.Attach(memory)
    at = comm.sendrecv(MPI.Get_address(memory), dest=left, source=right)
    win.Fence()
    win.Put(longs(7 + rank), right, at + 8)
    win.Fence()
    check("put into attached memory", memory[1], 7 + left)
    win.Detach(memory)
    win.Free()


own = array("l", [0] * 8)
use(MPI.Win.Create(own, 8, comm=comm), lambda: own)
for make in (MPI.Win.Allocate, MPI.Win.Allocate_shared):
    window = make(64, 8, comm=comm)
    use(window, lambda: memoryview(window.tomemory()).cast("l"))
window = MPI.Win.Allocate_shared(8, 8, comm=comm)
check("shared bytes", len(window.Shared_query(right)[0]), 8)
window.Free()
dynamic()
wrong = comm.allreduce(wrong)
if rank == 0:
    print(f"python: {wrong} wrong")
