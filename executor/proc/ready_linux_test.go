package proc

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor/internal/tcp"
	"github.com/tierflow/tierflow/executor/wire/wiretest"
)

// Of several connections those are found that have something to read.
func TestReadiness(t *testing.T) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(epoll)
	var r readiness
	var links []*tcp.Link
	var peers []int
	for i := range askFrom + 1 {
		mine, theirs := wiretest.Sockets(t)
		defer unix.Close(mine)
		defer unix.Close(theirs)
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, mine, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(mine)}); err != nil {
			t.Fatal(err)
		}
		if _, ok := r.find(epoll); ok != (i >= askFrom) {
			t.Fatalf("with %d connections asked: %v", i, ok)
		}
		links, peers = append(links, tcp.NewLink(1, 4096)), append(peers, theirs)
		r.add(mine, links[i])
	}
	if some, ok := r.find(epoll); !ok || len(some) > 0 {
		t.Fatalf("found %v, %v with nothing to read", some, ok)
	}
	if _, err := unix.Write(peers[2], []byte("a")); err != nil {
		t.Fatal(err)
	}
	some, ok := r.find(epoll)
	if !ok || len(some) != 1 || r.of(&some[0]) != links[2] {
		t.Fatalf("found %v, %v; want the third connection", some, ok)
	}
	if r.of(&unix.EpollEvent{Fd: 1 << 20}) != nil {
		t.Fatal("a link for a descriptor that nobody has")
	}
	if _, ok := r.find(-1); ok {
		t.Fatal("found without an epoll")
	}
}
