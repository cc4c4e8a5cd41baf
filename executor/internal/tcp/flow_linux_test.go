package tcp

import (
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor/wire"
)

// The system counts what leaves through a connection, and nothing of other links.
func TestFlow(t *testing.T) {
	if f, known := NewLink(1, 4096).Flow(); known {
		t.Errorf("%+v of no connection", f)
	}
	mine, _ := sockets(t, 0)
	near := NewLink(1, 4096)
	near.Attach(mine)
	if f, known := near.Flow(); known {
		t.Errorf("%+v of a unix socket", f)
	}
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	defer listen.Close()
	dialled, err := net.Dial("tcp", listen.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	file, err := dialled.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	accepted, err := listen.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	l := NewLink(1, 4096)
	fd, err := unix.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	dialled.Close()
	defer l.Close()
	l.Attach(fd)
	read := make([]byte, 4096+100)
	for t.Context().Err() == nil { // until what was sent has been acknowledged
		l.Post(&wire.Message{}, make([]byte, 4096))
		for l.IsBusy() {
			l.Flush(nil)
		}
		if _, err := io.ReadAtLeast(accepted, read, 4096); err != nil {
			t.Fatal(err)
		}
		if f, known := l.Flow(); known && f.Rate > 0 && f.Busy > 0 {
			if l.Lapses() != 0 || near.Lapses() != 0 || NewLink(1, 4096).Lapses() != 0 {
				t.Error("packets were sent again")
			}
			return
		}
	}
}
