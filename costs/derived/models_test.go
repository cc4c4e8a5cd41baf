package derived_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/costs/derived"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// gammas are those of the paper's clusters (table 1), of a wire that is the limit, and of
// messages that don't disturb each other.
var gammas = map[string][]float64{
	"Grisou": {1, 1.114, 1.219, 1.283, 1.451, 1.540},
	"Gros":   {1, 1.084, 1.17, 1.254, 1.339, 1.424},
	"wire":   {1, 2, 3, 4, 5, 6, 7, 8},
	"free":   {1, 1, 1},
}

func gamma(t *testing.T, name string) derived.Gamma {
	t.Helper()
	g, err := derived.NewGamma(gammas[name])
	if err != nil {
		t.Fatal(err)
	}
	return g
}

const segment = 64

// walk follows a bcast's programs among so many nodes.
func walk(t *testing.T, ranks int, bytes int64, plan string, g derived.Gamma) derived.Coeff {
	t.Helper()
	on := tasktest.Topology(t, fmt.Sprintf("%dx1", ranks))
	p := tasktest.Plan(t, plan)
	r := tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: bytes}
	c, err := derived.WalkRequest(r, on, p, all.Submodules(), g, derived.Line{Alpha: 1000, Beta: 3})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The closed forms say what the programs of all ranks say, step by step.
func TestModelsEqualWalk(t *testing.T) {
	for name := range gammas {
		g := gamma(t, name)
		for _, m := range derived.Models() {
			for ranks := 2; ranks <= 130; ranks++ {
				for _, n := range segmentsFor(ranks, name, m.Algorithm) {
					bytes := int64(n) * segment
					plan := fmt.Sprintf("shape=flat,fs=all,w=1,i=adapt/%s/%d,s=sm", m.Algorithm, segment)
					want, got := walk(t, ranks, bytes, plan, g), m.Coeff(ranks, bytes, segment, g)
					if !near(want.Alpha, got.Alpha) || !near(want.Beta, got.Beta) {
						t.Fatalf("%s of %d ranks, %d segments, γ of %s: the form says %+v, the programs %+v", m.Algorithm, ranks, n, name, got, want)
					}
				}
			}
		}
	}
}

// So they do on both sides of the length from which segments leave in turns. A place of splitbinary hears two others
// at the same time then, so that form is near.
func TestModelsEqualWalkInTurns(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 1))
	for i := range 120 {
		m := derived.Models()[i%len(derived.Models())]
		g := gamma(t, []string{"Gros", "Grisou", "wire"}[i%3])
		ranks, n := 2+rng.IntN(120), int64(1+rng.IntN(6))
		for _, length := range []int64{submodules.ShortSend, submodules.ShortSend + 2} {
			bytes := n * length
			if m.Algorithm == submodules.SplitBinary {
				bytes *= 2 // n segments a half
			}
			plan := fmt.Sprintf("shape=flat,fs=all,w=1,i=adapt/%s/%d,s=sm", m.Algorithm, length)
			want, got := walk(t, ranks, bytes, plan, g), m.Coeff(ranks, bytes, length, g)
			most := 1e-9
			if m.Algorithm == submodules.SplitBinary && submodules.TakesTurns(length) {
				most = 0.2
			}
			if math.Abs(got.Alpha/want.Alpha-1) > most || math.Abs(got.Beta/want.Beta-1) > most {
				t.Errorf("%s of %d ranks, %d segments of %d: the form says %+v, the programs %+v", m.Algorithm, ranks, n, length, got, want)
			}
		}
	}
}

// segmentsFor lists numbers of segments: few everywhere, many where it is cheap. Splitbinary's
// are even or one.
func segmentsFor(ranks int, gamma, algorithm string) []int {
	odd := 3
	if algorithm == submodules.SplitBinary {
		odd = 4
	}
	switch {
	case ranks%32 == 0 && gamma == "Grisou":
		return []int{1, 2, odd, 64}
	case ranks < 20:
		return []int{1, 2, odd}
	case gamma == "Grisou" || ranks%8 == 5:
		return []int{odd}
	case gamma == "wire":
		return []int{1}
	}
	return nil
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a)) }

// Rounds take the same way: what nbc has of the six algorithms costs as much.
func TestRoundsEqualModels(t *testing.T) {
	g := gamma(t, "Gros")
	for _, c := range []struct{ algorithm, plan string }{
		{"linear", "shape=flat,fs=all,w=1,i=nbc/linear,s=sm"},
		{"binomial", "shape=flat,fs=64,w=2,i=nbc/binomial,s=sm"},
		{"chain", "shape=flat,fs=64,w=2,i=nbc/chain,s=sm"},
		{"chain", "shape=flat,fs=all,w=1,i=nbc/chain/64,s=sm"},
	} {
		for _, ranks := range []int{2, 3, 4, 7, 16, 33} {
			for _, n := range []int64{1, 2, 9} {
				length := int64(segment)
				if c.algorithm == "linear" {
					length = n * segment
				}
				m, _ := derived.Bcast(c.algorithm)
				want, got := walk(t, ranks, n*segment, c.plan, g), m.Coeff(ranks, n*segment, length, g)
				if !near(want.Alpha, got.Alpha) || !near(want.Beta, got.Beta) {
					t.Errorf("%s of %d ranks, %d segments: the form says %+v, the programs %+v", c.plan, ranks, n, got, want)
				}
			}
		}
	}
}

// The paper's forms hold where trees are full.
func TestPaper(t *testing.T) {
	g := gamma(t, "Grisou")
	equation6 := func(ranks, n int) float64 {
		l := int(math.Ceil(math.Log2(float64(ranks))))
		sum := float64(n) * g.Of(l+1)
		for i := 1; i <= l-1; i++ {
			sum += g.Of(l - i + 1)
		}
		return sum
	}
	for _, ranks := range []int{2, 4, 8, 16, 32, 64} {
		for _, n := range []int{1, 3, 512} {
			m, _ := derived.Bcast("binomial")
			if want, got := equation6(ranks, n), m.Coeff(ranks, int64(n)*8192, 8192, g).Alpha; !near(want, got) {
				t.Errorf("binomial, %d ranks, %d segments: %v messages, equation 6 says %v", ranks, n, got, want)
			}
		}
	}
	for _, ranks := range []int{3, 7, 15, 31, 63} {
		m, _ := derived.Bcast("binary")
		height := math.Floor(math.Log2(float64(ranks)))
		if want, got := (5+height-1)*g.Of(3), m.Coeff(ranks, 5*8192, 8192, g).Alpha; !near(want, got) {
			t.Errorf("binary, %d ranks: %v messages, by its stages %v", ranks, got, want)
		}
	}
}

func TestNothingToDo(t *testing.T) {
	for _, m := range derived.Models() {
		if got := m.Coeff(1, 1000, 64, derived.Gamma{}); got != (derived.Coeff{}) {
			t.Errorf("%s on one rank: %+v", m.Algorithm, got)
		}
	}
	if _, ok := derived.Bcast("bruck"); ok {
		t.Error("there is a model of bruck")
	}
}
