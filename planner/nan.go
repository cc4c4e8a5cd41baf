package planner

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/tasks"
)

// looksForNaN reports whether the inputs of reductions are looked at.
func (o *settings) looksForNaN() (bool, error) {
	v, err := readSwitch(env.CheckNaN)
	return o.CheckNaN || v == "1", err
}

// checkInput breaks the communicator if there is a NaN in the input of a reduction.
func (c *Collective) checkInput() error {
	in := c.send
	if c.request.Input(c.comm.comm.Rank()) == tasks.Recv {
		in = c.recv
	}
	at := findNaN(c.request.Type, in)
	if at < 0 {
		return nil
	}
	err := fmt.Errorf("%v: element %d of the input is NaN", c.request, at)
	_ = c.comm.Revoke(err) // of a communicator that is made, for a reason
	return fmt.Errorf("rank %d: %w", c.comm.Rank(), err)
}

// findNaN returns the first element that is NaN, or has a part that is; -1: none is.
func findNaN(t tasks.Datatype, b []byte) int {
	size, parts := int(t.Size()), 1
	if t == tasks.Complex64 || t == tasks.Complex128 {
		size, parts = size/2, 2
	}
	for at := range len(b) / max(1, size) {
		part := b[at*size:][:size]
		nan := false
		switch t {
		case tasks.Float16:
			nan = binary.NativeEndian.Uint16(part)&0x7fff > 0x7c00
		case tasks.BFloat16:
			nan = binary.NativeEndian.Uint16(part)&0x7fff > 0x7f80
		case tasks.Float32, tasks.Complex64:
			nan = binary.NativeEndian.Uint32(part)&math.MaxInt32 > 0x7f80_0000
		case tasks.Float64, tasks.Complex128:
			nan = binary.NativeEndian.Uint64(part)&math.MaxInt64 > 0x7ff0_0000_0000_0000
		default:
			return -1
		}
		if nan {
			return at / parts
		}
	}
	return -1
}
