"""Communicators, their calls, and runs that were started."""
from __future__ import annotations

import ctypes
import functools
import pickle
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _library as tf
from ._arrays import address, array, combined, moved

_lib = tf.lib
_NS = 1_000_000_000
_SLICE = _NS // 10  # of waits, after which Python looks at signals


class Error(RuntimeError):
    """A call has failed. The text says why, and which rank did it.

    recoverable: the error comes from another rank, and the living can go on by Comm.shrink.
    """

    def __init__(self, text: str, recoverable: bool = False) -> None:
        super().__init__(text)
        self.recoverable = recoverable


def check(status: int) -> None:
    """Raises the library's last error of this thread, unless status is 0."""
    if status:
        recoverable = bool(_lib.tf_recoverable())
        raise Error(_lib.tf_error().decode(errors="replace"), recoverable)


class Op:
    """An operation that combines elements: SUM, PROD, MIN, MAX, AVERAGE, BAND, BOR, BXOR, LAND, LOR, LXOR."""

    def __init__(self, number: int, name: str, function: Callable[[Any, Any], Any]) -> None:
        self.number, self.name, self.function = number, name, function

    def __repr__(self) -> str:
        return f"tierflow.{self.name}"

    def __call__(self, a: Any, b: Any) -> Any:
        return self.function(a, b)


SUM = Op(tf.SUM, "SUM", lambda a, b: a + b)
PROD = Op(tf.PROD, "PROD", lambda a, b: a * b)
MIN = Op(tf.MIN, "MIN", lambda a, b: b if b < a else a)
MAX = Op(tf.MAX, "MAX", lambda a, b: b if b > a else a)
BAND = Op(tf.BAND, "BAND", lambda a, b: a & b)
BOR = Op(tf.BOR, "BOR", lambda a, b: a | b)
BXOR = Op(tf.BXOR, "BXOR", lambda a, b: a ^ b)
LAND = Op(tf.LAND, "LAND", lambda a, b: bool(a) and bool(b))
LOR = Op(tf.LOR, "LOR", lambda a, b: bool(a) or bool(b))
LXOR = Op(tf.LXOR, "LXOR", lambda a, b: bool(a) != bool(b))
AVERAGE = Op(tf.AVERAGE, "AVERAGE", lambda a, b: a + b)  # divided at the end


class _InPlace:
    def __repr__(self) -> str:
        return "tierflow.IN_PLACE"


IN_PLACE = _InPlace()
"""In the place of send: this rank's data is in recv already, in the place where the result has it."""

ANY = tf.ANY
"""The source of a receive from any rank."""


class Status(NamedTuple):
    """What a receive has got."""

    source: int
    """The sender's rank."""
    count: int
    """Elements."""


def _limit(timeout: float | None) -> int:
    """A timeout in ns; None: 0, no limit but the job's."""
    if timeout is None:
        return 0
    ns = int(timeout * _NS)
    if ns <= 0:
        raise ValueError(f"timeout {timeout}: it must be more than 0 seconds, or None")
    return ns


class Run:
    """A call that was started, and goes on by itself. Its buffers must not be touched before it has ended.

    Each one must be waited for.
    """

    def __init__(self, handle: ctypes.c_void_p, result: Any, keep: Any, arrived: tf.Arrived | None = None, unit: int = 1) -> None:
        self._handle: ctypes.c_void_p | None = handle
        self._result, self._keep, self._arrived, self._unit = result, keep, arrived, unit
        self._error: Error | None = None
        _going.add(self)  # its buffers stay where they are, even if nobody else has it

    def _end(self, status: int, done: bool) -> bool:
        if status or done:
            self._handle = None
            _going.discard(self)
            self._keep = None
            if self._arrived is not None and not status:
                self._result = Status(self._arrived.source, self._arrived.count // self._unit)
            try:
                check(status)
            except Error as e:
                self._error = e
        if self._error is not None:
            raise self._error
        return self._handle is None

    def done(self) -> bool:
        """Reports whether it has ended. If it has failed that is an Error."""
        if self._handle is None:
            return self._end(0, False)
        done = ctypes.c_int()
        return self._end(_lib.tf_test(self._handle, done), bool(done.value))

    def wait(self, timeout: float | None = None) -> Any:
        """Waits until it has ended, and returns its result: the array received into, or a Status.

        After timeout seconds it is a TimeoutError; the call goes on then, and wait may be called again.
        """
        left = _limit(timeout)
        while self._handle is not None:
            part = min(left, _SLICE) if left else _SLICE
            done = ctypes.c_int()
            if self._end(_lib.tf_wait_for(self._handle, part, done), bool(done.value)):
                break
            if left and (left := left - part) <= 0:
                raise TimeoutError(f"it goes on after {timeout} s")
        if self._error is not None:
            raise self._error
        return self._result


_going: set[Run] = set()


class _Interrupt:
    """Ends the main thread's call at Ctrl-C: the library doesn't look at signals.

    A byte comes for each signal. If Python's own handler has SIGINT, and the call goes on for a moment, it breaks the
    communicator; the call returns then, and Python raises KeyboardInterrupt.
    """

    patience = 0.3  # seconds

    def __init__(self) -> None:
        self.inside: Any = None  # handle of the communicator in whose call the main thread is
        self.calls = 0
        if threading.current_thread() is not threading.main_thread():
            return
        self.reader, self.writer = socket.socketpair()
        self.writer.setblocking(False)
        before = signal.set_wakeup_fd(self.writer.fileno(), warn_on_full_buffer=False)
        if before != -1:  # somebody else's, such as asyncio's
            signal.set_wakeup_fd(before)
            return
        threading.Thread(target=self.watch, name="tierflow: Ctrl-C", daemon=True).start()

    def watch(self) -> None:
        while True:
            for number in self.reader.recv(64):
                calls = self.calls
                if number != signal.SIGINT or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
                    continue
                threading.Event().wait(self.patience)
                handle = self.inside
                if handle is not None and calls == self.calls:
                    _lib.tf_abort(handle, b"interrupted by Ctrl-C")


interrupt: _Interrupt | None = None
_main = threading.main_thread().ident


class Comm:
    """Some ranks of the job, which call the same methods in the same order.

    Methods with a capital letter take arrays, and are as fast as the network. Those in lower case take any object that
    pickle takes. timeout is in seconds: a call that it ends breaks the communicator on all ranks, and the error says which
    ranks it waited for. A communicator is for one thread at a time; dup makes another one.
    """

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle: ctypes.c_void_p | None = handle
        self.rank: int = _lib.tf_rank(handle)
        """This rank's number, from 0."""
        self.size: int = _lib.tf_size(handle)
        """The number of ranks."""
        self.nodes: int = _lib.tf_nodes(handle)
        """The number of nodes that they are on."""
        self._requests: dict[tuple[int, ...], tf.Request] = {}

    def __repr__(self) -> str:
        return f"<tierflow.Comm: rank {self.rank} of {self.size}>"

    def __enter__(self) -> Comm:
        return self

    def __exit__(self, kind: Any, e: Any, _: Any) -> None:
        if e is not None:
            self.abort(f"{kind.__name__}: {e}")
        self.close()

    def Get_rank(self) -> int:
        """The rank, as mpi4py has it."""
        return self.rank

    def Get_size(self) -> int:
        """The size, as mpi4py has it."""
        return self.size

    # calls

    def _opened(self) -> ctypes.c_void_p:
        if self._handle is None:
            raise Error("the communicator is closed")
        return self._handle

    def _request(self, coll: int, kind: int, op: int, root: int, in_place: bool, count: int, counts: Any) -> tf.Request:
        if counts is not None:
            r = tf.Request(coll, kind, op, in_place, root, count, counts.ctypes.data)
            r.keep = counts
            return r
        key = (coll, kind, op, root, in_place, count)
        r = self._requests.get(key)
        if r is None:
            if len(self._requests) > 1000:
                self._requests.clear()
            if not 0 <= root < self.size:
                raise ValueError(f"root {root}; ranks are 0 to {self.size - 1}")
            r = self._requests[key] = tf.Request(coll, kind, op, in_place, root, count, None)
        return r

    def _do(self, r: tf.Request, send: np.ndarray | None, recv: np.ndarray | None, result: Any, timeout: float | None, start: bool) -> Any:
        handle = self._opened()
        at = [None if a is None else address(a) for a in (send, recv)]
        if start:
            run = ctypes.c_void_p()
            check(_lib.tf_start(handle, ctypes.byref(r), at[0], at[1], ctypes.byref(run)))
            return Run(run, result, (send, recv, r))
        self._blocking(lambda: _lib.tf_call(handle, ctypes.byref(r), at[0], at[1]) if timeout is None
                       else _lib.tf_call_within(handle, ctypes.byref(r), at[0], at[1], _limit(timeout)))
        return result

    def _blocking(self, call: Callable[[], int]) -> None:
        """Makes a call that may wait. Ctrl-C ends it, see _Interrupt."""
        watched = interrupt is not None and threading.get_ident() == _main
        if watched:
            interrupt.calls += 1
            interrupt.inside = self._handle
        try:
            status = call()
        finally:
            if watched:
                interrupt.inside = None
        check(status)

    def _reduction(self, coll: int, send: Any, recv: Any, op: Op, root: int, timeout: float | None, start: bool) -> Any:
        name = tf.NAMES[coll]
        if isinstance(recv, Op):  # Allreduce(a, SUM)
            recv, op = None, recv
        if not isinstance(op, Op):
            raise TypeError(f"{name}: op {op!r}; allowed are tierflow.SUM, PROD, MIN, MAX, AVERAGE, BAND, BOR, BXOR, LAND, LOR and LXOR")
        if recv is None and send is not IN_PLACE and coll in (tf.ALLREDUCE, tf.SCAN, tf.EXSCAN):
            send, recv = IN_PLACE, send
        receives = coll != tf.REDUCE or self.rank == root
        if send is IN_PLACE and not receives:
            raise ValueError(f"{name}: IN_PLACE is for rank {root}, which gets the result")
        s = None if send is IN_PLACE else array(send, f"{name}: send")
        if receives and recv is None:
            if s is None:
                raise ValueError(f"{name}: IN_PLACE, and no array")
            recv = np.empty(self._block_shape(s, name) if coll == tf.REDUCE_SCATTER else s.shape, s.dtype)
        d = array(recv, name if s is None else f"{name}: recv", write=True) if receives else None
        a = d if s is None else s
        count = a.size
        if coll == tf.REDUCE_SCATTER:
            count = self._share(a, name)
        if s is not None and d is not None:
            self._same(s, d, name)
            if d.size != count:
                raise ValueError(f"{name}: recv has {d.size} elements; it must have {count}")
        r = self._request(coll, combined(a, op.number, name), op.number, root, s is None, count, None)
        return self._do(r, s, d, recv if receives else None, timeout, start)

    def _share(self, a: np.ndarray, name: str) -> int:
        """The elements of one rank's block."""
        if a.size % self.size:
            raise ValueError(f"{name}: {a.size} elements for {self.size} ranks; blocks are of equal size")
        return a.size // self.size

    def _block_shape(self, a: np.ndarray, name: str) -> tuple[int, ...]:
        if a.ndim and a.shape[0] % self.size == 0:
            return (a.shape[0] // self.size, *a.shape[1:])
        return (self._share(a, name),)

    @staticmethod
    def _same(a: np.ndarray, b: np.ndarray, name: str) -> None:
        if a.dtype != b.dtype:
            raise TypeError(f"{name}: send is of {a.dtype}, recv of {b.dtype}; they must be the same")

    def Allreduce(self, send: Any, recv: Any = None, op: Op = SUM, timeout: float | None = None) -> Any:
        """Combines the arrays of all ranks, element by element, and returns recv with the result, on all ranks.

        Without recv send is overwritten. Allreduce(IN_PLACE, a) does the same.
        """
        return self._reduction(tf.ALLREDUCE, send, recv, op, 0, timeout, False)

    def Iallreduce(self, send: Any, recv: Any = None, op: Op = SUM) -> Run:
        """Starts an Allreduce."""
        return self._reduction(tf.ALLREDUCE, send, recv, op, 0, None, True)

    def Reduce(self, send: Any, recv: Any = None, op: Op = SUM, root: int = 0, timeout: float | None = None) -> Any:
        """Combines the arrays of all ranks on root, which gets recv, or a new array; the others get None."""
        return self._reduction(tf.REDUCE, send, recv, op, root, timeout, False)

    def Ireduce(self, send: Any, recv: Any = None, op: Op = SUM, root: int = 0) -> Run:
        """Starts a Reduce."""
        return self._reduction(tf.REDUCE, send, recv, op, root, None, True)

    def Reduce_scatter_block(self, send: Any, recv: Any = None, op: Op = SUM, timeout: float | None = None) -> Any:
        """Combines the arrays of all ranks; rank r gets the r-th of as many equal blocks as there are ranks."""
        return self._reduction(tf.REDUCE_SCATTER, send, recv, op, 0, timeout, False)

    def Ireduce_scatter_block(self, send: Any, recv: Any = None, op: Op = SUM) -> Run:
        """Starts a Reduce_scatter_block."""
        return self._reduction(tf.REDUCE_SCATTER, send, recv, op, 0, None, True)

    def Scan(self, send: Any, recv: Any = None, op: Op = SUM, timeout: float | None = None) -> Any:
        """Combines the arrays of ranks 0 to this one. Without recv send is overwritten."""
        return self._reduction(tf.SCAN, send, recv, op, 0, timeout, False)

    def Exscan(self, send: Any, recv: Any = None, op: Op = SUM, timeout: float | None = None) -> Any:
        """Combines the arrays of the ranks before this one. Rank 0's result is left as it was."""
        return self._reduction(tf.EXSCAN, send, recv, op, 0, timeout, False)

    def Bcast(self, a: Any, root: int = 0, timeout: float | None = None) -> Any:
        """Gives all ranks root's array, and returns it. Every rank gives one of the same size and type."""
        return self._bcast(a, root, timeout, False)

    def Ibcast(self, a: Any, root: int = 0) -> Run:
        """Starts a Bcast."""
        return self._bcast(a, root, None, True)

    def _bcast(self, a: Any, root: int, timeout: float | None, start: bool) -> Any:
        buf = array(a, "bcast", write=self.rank != root)
        kind, unit = moved(buf, "bcast")
        return self._do(self._request(tf.BCAST, kind, 0, root, False, buf.size * unit, None), None, buf, a, timeout, start)

    def Barrier(self, timeout: float | None = None) -> None:
        """Returns when all ranks have called it."""
        self._do(self._request(tf.BARRIER, tf.U8, 0, 0, False, 0, None), None, None, None, timeout, False)

    barrier = Barrier

    def Allgather(self, send: Any, recv: Any = None, timeout: float | None = None) -> Any:
        """Gives all ranks the arrays of each, one behind the other by rank. A new recv has the shape (size, …) of send.

        With IN_PLACE this rank's data is in its place in recv.
        """
        return self._blocks(tf.ALLGATHER, send, recv, 0, timeout, False)

    def Iallgather(self, send: Any, recv: Any = None) -> Run:
        """Starts an Allgather."""
        return self._blocks(tf.ALLGATHER, send, recv, 0, None, True)

    def Gather(self, send: Any, recv: Any = None, root: int = 0, timeout: float | None = None) -> Any:
        """Gives root the arrays of all ranks, as Allgather does; the others get None."""
        return self._blocks(tf.GATHER, send, recv, root, timeout, False)

    def Igather(self, send: Any, recv: Any = None, root: int = 0) -> Run:
        """Starts a Gather."""
        return self._blocks(tf.GATHER, send, recv, root, None, True)

    def Scatter(self, send: Any, recv: Any, root: int = 0, timeout: float | None = None) -> Any:
        """Gives each rank its block of root's send in recv. The others' send is not looked at.

        On root recv may be IN_PLACE: its block stays where it is.
        """
        return self._blocks(tf.SCATTER, send, recv, root, timeout, False)

    def Iscatter(self, send: Any, recv: Any, root: int = 0) -> Run:
        """Starts a Scatter."""
        return self._blocks(tf.SCATTER, send, recv, root, None, True)

    def Alltoall(self, send: Any, recv: Any = None, timeout: float | None = None) -> Any:
        """Gives each rank its block of the arrays of all. A new recv has send's shape. With IN_PLACE recv is both."""
        return self._blocks(tf.ALLTOALL, send, recv, 0, timeout, False)

    def Ialltoall(self, send: Any, recv: Any = None) -> Run:
        """Starts an Alltoall."""
        return self._blocks(tf.ALLTOALL, send, recv, 0, None, True)

    def _blocks(self, coll: int, send: Any, recv: Any, root: int, timeout: float | None, start: bool) -> Any:
        name, me = tf.NAMES[coll], self.rank
        gives = coll != tf.SCATTER or me == root
        gets = coll != tf.GATHER or me == root
        in_place = send is IN_PLACE or recv is IN_PLACE
        if in_place and (not gives or not gets or (recv is IN_PLACE) != (coll == tf.SCATTER)):
            raise ValueError(f"{name}: IN_PLACE is in the place of the {'root' if coll != tf.ALLGATHER else 'rank'}'s own block alone")
        s = array(send, f"{name}: send") if gives and send is not IN_PLACE else None
        if gets and recv is None:
            if s is None:
                raise ValueError(f"{name}: no array to receive into")
            recv = np.empty(s.shape if coll == tf.ALLTOALL else (self.size, *s.shape), s.dtype)
        d = array(recv, f"{name}: recv", write=True) if gets and recv is not IN_PLACE else None
        if s is not None and d is not None:
            self._same(s, d, name)
        many, one = (s, d) if coll == tf.SCATTER else (d, s)  # all blocks, and one
        if coll == tf.ALLTOALL:
            if s is not None and s.size != d.size:
                raise ValueError(f"{name}: {s.size} elements to send, {d.size} to receive; they must be equal")
            one = None
        count = one.size if many is None else self._share(many, name)
        if one is not None and one.size != count:
            raise ValueError(f"{name}: {one.size} elements in a block, {many.size} in all; for {self.size} ranks it must be {one.size * self.size}")
        kind, unit = moved(s if s is not None else d, name)
        r = self._request(coll, kind, 0, root, in_place, count * unit, None)
        return self._do(r, s, d, recv if gets else None, timeout, start)

    # blocks that differ

    def Allgatherv(self, send: Any, counts: Sequence[int], recv: Any = None, timeout: float | None = None) -> Any:
        """Allgather of counts[r] elements from rank r; counts are the same on all ranks. A new recv has one dimension."""
        return self._uneven(tf.ALLGATHER, send, counts, recv, 0, timeout)

    def Gatherv(self, send: Any, counts: Sequence[int], recv: Any = None, root: int = 0, timeout: float | None = None) -> Any:
        """Gather of counts[r] elements from rank r; counts are the same on all ranks."""
        return self._uneven(tf.GATHER, send, counts, recv, root, timeout)

    def Scatterv(self, send: Any, counts: Sequence[int], recv: Any, root: int = 0, timeout: float | None = None) -> Any:
        """Scatter of counts[r] elements to rank r; counts are the same on all ranks."""
        return self._uneven(tf.SCATTER, send, counts, recv, root, timeout)

    def _uneven(self, coll: int, send: Any, counts: Sequence[int], recv: Any, root: int, timeout: float | None) -> Any:
        name, me = tf.NAMES[coll] + "v", self.rank
        c = np.ascontiguousarray(counts, np.int64)
        if c.shape != (self.size,) or (c < 0).any():
            raise ValueError(f"{name}: counts {list(counts)}; it takes one from 0 on for each of {self.size} ranks")
        gives = coll != tf.SCATTER or me == root
        gets = coll != tf.GATHER or me == root
        s = array(send, f"{name}: send") if gives else None
        if gets and recv is None:
            recv = np.empty(int(c.sum()), s.dtype)
        d = array(recv, f"{name}: recv", write=True) if gets else None
        if s is not None and d is not None:
            self._same(s, d, name)
        for a, what, all_blocks in (s, "send", coll == tf.SCATTER), (d, "recv", coll != tf.SCATTER):
            want = int(c.sum() if all_blocks else c[me])
            if a is not None and a.size != want:
                raise ValueError(f"{name}: {what} has {a.size} elements; with counts {c.tolist()} it must have {want}")
        kind, unit = moved(s if s is not None else d, name)
        r = self._request(coll, kind, 0, root, False, 0, c * unit)
        return self._do(r, s, d, recv if gets else None, timeout, False)

    def Alltoallv(self, send: Any, send_counts: Sequence[int], recv: Any, recv_counts: Sequence[int]) -> Any:
        """Gives rank r send_counts[r] elements, one block behind the other in send, and gets recv_counts[r] from it."""
        s, d = array(send, "alltoallv: send"), array(recv, "alltoallv: recv", write=True)
        self._same(s, d, "alltoallv")
        moved(s, "alltoallv")
        give, get = self._list(s, send_counts, "send"), self._list(d, recv_counts, "recv")
        self._exchange(tf.ALLTOALL, 0, give, get)
        return recv

    def _list(self, a: np.ndarray, counts: Sequence[int], what: str) -> Any:
        if len(counts) != self.size or min(counts) < 0 or sum(counts) != a.size:
            raise ValueError(f"alltoallv: {what} has {a.size} elements, in blocks of {list(counts)}; it takes a number from 0 on for each of {self.size} ranks")
        return self._list_of(address(a), [n * a.itemsize for n in counts])

    def _list_of(self, at: int, sizes: Sequence[int]) -> Any:
        blocks = (tf.Block * self.size)()
        for b, n in zip(blocks, sizes):
            b.at, b.bytes = at, n
            at += n
        return blocks

    def _exchange(self, coll: int, root: int, give: Any, get: Any) -> None:
        self._blocking(lambda: _lib.tf_exchange(self._opened(), coll, root, give, get, None))

    # messages

    def Send(self, a: Any, dest: int, tag: int = 0, timeout: float | None = None) -> None:
        """Sends an array to a rank, and returns when it may be changed again."""
        s = array(a, "send")
        kind, unit = moved(s, "send")
        self._blocking(lambda: _lib.tf_send(self._opened(), dest, tag, kind, address(s), s.size * unit, _limit(timeout)))

    def Recv(self, a: Any, source: int = ANY, tag: int = 0, timeout: float | None = None) -> Status:
        """Receives at most as many elements as a has, from a rank or from ANY. A longer message, or one of another type, is an Error."""
        d = array(a, "recv", write=True)
        kind, unit = moved(d, "recv")
        got = tf.Arrived()
        self._blocking(lambda: _lib.tf_recv(self._opened(), source, tag, kind, address(d), d.size * unit, _limit(timeout), got))
        return Status(got.source, got.count // unit)

    def Isend(self, a: Any, dest: int, tag: int = 0) -> Run:
        """Starts a Send."""
        s, run = array(a, "send"), ctypes.c_void_p()
        kind, unit = moved(s, "send")
        check(_lib.tf_start_send(self._opened(), dest, tag, kind, address(s), s.size * unit, ctypes.byref(run)))
        return Run(run, None, s)

    def Irecv(self, a: Any, source: int = ANY, tag: int = 0) -> Run:
        """Starts a Recv. wait returns its Status."""
        d, run, got = array(a, "recv", write=True), ctypes.c_void_p(), tf.Arrived()
        kind, unit = moved(d, "recv")
        check(_lib.tf_start_recv(self._opened(), source, tag, kind, address(d), d.size * unit, got, ctypes.byref(run)))
        return Run(run, None, d, got, unit)

    def Sendrecv(self, a: Any, dest: int, recv: Any, source: int = ANY, sendtag: int = 0, recvtag: int = 0, timeout: float | None = None) -> Status:
        """Sends one array and receives another at the same time."""
        run = self.Irecv(recv, source, recvtag)
        self.Send(a, dest, sendtag, timeout)
        return run.wait(timeout)

    # objects

    def bcast(self, obj: Any = None, root: int = 0) -> Any:
        """Returns root's object on all ranks. It is pickled: bcast only among ranks that trust each other."""
        data = pickle.dumps(obj, pickle.HIGHEST_PROTOCOL) if self.rank == root else b""
        size = self.Bcast(np.array([len(data)]), root)
        room = np.frombuffer(bytearray(data) if self.rank == root else bytearray(int(size[0])), np.uint8)
        self.Bcast(room, root)
        return obj if self.rank == root else pickle.loads(room)

    def allgather(self, obj: Any) -> list[Any]:
        """Returns the objects of all ranks."""
        data = np.frombuffer(pickle.dumps(obj, pickle.HIGHEST_PROTOCOL), np.uint8)
        sizes = self.Allgather(np.array([data.size])).ravel()
        return self._unpickled(self.Allgatherv(data, sizes), sizes)

    def gather(self, obj: Any, root: int = 0) -> list[Any] | None:
        """Returns the objects of all ranks on root, None elsewhere."""
        data = np.frombuffer(pickle.dumps(obj, pickle.HIGHEST_PROTOCOL), np.uint8)
        sizes = self.Allgather(np.array([data.size])).ravel()
        got = self.Gatherv(data, sizes, root=root)
        return None if got is None else self._unpickled(got, sizes)

    def scatter(self, objs: Iterable[Any] | None = None, root: int = 0) -> Any:
        """Gives each rank its item of root's list."""
        parts: list[bytes] = []
        if self.rank == root:
            parts = [pickle.dumps(o, pickle.HIGHEST_PROTOCOL) for o in self._items(objs, "scatter")]
        size = self.Scatter(np.array([len(p) for p in parts]) if parts else None, np.empty(1, np.int64), root)
        data, room = bytearray(b"".join(parts)), bytearray(int(size[0]))
        give = self._list_of(_begin(data), [len(p) for p in parts]) if parts else None
        get = self._list_of(0, [0] * self.size)
        get[root].at, get[root].bytes = _begin(room), len(room)
        self._exchange(tf.SCATTER, root, give, get)
        return pickle.loads(room)

    def alltoall(self, objs: Iterable[Any]) -> list[Any]:
        """Gives each rank its item of this one's list, and returns those of all ranks for this one."""
        parts = [pickle.dumps(o, pickle.HIGHEST_PROTOCOL) for o in self._items(objs, "alltoall")]
        sizes = self.Alltoall(np.array([len(p) for p in parts]))
        data, room = bytearray(b"".join(parts)), bytearray(int(sizes.sum()))
        self._exchange(tf.ALLTOALL, 0, self._list_of(_begin(data), [len(p) for p in parts]), self._list_of(_begin(room), sizes.tolist()))
        return self._unpickled(np.frombuffer(room, np.uint8), sizes)

    def reduce(self, obj: Any, op: Callable[[Any, Any], Any] = SUM, root: int = 0) -> Any:
        """Combines the objects of all ranks in their order, on root; op is an Op or any function of two. Elsewhere it is None."""
        all_objects = self.gather(obj, root)
        return None if all_objects is None else self._reduced(all_objects, op)

    def allreduce(self, obj: Any, op: Callable[[Any, Any], Any] = SUM) -> Any:
        """reduce, with the result on all ranks. op must give the same on all of them."""
        return self._reduced(self.allgather(obj), op)

    def send(self, obj: Any, dest: int, tag: int = 0, timeout: float | None = None) -> None:
        """Sends an object, for recv: as its length, and then what pickle makes of it."""
        data = pickle.dumps(obj, pickle.HIGHEST_PROTOCOL)
        self.Send(np.array([len(data)]), dest, tag, timeout)
        self.Send(np.frombuffer(data, np.uint8), dest, tag, timeout)

    def recv(self, source: int = ANY, tag: int = 0, timeout: float | None = None) -> Any:
        """Receives an object from a rank or from ANY. It is unpickled: only among ranks that trust each other."""
        size = np.empty(1, np.int64)
        source = self.Recv(size, source, tag, timeout).source
        room = np.empty(int(size[0]), np.uint8)
        self.Recv(room, source, tag, timeout)
        return pickle.loads(room)

    def _reduced(self, objs: list[Any], op: Callable[[Any, Any], Any]) -> Any:
        result = functools.reduce(op, objs)
        return result / self.size if op is AVERAGE else result

    def _items(self, objs: Iterable[Any] | None, name: str) -> list[Any]:
        items = list(objs or ())
        if len(items) != self.size:
            raise ValueError(f"{name}: {len(items)} objects; it takes one for each of {self.size} ranks")
        return items

    def _unpickled(self, data: np.ndarray, sizes: np.ndarray) -> list[Any]:
        ends = np.cumsum(sizes)
        return [pickle.loads(data[end - n:end]) for n, end in zip(sizes, ends)]

    # communicators and failures

    def split(self, color: int | None, key: int = 0) -> Comm | None:
        """Makes a communicator of the ranks with the same color, by key and then by rank. color None: this rank wants none."""
        drawn = ctypes.c_uint64()
        check(_lib.tf_draw(self._opened(), drawn))
        wants = -1 if color is None else int(color)
        if color is not None and wants < 0:
            raise ValueError(f"split: color {color}; allowed are numbers from 0 on, and None")
        said = self.Allgather(np.array([wants, key, ctypes.c_int64(drawn.value).value]))
        if color is None:
            return None
        members = sorted((r for r in range(self.size) if said[r, 0] == wants), key=lambda r: (said[r, 1], r))
        ranks = (ctypes.c_int * len(members))(*members)
        made = ctypes.c_void_p()
        check(_lib.tf_sub(self._opened(), int(said[members[0], 2]) % (1 << 64), ranks, len(members), ctypes.byref(made)))
        return Comm(made)

    def dup(self) -> Comm:
        """Makes a communicator of the same ranks, such as for another thread."""
        made = self.split(0, self.rank)
        assert made is not None
        return made

    Split, Dup = split, dup

    def agree(self, ok: bool, timeout: float | None = None) -> bool:
        """Says whether all living ranks say ok, the same on all of them. The communicator may be broken."""
        every = ctypes.c_int()
        self._blocking(lambda: _lib.tf_agree(self._opened(), bool(ok), _limit(timeout), every))
        return bool(every.value)

    def shrink(self, timeout: float | None = None) -> Comm:
        """Makes a communicator of the living ranks after a recoverable Error. This one is broken then; close it."""
        made = ctypes.c_void_p()
        self._blocking(lambda: _lib.tf_shrink(self._opened(), _limit(timeout), ctypes.byref(made), None))
        return Comm(made)

    def abort(self, reason: str) -> None:
        """Breaks the communicator on all ranks: their calls fail with the reason. It waits for nobody."""
        _lib.tf_abort(self._opened(), reason.encode()[:500])

    def explain(self, name: str, a: Any, op: Op = SUM, root: int = 0) -> str:
        """The plan of a call on arrays like a, who chose it and why. name is allreduce, bcast, …."""
        coll = tf.NAMES.index(name) if name in tf.NAMES[1:] else 0
        if not coll:
            raise ValueError(f"explain: {name!r}; allowed are {', '.join(tf.NAMES[1:])}")
        x = array(a, "explain")
        reduces = coll in (tf.REDUCE, tf.ALLREDUCE, tf.REDUCE_SCATTER, tf.SCAN, tf.EXSCAN)
        kind, unit = (combined(x, op.number, name), 1) if reduces else moved(x, name)
        text = ctypes.create_string_buffer(64 << 10)
        check(_lib.tf_explain(self._opened(), ctypes.byref(tf.Request(coll, kind, op.number, 0, root, x.size * unit, None)), text, len(text)))
        return text.value.decode()

    def close(self) -> None:
        """Leaves the communicator. Closing that of all ranks leaves the job."""
        handle, self._handle = self._handle, None
        if handle is not None:
            check(_lib.tf_close(handle))


def _begin(b: bytearray) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(b)) if b else 0
