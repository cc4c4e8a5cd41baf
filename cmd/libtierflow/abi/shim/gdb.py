# For gdb: a rank of an MPI program that stands in tierflow shows the program's frames.
#
#   gdb -x libtierflow-mpi.so-gdb.py -p PID
#
# Go runs on stacks of its own, and gdb finds no way from these to the program's. So from the first frame in libtierflow.so
# on, the next one shown is the program's, which the shim has noted at its call. Go's frames are left out. It is for x86-64;
# of several threads that call MPI it knows the last caller.
import os
import struct

import gdb
import gdb.unwinder


class FrameID:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Program(gdb.unwinder.Unwinder):
    def __init__(self):
        super().__init__("tierflow-mpi")

    def __call__(self, frame):
        try:
            pc, sp, bp, thread = (frame.read_register(r) for r in ("rip", "rsp", "rbp", "fs_base"))
            file = gdb.solib_name(int(pc) & (1 << 64) - 1)
            if not file or "libtierflow.so" not in os.path.basename(file):
                return None
            noted = int(gdb.execute("info address tierflow_program", to_string=True).split(" at ")[1].split()[0], 16)
            inferior = gdb.selected_inferior()
            at, of = struct.unpack("QQ", inferior.read_memory(noted, 16).tobytes())
            if at == 0 or of != int(thread) & (1 << 64) - 1:
                return None
            rbp, rip = struct.unpack("QQ", inferior.read_memory(at, 16).tobytes())
        except (gdb.error, IndexError, ValueError):  # another processor, or no shim
            return None
        above = frame.create_unwind_info(FrameID(sp, pc))
        for register, value, like in (("rip", rip, pc), ("rsp", at + 16, sp), ("rbp", rbp, bp)):
            above.add_saved_register(register, gdb.Value(value).cast(like.type))
        return above


gdb.unwinder.register_unwinder(None, Program(), replace=True)
