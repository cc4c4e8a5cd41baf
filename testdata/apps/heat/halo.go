package main

import (
	"context"

	"github.com/tierflow/tierflow/planner"
)

// halo is the cells at the sides of a block, and those of its neighbours beside them.
type halo struct {
	sides     []int // those with a neighbour
	peers     []int
	send, get [][]float64
}

// newHalo finds the neighbours of a block among rows by cols of them.
func newHalo(rank int, p *plate, rows, cols int) (h halo) {
	row, col := rank/cols, rank%cols
	for side, at := range [][2]int{{row - 1, col}, {row + 1, col}, {row, col - 1}, {row, col + 1}} {
		if at[0] < 0 || at[0] >= rows || at[1] < 0 || at[1] >= cols {
			continue
		}
		_, _, n := p.line(side, false)
		h.sides, h.peers = append(h.sides, side), append(h.peers, at[0]*cols+at[1])
		h.send, h.get = append(h.send, make([]float64, n)), append(h.get, make([]float64, n))
	}
	return h
}

// exchange starts to exchange halos, and returns what waits for them.
type exchange func(ctx context.Context) (wait func(ctx context.Context) error, err error)

// byNeighbors exchanges halos by one persistent collective.
func byNeighbors(ctx context.Context, c *planner.Comm, h *halo) (exchange, error) {
	all, err := planner.PrepareNeighbors(ctx, c, h.peers, h.send, h.get)
	return func(ctx context.Context) (func(ctx context.Context) error, error) {
		pending, err := all.Start(ctx)
		return pending.Wait, err
	}, err
}

// byMessages exchanges halos by single sends and receives.
func byMessages(_ context.Context, c *planner.Comm, h *halo) (exchange, error) {
	return func(ctx context.Context) (func(ctx context.Context) error, error) {
		var all []*planner.Transfer
		for k, peer := range h.peers {
			r, err := planner.StartRecv(ctx, c, peer, 0, h.get[k])
			if err != nil {
				return nil, err
			}
			s, err := planner.StartSend(ctx, c, peer, 0, h.send[k])
			if err != nil {
				return nil, err
			}
			all = append(all, r, s)
		}
		return func(ctx context.Context) error {
			for _, t := range all {
				if _, err := t.Wait(ctx); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}, nil
}
