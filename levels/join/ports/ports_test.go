package ports

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/levels/join/env"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Range
		n    int
	}{
		{"", Range{}, 0},
		{"40000-40099", Range{40000, 40099}, 100},
		{"7", Range{7, 7}, 1},
		{"1-65535", Range{1, 65535}, 65535},
	} {
		if got, err := Parse(c.text); got != c.want || err != nil || got.Len() != c.n || got.String() != c.text {
			t.Errorf("%q: %v of %d, %v", c.text, got, got.Len(), err)
		}
	}
	for _, bad := range []string{"0", "x", "-", "5-", "-5", "5-4", "1-65536", "1-2-3", "1,2", " 1", "+1"} {
		if r, err := Parse(bad); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q; allowed are", bad)) {
			t.Errorf("%q: %v, %v", bad, r, err)
		}
	}
}

// Each port is tried once, the avoided ones last, until one is free; the error of a full range names it.
func TestTry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Uint16Range(1, 65535).Draw(t, "first")
		r := Range{first, rapid.Uint16Range(first, uint16(min(int(first)+30, 65535))).Draw(t, "last")}
		port := rapid.Uint16Range(r.First, r.Last)
		avoid, free := rapid.SliceOf(port).Draw(t, "avoid"), rapid.SliceOf(port).Draw(t, "free")
		var tried []uint16
		err := r.Try(avoid, func(p uint16) error {
			tried = append(tried, p)
			if slices.Contains(free, p) {
				return nil
			}
			return fmt.Errorf("open: %w", syscall.EADDRINUSE)
		})
		seen, late := map[uint16]bool{}, false
		for i, p := range tried {
			avoided := slices.Contains(avoid, p)
			if seen[p] || p < r.First || p > r.Last || late && !avoided || slices.Contains(free, p) != (i == len(tried)-1 && err == nil) {
				t.Fatalf("%v, avoiding %v: tried %v, free are %v: %v", r, avoid, tried, free, err)
			}
			seen[p], late = true, late || avoided
		}
		if len(free) > 0 != (err == nil) || err != nil && (len(tried) != r.Len() || !strings.Contains(err.Error(), env.Ports+"="+r.String()+": no port is free")) {
			t.Fatalf("%v, free are %v: tried %v: %v", r, free, tried, err)
		}
	})
	denied := errors.New("denied")
	tries := 0
	for _, r := range []Range{{}, {5, 9}} {
		if err := r.Try(nil, func(uint16) error { tries++; return denied }); !errors.Is(err, denied) {
			t.Errorf("%v: %v", r, err)
		}
	}
	if tries != 2 {
		t.Errorf("%d tries of what is not allowed, want one each", tries)
	}
}

// Listeners of one range get different ports.
func TestListen(t *testing.T) {
	taken, err := Range{}.Listen("tcp", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := uint16(taken.Addr().(*net.TCPAddr).Port)
	if l, err := (Range{port, port}).Listen("tcp", "127.0.0.1"); err == nil || !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listens twice at %d: %v, %v", port, l, err)
	}
}

func TestCheckRanks(t *testing.T) {
	for _, c := range []struct {
		r     Range
		ranks int
		root  bool
		in    bool
		want  string
	}{
		{Range{}, 1000, true, true, ""},
		{Range{5, 8}, 4, false, false, ""},
		{Range{5, 8}, 3, true, false, ""},
		{Range{5, 12}, 3, false, true, ""},
		{Range{5, 8}, 4, true, false, "TIERFLOW_PORTS=5-8 has fewer ports than the 5 needed here: each of 4 ranks needs one, and rank 0 another to be met at"},
		{Range{5, 5}, 2, false, false, "TIERFLOW_PORTS=5 has fewer ports than the 2 needed here: each of 2 ranks needs one"},
		{Range{5, 11}, 3, true, true, "TIERFLOW_PORTS=5-11 has fewer ports than the 8 needed here: each of 3 ranks needs one, and rank 0 another to be met at, all twice with restarts"},
	} {
		if got := fmt.Sprint(c.r.CheckRanks(c.ranks, c.root, c.in)); got != c.want && !(c.want == "" && got == "<nil>") {
			t.Errorf("%v: %s, want %q", c, got, c.want)
		}
	}
}
