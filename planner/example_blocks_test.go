package planner_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// Rank i sends 10i+j to rank j.
func ExamplePrepareAlltoall() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		out, in := make([]int, c.Size()), make([]int, c.Size())
		for j := range out {
			out[j] = 10*c.Rank() + j
		}
		swap, err := planner.PrepareAlltoall(ctx, c, out, in)
		if err != nil {
			return err
		}
		if err := swap.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(in)
		}
		return nil
	})
	// Output: [2 12 22 32]
}

func ExampleAlltoall() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		letters := make([][3]byte, c.Size())
		for j := range letters {
			copy(letters[j][:], fmt.Sprintf("%d>%d", c.Rank(), j))
		}
		if err := planner.Alltoall(ctx, c, letters, letters); err != nil { // in place
			return err
		}
		if c.Rank() == 1 {
			fmt.Printf("%s\n", letters)
		}
		return nil
	})
	// Output: [0>1 1>1 2>1 3>1]
}

// Each rank sends rank j as many of its letters as j, and gets as many from each as its own
// number.
func ExamplePrepareAlltoallv() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		var out []byte
		outCounts, inCounts := make([]int, c.Size()), make([]int, c.Size())
		for j := range c.Size() {
			out = append(out, bytes.Repeat([]byte{"abcd"[c.Rank()]}, j)...)
			outCounts[j], inCounts[j] = j, c.Rank()
		}
		in := make([]byte, c.Rank()*c.Size())
		swap, err := planner.PrepareAlltoallv(ctx, c, out, outCounts, in, inCounts)
		if err != nil {
			return err
		}
		if err := swap.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Printf("%s\n", in)
		}
		return nil
	})
	// Output: aabbccdd
}

// Words go to the rank that counts those with their first letter; nobody knows how many come.
func ExampleAlltoallBlocks() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		words := []string{"an elk", "a cat dived", "big bears dance", "all cows browse"}[c.Rank()]
		out := make([][]byte, c.Size())
		for word := range strings.FieldsSeq(words) {
			to := int(word[0] - 'a')
			out[to%4] = append(append(out[to%4], word...), ' ')
		}
		in, err := planner.AlltoallBlocks(ctx, c, out)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Printf("%q\n", in) // in[i] is what rank i had
		}
		return nil
	})
	// Output: ["an elk " "a " "" "all "]
}

// Ranks send what they have for others, and learn how much comes by an alltoall of counts.
func ExampleAlltoallv() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		out, outCounts := []int{c.Rank(), c.Rank()}, make([]int, c.Size())
		outCounts[(c.Rank()+1)%c.Size()] = 2 // all of it is for the next rank
		inCounts := make([]int, c.Size())
		if err := planner.Alltoall(ctx, c, outCounts, inCounts); err != nil {
			return err
		}
		in := make([]int, 2)
		if err := planner.Alltoallv(ctx, c, out, outCounts, in, inCounts); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(inCounts, in)
		}
		return nil
	})
	// Output: [0 0 0 2] [3 3]
}

// Heat flows along a rod of which each rank has four cells. In each step a rank tells those
// beside it its outer cells, and hears theirs.
func ExamplePrepareNeighbors() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		cells, next := make([]float64, 6), make([]float64, 6) // with a halo at each end
		var peers []int
		var send, recv [][]float64
		if c.Rank() > 0 {
			peers, send, recv = append(peers, c.Rank()-1), append(send, cells[1:2]), append(recv, cells[0:1])
		} else {
			cells[0] = 64 // the rod's hot end
		}
		if c.Rank() < c.Size()-1 {
			peers, send, recv = append(peers, c.Rank()+1), append(send, cells[4:5]), append(recv, cells[5:6])
		}
		halo, err := planner.PrepareNeighbors(ctx, c, peers, send, recv)
		if err != nil {
			return err
		}
		for range 200 {
			if err := halo.Run(ctx); err != nil {
				return err
			}
			for i := 1; i <= 4; i++ {
				next[i] = (cells[i-1] + cells[i+1]) / 2
			}
			copy(cells[1:5], next[1:5])
		}
		if c.Rank() == 1 {
			fmt.Printf("%.1f\n", cells[1:5])
		}
		return nil
	})
	// Output: [44.1 40.2 36.4 32.6]
}

// A row of letters goes around a ring of ranks.
func ExampleNeighbors() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		before, behind := (c.Rank()+c.Size()-1)%c.Size(), (c.Rank()+1)%c.Size()
		letter, in := []byte{"abcd"[c.Rank()]}, make([]byte, 1)
		peers := []int{before, behind}
		if err := planner.Neighbors(ctx, c, peers, [][]byte{nil, letter}, [][]byte{in, nil}); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Printf("%s\n", in)
		}
		return nil
	})
	// Output: d
}

// All ranks know that rank i has i elements for rank 0, and none for others.
func ExamplePrepareAlltoallMatrix() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		counts, err := tasks.NewMatrix([][]int{{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 0, 0, 0}, {3, 0, 0, 0}})
		if err != nil {
			return err
		}
		out, in := make([]int, counts.Gives(c.Rank())), make([]int, counts.Gets(c.Rank()))
		for i := range out {
			out[i] = c.Rank()
		}
		collect, err := planner.PrepareAlltoallMatrix(ctx, c, out, in, counts)
		if err != nil {
			return err
		}
		if err := collect.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(in)
		}
		return nil
	})
	// Output: [1 2 2 3 3 3]
}

// Rank 0 keeps nothing of the sums, rank 2 most.
func ExamplePrepareReduceScatterv() {
	counts := []int{0, 1, 3, 1}
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		buf := []float64{1, 2, 3, 4, 5}
		mine := buf[:counts[c.Rank()]] // in place: the rest of buf is lost
		sum, err := planner.PrepareReduceScatterv(ctx, c, buf, mine, counts, tasks.Sum)
		if err != nil {
			return err
		}
		if err := sum.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(mine)
		}
		return nil
	})
	// Output: [8 12 16]
}

// Each rank gives as many elements as its number says.
func ExamplePrepareAllgatherv() {
	counts := []int{0, 1, 2, 3}
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		mine, all := []int{7, 8, 9}[:c.Rank()], make([]int, 0+1+2+3)
		share, err := planner.PrepareAllgatherv(ctx, c, mine, all, counts)
		if err != nil {
			return err
		}
		if err := share.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(all)
		}
		return nil
	})
	// Output: [7 7 8 7 8 9]
}

// Rank 1 collects as many elements of each rank as its number says.
func ExamplePrepareGatherv() {
	counts := []int{0, 1, 2, 3}
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		mine, all := []int{7, 8, 9}[:c.Rank()], []int(nil)
		if c.Rank() == 1 {
			all = make([]int, 0+1+2+3)
		}
		collect, err := planner.PrepareGatherv(ctx, c, mine, all, counts, 1)
		if err != nil {
			return err
		}
		if err := collect.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 1 {
			fmt.Println(all)
		}
		return nil
	})
	// Output: [7 7 8 7 8 9]
}

// Rank 0 keeps nothing of what it has, rank 3 gets most.
func ExamplePrepareScatterv() {
	counts := []int{0, 1, 2, 3}
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		var all []int
		if c.Rank() == 0 {
			all = []int{1, 2, 3, 4, 5, 6}
		}
		mine := make([]int, counts[c.Rank()])
		share, err := planner.PrepareScatterv(ctx, c, all, mine, counts, 0)
		if err != nil {
			return err
		}
		if err := share.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(mine)
		}
		return nil
	})
	// Output: [4 5 6]
}
