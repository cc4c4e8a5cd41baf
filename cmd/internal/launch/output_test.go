package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPrinter(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for _, test := range []struct {
		name   string
		raw    bool
		pieces []string // an empty one ends the stream
		want   string
	}{
		{"lines", false, []string{"a\nb", "c\n\n"}, "[3] a\n[3] bc\n[3] \n"},
		{"partial", false, []string{"a\nb", ""}, "[3] a\n[3] b\n"},
		{"nothing", false, []string{""}, ""},
		{"exactly full", false, []string{long, "\n"}, "[3] " + long + "\n"},
		{"too long", false, []string{long + "yy\nz\n"}, "[3] " + long + "\n[3] yy\n[3] z\n"},
		{"progress", false, []string{"10%\r20", "%\r", "\nto\r\n", "\r30%\r", "40%", ""}, "[3] 10%\n[3] 20%\r\n[3] to\r\n[3] 30%\n[3] 40%\n"},
		{"exactly full, from Windows", false, []string{long + "\r", "\n"}, "[3] " + long + "\r\n"},
		{"raw", true, []string{"a\nb", "c", ""}, "a\nbc"},
	} {
		var out bytes.Buffer
		p := &printer{dest: [streams]io.Writer{&out, io.Discard}}
		s := &source{label: "[3] ", raw: test.raw}
		for _, piece := range test.pieces {
			if err := p.print(s, streamOut, []byte(piece)); err != nil {
				t.Error(err)
			}
		}
		if out.String() != test.want {
			t.Errorf("%s: %.200q, want %.200q", test.name, out.String(), test.want)
		}
	}
}

// A terminal shows a prompt after 100 ms, and its answer behind it unless another rank has written.
func TestPrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := &printer{dest: [streams]io.Writer{&out, &out}, terminal: [streams]bool{true, true}}
		ranks := []*source{{label: "[0] "}, {label: "[1] "}}
		for _, step := range []struct {
			rank   int
			text   string
			passes time.Duration
			want   string // that is new
		}{
			{0, "name? ", promptTime - 1, ""},
			{1, "", 1, "[0] name? "}, // nothing of rank 1
			{0, "Ada\nage? ", promptTime, "Ada\n[0] age? "},
			{1, "hello\nten: 10%\r", promptTime, "\n[1] hello\n[1] ten: 10%"},
			{0, "36\n", promptTime, "\n[0] 36\n"},
			{1, "20%\r", promptTime, "[1] 20%"},
			{1, "", promptTime, "\n"},
		} {
			before := out.Len()
			if err := p.print(ranks[step.rank], streamOut, []byte(step.text)); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			time.Sleep(step.passes)
			synctest.Wait()
			if got := out.String()[before:]; got != step.want {
				t.Errorf("after %q of rank %d: %q, want %q", step.text, step.rank, got, step.want)
			}
		}
	})
}

func TestTail(t *testing.T) {
	p := &printer{dest: [streams]io.Writer{io.Discard, io.Discard}}
	for _, raw := range []bool{false, true} {
		s := &source{raw: raw}
		for i := range 25 {
			p.print(s, i%2, fmt.Appendf(nil, "%d\n", i))
		}
		p.print(s, streamErr, []byte(strings.Repeat("y", 2*maxTailLine)+"\n"))
		got := strings.Join(s.tail, " ")
		if want := "16 17 18 19 20 21 22 23 24 " + strings.Repeat("y", maxTailLine); got != want {
			t.Errorf("raw %v: %q", raw, got)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestPrinterError(t *testing.T) {
	p := &printer{dest: [streams]io.Writer{brokenWriter{}, io.Discard}}
	if err := p.print(&source{}, streamOut, []byte("a\n")); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("error %v", err)
	}
}
