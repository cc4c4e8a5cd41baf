package launch

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFrames(t *testing.T) {
	sent := []frame{
		{Start: &start{Version: 1, Secret: "s", Ranks: []int{0, 2}, Size: 3, Dir: "/", Program: []string{"a b", ""}, Env: []string{"X=\x01"}, Listen: true}},
		{Release: &release{Rendezvous: "1.2.3.4:5"}},
		{Signal: "TERM"},
		{Output: &output{Rank: 2, Stream: streamErr, Bytes: []byte{0, 255, '\n'}}},
		{Exited: &exited{Rank: 2, Status: 137, Signal: 9, Text: "killed"}},
		{Done: true},
	}
	var wire bytes.Buffer
	w := frameWriter{w: &wire}
	for _, f := range sent {
		if err := w.write(f); err != nil {
			t.Fatal(err)
		}
	}
	whole := wire.Bytes()
	r := bufio.NewReader(bytes.NewReader(whole))
	for _, want := range sent {
		got, err := readFrame(r)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("error %v, -want +got:\n%s", err, diff)
		}
	}
	if _, err := readFrame(r); err != io.EOF {
		t.Errorf("at the end: %v, want EOF", err)
	}
	for _, cut := range []int{2, 20} {
		if _, err := readFrame(bufio.NewReader(bytes.NewReader(whole[:cut]))); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d: %v, want unexpected EOF", cut, err)
		}
	}
}

func TestFrameErrors(t *testing.T) {
	for in, want := range map[string]string{
		"Welcome to host a!\n":               `must not print here): "Welcome to host a!\n"`,
		"\x00\x80\x00\x01":                   "not a frame",
		"\x00\x00\x00\x03{}x":                "frame of 3 bytes",
		"\x00\x00\x00\x0e{\"done\":\"yes\"}": "frame of 14 bytes",
		"\x00\x00\x00\x09{}":                 "cut short after 2",
	} {
		if _, err := readFrame(bufio.NewReader(strings.NewReader(in))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", in, err, want)
		}
	}
	big := frame{Output: &output{Bytes: make([]byte, maxFrame)}}
	if err := (&frameWriter{w: io.Discard}).write(big); err == nil {
		t.Error("a frame over the limit was written")
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x0d{\"done\":true}"))
	f.Add([]byte("\x00\x00\x00\x1e{\"output\":{\"rank\":1,\"bytes\":\"\"}}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bufio.NewReader(bytes.NewReader(in))
		for {
			if _, err := readFrame(r); err != nil {
				return
			}
		}
	})
}
