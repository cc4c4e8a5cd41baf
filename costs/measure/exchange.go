package measure

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// exchangePlan is for messages of a few hundred bytes, on any layout.
func (b *Bench) exchangePlan() tasks.Plan {
	p := tasks.Plan{Shape: tasks.Han, Segment: tasks.Whole, Window: 1}
	for k := range b.topology.Depth() {
		symbol := string(b.topology.Level(k).Symbol)
		p = p.Set(symbol, tasks.Choice{Submodule: submodules.Adapt, Algorithm: submodules.Binomial}).
			Set(symbol+"g", tasks.Choice{Submodule: submodules.Adapt, Algorithm: submodules.Linear})
	}
	return p
}

// runCollective runs a collective of bytes on the given buffers. Programs are kept.
func (b *Bench) runCollective(ctx context.Context, r tasks.Request, send, recv []byte) error {
	run := b.kept[r]
	if run == nil {
		x, err := b.compileRequest(r, b.exchangePlan())
		if err != nil {
			return err
		}
		if run, err = b.comm.Bind(x); err != nil {
			return err
		}
		b.kept[r] = run
	}
	if err := run.Rebind(send, recv); err != nil {
		return err
	}
	return run.Do(ctx)
}

// bcastBytes copies rank 0's bytes to all ranks.
func (b *Bench) bcastBytes(ctx context.Context, buf []byte) error {
	return b.runCollective(ctx, tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: int64(len(buf))}, nil, buf)
}

// tellNumber copies rank 0's number to all ranks.
func (b *Bench) tellNumber(ctx context.Context, v int64) (int64, error) {
	var buf [8]byte
	binary.LittleEndian.PutUint64(buf[:], uint64(v))
	err := b.bcastBytes(ctx, buf[:])
	return int64(binary.LittleEndian.Uint64(buf[:])), err
}

// gatherNumbers collects as many numbers from each rank at rank 0; others get nil.
func (b *Bench) gatherNumbers(ctx context.Context, mine []float64) ([][]float64, error) {
	send := make([]byte, 8*len(mine))
	for i, v := range mine {
		binary.LittleEndian.PutUint64(send[8*i:], math.Float64bits(v))
	}
	var recv []byte
	if b.Rank() == 0 {
		recv = make([]byte, b.comm.Size()*len(send))
	}
	r := tasks.Request{Coll: tasks.Gather, Type: tasks.Uint8, Count: int64(len(send))}
	if err := b.runCollective(ctx, r, send, recv); err != nil || b.Rank() > 0 {
		return nil, err
	}
	all := make([][]float64, b.comm.Size())
	for rank := range all {
		all[rank] = make([]float64, len(mine))
		for i := range all[rank] {
			all[rank][i] = math.Float64frombits(binary.LittleEndian.Uint64(recv[8*(rank*len(mine)+i):]))
		}
	}
	return all, nil
}

// shareJSON copies rank 0's *v to all ranks, as JSON.
func (b *Bench) shareJSON(ctx context.Context, v any) error {
	var data []byte
	if b.Rank() == 0 {
		var err error
		if data, err = json.Marshal(v); err != nil {
			return fmt.Errorf("share a result: %w", err)
		}
	}
	n, err := b.tellNumber(ctx, int64(len(data)))
	if err != nil {
		return err
	}
	if data == nil {
		data = make([]byte, n)
	}
	r := tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: n}
	defer delete(b.kept, r) // the next result has another length
	if err := b.runCollective(ctx, r, nil, data); err != nil || b.Rank() == 0 {
		return err
	}
	return json.Unmarshal(data, v)
}
