package executor

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// A letter that waits, or has come a moment ago, is not taken again; others are, and the same one later.
func TestPostbag(t *testing.T) {
	now := time.Now()
	p := &postbag{
		waiting: [][]byte{[]byte("propose")},
		carried: []carriedLetter{{[]byte("start"), now}, {[]byte("vote"), now.Add(-2 * letterRest)}},
	}
	for letter, want := range map[string]bool{"propose": true, "start": true, "vote": false, "decide": false} {
		if got := p.has([]byte(letter)); got != want {
			t.Errorf("%s: %v, want %v", letter, got, want)
		}
	}
}

// lineJob connects to a reader.
type lineJob struct {
	ControlPlane
	made chan net.Conn // the readers' ends
}

func (j *lineJob) Recall(context.Context, levels.Rank, uint8) (net.Conn, error) {
	near, far := net.Pipe()
	j.made <- far
	return near, nil
}

// Letters that follow each other come over one connection, which is closed soon after the last one.
func TestLettersShareALine(t *testing.T) {
	j := &lineJob{made: make(chan net.Conn, 3)}
	c := &control{job: j}
	c.sendLetter(1, []byte("vote"))
	line := <-j.made
	for _, next := range []string{"accepted", "decide", ""} {
		note := make([]byte, 5)
		if _, err := io.ReadFull(line, note); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, line, int64(note[3]-1)); err != nil {
			t.Fatal(err)
		}
		if next != "" {
			c.sendLetter(1, []byte(next))
		}
	}
	if rest, err := io.ReadAll(line); err != nil || !bytes.Equal(rest, nil) {
		t.Errorf("%q, %v behind the last letter", rest, err)
	}
	c.takers.Wait()
	if len(j.made) > 0 {
		t.Error("another connection was made")
	}
}
