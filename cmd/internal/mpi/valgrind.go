package mpi

import (
	"fmt"
	"strings"
)

// forValgrind ends the name of the file for valgrind that build writes beside the shim.
const forValgrind = ".supp"

// kinds are memcheck's of errors, but for those of arguments of system calls.
const kinds = "Addr1 Addr2 Addr4 Addr8 Addr16 Addr32 Value1 Value2 Value4 Value8 Value16 Value32 Cond Jump"

// arguments are those of Go's system calls, in memcheck's words. It takes no patterns here.
const arguments = `
getrandom(cpu) sendmsg(msg) sendmsg(msg.msg_name) sendmsg(msg.msg_iov) sendmsg(msg.msg_iov[0])
sendmsg(msg.msg_iov[1]) sendmsg(msg.msg_control) recvmsg(msg) recvmsg(msg.msg_name) recvmsg(msg.msg_iov)
recvmsg(msg.msg_iov[0]) recvmsg(msg.msg_control) read(buf) write(buf) writev(vector) writev(vector[...])
readv(vector) readv(vector[...]) pread64(buf) pwrite64(buf) openat(filename) fstat(buf)
newfstatat(file_name) newfstatat(buf) fstatat(file_name) getdents64(dirp) epoll_ctl(event)
epoll_pwait(events) epoll_wait(events) futex(timeout) futex(futex) rt_sigaction(act->sa_handler)
rt_sigaction(act->sa_mask) rt_sigaction(oldact) rt_sigprocmask(set) rt_sigprocmask(oldset) nanosleep(req)
clock_gettime(tp) socketcall.bind(my_addr..sa_data) socketcall.bind(my_addr.sa_family)
socketcall.connect(serv_addr..sa_data) socketcall.connect(serv_addr.sa_family) socketcall.getsockopt(optval)
socketcall.getsockopt(optval_out) socketcall.getsockopt(optlen_in) socketcall.getsockname(name)
socketcall.getsockname(namelen_in) socketcall.getpeername(name) socketcall.setsockopt(optval)
socketcall.accept(addr) socketcall.accept(addrlen_in) socketcall.sendto(msg) socketcall.sendto(to..sa_data)
socketcall.recvfrom(buf) socketcall.socketpair(sv) pipe2(filedes) uname(buf) sched_getaffinity(mask)
sched_setaffinity(mask) process_vm_readv(lvec) process_vm_readv(rvec) process_vm_readv(lvec[...])
process_vm_readv(lvec[0]) memfd_create(uname) eventfd2(count) ioctl(generic) tgkill(tgid) readlinkat(path)
readlinkat(buf) mkdirat(pathname) unlinkat(pathname) renameat(oldpath) renameat(newpath) prlimit64(old_rlim)
prlimit64(new_rlim) timer_create(evp) timer_create(timerid) timer_settime(value) sigaltstack(ss)
sigaltstack(oss) timerfd_settime(new_value)
`

// suppressions returns what lets valgrind's memcheck be silent about Go in libtierflow.so, whose stacks and heap it
// doesn't know.
func suppressions() string {
	var b strings.Builder
	b.WriteString(`# For valgrind's memcheck: it doesn't know the stacks and the heap of Go in libtierflow.so.
#
#   GODEBUG=cpu.rdtscp=off mpirun -n 2 valgrind --suppressions=libtierflow-mpi.so.supp ./prog
#
# On processors without the instruction RDTSCP valgrind tells programs that it is there, and then stops them at it (3.19).
# With this GODEBUG, Go does without.
#
# Buffers that the program gives to tierflow's calls are looked at no more: with TIERFLOW_MPI=off MPI's calls look at them.
`)
	one := func(kind, argument string) {
		fmt.Fprintf(&b, "{\n   libtierflow %s\n   Memcheck:%s\n%s   ...\n   obj:*libtierflow.so*\n}\n", kind, kind, argument)
	}
	for kind := range strings.FieldsSeq(kinds) {
		one(kind, "")
	}
	for argument := range strings.FieldsSeq(arguments) {
		one("Param", "   "+argument+"\n")
	}
	return b.String()
}
