// Command pagerank computes the PageRank of an R-MAT graph, vertices shared out among the ranks so
// that each has as many edges: blocks that differ. In each step all ranks gather all ranks' scores
// (Allgatherv), and each sums up those that lead to its vertices.
//
//	tierflow run -n 4 -- pagerank -scale 16
//
// Each score's sum has one order, so the result has the same bits as a serial run's; -check compares.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/tierflow/tierflow/planner"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		log.Fatal("pagerank: ", err)
	}
}

// run joins the job and prints rank 0's line.
func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("pagerank", flag.ContinueOnError)
	scale := f.Int("scale", 14, "2 to this are the vertices, 1 to 24")
	steps := f.Int("steps", 30, "steps, at least 1")
	check := f.Bool("check", false, "compare with a serial run")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *scale < 1 || *scale > 24 || *steps < 1 {
		return fmt.Errorf("-scale %d -steps %d: allowed are 1 to 24, and 1 or more", *scale, *steps)
	}
	comm, err := planner.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer comm.Close()
	g := newGraph(*scale)
	begin := time.Now()
	scores, err := rank(ctx, comm, g, *steps)
	took := time.Since(begin)
	if err == nil && *check {
		err = compare(scores, g, *steps)
	}
	if err == nil && comm.Rank() == 0 {
		best := slices.Index(scores, slices.Max(scores))
		fmt.Fprintf(out, "vertices=%d edges=%d ranks=%d best=%d score=%.6g step_ms=%.3f\n", len(scores), len(g.from), comm.Size(), best, scores[best], took.Seconds()*1e3/float64(*steps))
	}
	return err
}

// graph is edges by the vertices they lead to.
type graph struct {
	first []int32 // by vertex: its first edge; one more at the end
	from  []int32 // by edge
	out   []int32 // by vertex: edges that leave it
}

// edges of an R-MAT graph for each vertex, as Graph500 has them.
const edgesPerVertex = 16

// newGraph draws an R-MAT graph (Chakrabarti et al., SDM 2004): the same on every rank.
func newGraph(scale int) *graph {
	n := 1 << scale
	draw := rand.New(rand.NewPCG(7, uint64(scale)))
	pairs := make([][2]int32, n*edgesPerVertex) // to, from
	g := &graph{first: make([]int32, n+1), from: make([]int32, len(pairs)), out: make([]int32, n)}
	for i := range pairs {
		for range scale {
			x := draw.Float64() // quadrants of 0.57, 0.19, 0.19, 0.05
			to, from := int32(0), int32(0)
			switch {
			case x < 0.57:
			case x < 0.76:
				to = 1
			case x < 0.95:
				from = 1
			default:
				to, from = 1, 1
			}
			pairs[i][0], pairs[i][1] = pairs[i][0]<<1|to, pairs[i][1]<<1|from
		}
		g.first[pairs[i][0]+1]++
		g.out[pairs[i][1]]++
	}
	for v := range n {
		g.first[v+1] += g.first[v]
	}
	next := slices.Clone(g.first)
	for _, p := range pairs {
		g.from[next[p[0]]] = p[1]
		next[p[0]]++
	}
	return g
}

// shares are the numbers of vertices of each rank: neighbours with about as many edges.
func (g *graph) shares(ranks int) []int {
	n, counts, at := len(g.out), make([]int, ranks), 0
	for r := range counts {
		end := n
		if r < ranks-1 {
			end, _ = slices.BinarySearch(g.first, int32(len(g.from)*(r+1)/ranks))
			end = min(max(end, at), n)
		}
		counts[r], at = end-at, end
	}
	return counts
}

// damping is how likely a surfer follows an edge.
const damping = 0.85

// begin is the scores before the first step.
func (g *graph) begin() []float64 {
	return slices.Repeat([]float64{1 / float64(len(g.out))}, len(g.out))
}

// step computes the scores of vertices from first on.
func (g *graph) step(to, all []float64, first int) {
	lost := 0.0 // by vertices that no edge leaves: every rank adds up all of them, in one order
	for v, score := range all {
		if g.out[v] == 0 {
			lost += score
		}
	}
	base := (1 - damping + damping*lost) / float64(len(all))
	for i := range to {
		sum := 0.0
		for _, from := range g.from[g.first[first+i]:g.first[first+i+1]] {
			sum += all[from] / float64(g.out[from])
		}
		to[i] = base + damping*sum
	}
}

// rank returns all scores after some steps.
func rank(ctx context.Context, c *planner.Comm, g *graph, steps int) ([]float64, error) {
	counts, first := g.shares(c.Size()), 0
	for _, n := range counts[:c.Rank()] {
		first += n
	}
	all, mine := g.begin(), make([]float64, counts[c.Rank()])
	gather, err := planner.PrepareAllgatherv(ctx, c, mine, all, counts)
	if err != nil {
		return nil, err
	}
	for range steps {
		g.step(mine, all, first)
		if err := gather.Run(ctx); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// compare is an error unless scores have the bits of a serial run's, and add up to 1.
func compare(got []float64, g *graph, steps int) error {
	want, next, sum := g.begin(), g.begin(), 0.0
	for range steps {
		g.step(next, want, 0)
		want, next = next, want
	}
	for v := range want {
		if sum += got[v]; got[v] != want[v] {
			return fmt.Errorf("vertex %d has %v; in a serial run %v", v, got[v], want[v])
		}
	}
	if math.Abs(sum-1) > 1e-9 {
		return fmt.Errorf("the scores add up to %v", sum)
	}
	return nil
}
