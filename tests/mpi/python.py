# SPDX-License-Identifier: Apache-2.0
"""Every window call of mpi4py, whose extension module was compiled long before this library."""
import re
import sys
from array import array

try:
    from mpi4py import MPI
except ImportError as why:
    print(f"skipped: {why}")
    sys.exit(77)

WORLD = MPI.COMM_WORLD
wrong = 0


class Ring:
    """The ranks of a communicator, each with a neighbor on both sides."""

    def __init__(self, comm):
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        self.right, self.left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


def check(what, found, expected):
    global wrong
    if found != expected:
        wrong += 1
        print(f"rank {WORLD.rank}: {what} is {found}, not {expected}", flush=True)


def longs(*values):
    return [array("l", values), MPI.LONG]


def in_fences(ring, win, part):
    got = longs(0)
    win.Fence()
    win.Put(longs(10 + ring.rank), ring.right, 0)
    win.Accumulate(longs(1), ring.right, [1, 1, MPI.LONG], MPI.SUM)
    win.Fence()
    win.Get(got, ring.right, 0)
    win.Fence(MPI.MODE_NOSUCCEED)
    check("put", part()[0], 10 + ring.left)
    check("accumulate", part()[1], 1)
    check("get", got[0][0], 10 + ring.rank)


def in_groups(ring, win, part):
    everyone = win.Get_group()
    to, source = everyone.Incl([ring.right]), everyone.Incl([ring.left])
    for test in (False, True):
        win.Post(source)
        win.Start(to)
        win.Put(longs(20 + ring.rank), ring.right, 2)
        win.Complete()
        if test:
            while not win.Test():
                pass
        else:
            win.Wait()
        check("put in a group", part()[2], 20 + ring.left)


def in_locks(ring, win, part):
    old, result = longs(0), longs(0)
    right = ring.right
    win.Lock(right, MPI.LOCK_EXCLUSIVE)
    win.Put(longs(0), right, 3)
    win.Unlock(right)
    ring.comm.Barrier()
    win.Lock_all()
    win.Fetch_and_op(longs(5), old, 0, 3, MPI.SUM)
    win.Flush_local(0)
    check("a multiple of five", old[0][0] % 5, 0)
    win.Flush(0)
    win.Flush_all()
    ring.comm.Barrier()
    win.Compare_and_swap(longs(1), longs(5 * ring.size), result, 0, 3)
    win.Flush_local_all()
    ring.comm.Barrier()
    requests = [win.Rput(longs(30 + ring.rank), right, 4),
                win.Raccumulate(longs(1), right, [5, 1, MPI.LONG], MPI.MAX)]
    MPI.Request.Waitall(requests)
    win.Flush(right)
    request = win.Rget(result, right, 4)
    request.Wait()
    check("rget", result[0][0], 30 + ring.rank)
    request = win.Rget_accumulate(longs(0), result, right, [4, 1, MPI.LONG], MPI.NO_OP)
    while not request.Test():
        pass
    check("rget_accumulate", result[0][0], 30 + ring.rank)
    win.Get_accumulate(longs(2), result, right, [4, 1, MPI.LONG], MPI.PROD)
    win.Unlock_all()
    ring.comm.Barrier()
    win.Lock(ring.rank)
    win.Sync()
    if ring.rank == 0:
        check("swapped by one", part()[3], 1)
    check("product", part()[4], 2 * (30 + ring.left))
    win.Unlock(ring.rank)
    ring.comm.Barrier()


def attributes(win):
    key = MPI.Win.Create_keyval(copy_fn=None, delete_fn=None)
    win.Set_attr(key, "ours")
    check("attribute", win.Get_attr(key), "ours")
    win.Delete_attr(key)
    check("attribute that was deleted", win.Get_attr(key), None)
    MPI.Win.Free_keyval(key)
    check("unit", win.Get_attr(MPI.WIN_DISP_UNIT), 8)
    win.Set_name("window")
    check("name", win.Get_name(), "window")
    info = MPI.Info.Create()
    info.Set("no_locks", "false")
    win.Set_info(info)
    info.Free()
    win.Get_info().Free()
    check("handle of Fortran", MPI.Win.f2py(win.py2f()) == win, True)


def errors(ring, win):
    win.Set_errhandler(MPI.ERRORS_RETURN)
    handler = win.Get_errhandler()
    check("error handler", handler == MPI.ERRORS_RETURN, True)
    handler.Free()
    win.Call_errhandler(MPI.ERR_OTHER)
    for at, kind in ((-1, MPI.ERR_RMA_RANGE), (1000, MPI.ERR_RMA_RANGE)):
        try:
            win.Fence()
            win.Put(longs(1), ring.right, at)
            check(f"a put at {at}", "done", "refused")
        except MPI.Exception as why:
            check(f"class of a put at {at}", why.Get_error_class(), kind)
    win.Fence(MPI.MODE_NOSUCCEED)


def use(ring, win, part):
    attributes(win)
    in_fences(ring, win, part)
    in_groups(ring, win, part)
    in_locks(ring, win, part)
    errors(ring, win)
    ring.comm.Barrier()
    win.Free()


def of_memory(ring, win):
    use(ring, win, lambda: memoryview(win.tomemory()).cast("l"))


def shared(ring):
    """Parts of different sizes in one piece."""
    of_memory(ring, MPI.Win.Allocate_shared(64, 8, comm=ring.comm))
    win = MPI.Win.Allocate_shared(8 * (1 + ring.rank % 2), 8, comm=ring.comm)
    memory, unit = win.Shared_query(ring.right)
    check("shared bytes", len(memory), 8 * (1 + ring.right % 2))
    check("shared unit", unit, 8)
    first, second = (win.Shared_query(r)[0] for r in (0, min(1, ring.size - 1)))
    if ring.size > 1:
        check("distance of parts", second.address - first.address, 8)
    win.Free()


def pairs(ring):
    """The greatest value and its rank, by mpi4py's view of a C structure."""
    pair = memoryview(bytearray(16))
    win = MPI.Win.Allocate(16, 1, comm=ring.comm)
    win.Fence()
    pair[:8], pair[8:12] = array("d", [ring.rank // 2]).tobytes(), array("i", [ring.rank]).tobytes()
    win.Accumulate([pair, 1, MPI.DOUBLE_INT], 0, [0, 1, MPI.DOUBLE_INT], MPI.MAXLOC)
    win.Fence(MPI.MODE_NOSUCCEED)
    if ring.rank == 0:
        found = bytes(win.tomemory())
        last = (ring.size - 1) // 2
        check("greatest", array("d", found[:8])[0], last)
        check("its rank", array("i", found[8:12])[0], 2 * last)
    win.Free()


def dynamic(ring):
    memory = array("l", [0] * 4)
    win = MPI.Win.Create_dynamic(comm=ring.comm)
    win.Attach(memory)
    at = ring.comm.sendrecv(MPI.Get_address(memory), dest=ring.left, source=ring.right)
    win.Fence()
    win.Put(longs(7 + ring.rank), ring.right, at + 8)
    win.Fence()
    check("put into attached memory", memory[1], 7 + ring.left)
    win.Detach(memory)
    win.Free()


def main():
    everyone = Ring(WORLD)
    node = Ring(WORLD.Split_type(MPI.COMM_TYPE_SHARED))
    own = array("l", [0] * 8)
    use(everyone, MPI.Win.Create(own, 8, comm=WORLD), lambda: own)
    of_memory(everyone, MPI.Win.Allocate(64, 8, comm=WORLD))
    shared(node)
    pairs(everyone)
    dynamic(everyone)
    with open(__file__, encoding="utf-8") as file:
        text = file.read()
    calls = [name for name in dir(MPI.Win) if not name.startswith("_") and callable(getattr(MPI.Win, name))]
    check("calls that are not used", [name for name in calls if not re.search(rf"\.{name}\b", text)], [])
    all_wrong = WORLD.allreduce(wrong)
    if WORLD.rank == 0:
        print(f"python: {len(calls)} calls, {WORLD.size} ranks, {all_wrong} wrong")


main()
