//go:build linux

package executor_test

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// WireFault is what goes wrong with one frame between two ranks.
type WireFault int

// The faults.
const (
	CutWire     WireFault = iota // the connection ends in the middle of it
	ResetWire                    // or is reset
	ShortFrame                   // it has less payload than its message says
	RepeatFrame                  // an earlier frame comes once more behind it
	WireFaults
)

// Wire draws faults for the connections of [NewProcesses]: one between each pair of
// ranks, in each direction.
type Wire struct {
	Seed   uint64
	Fault  WireFault
	Within int // frames, of which one is hit
	Hit    atomic.Int64
}

// Tamper moves frames from in to out.
func (w *Wire) Tamper(from, to levels.Rank, in, out *net.TCPConn) {
	draw := rand.New(rand.NewPCG(w.Seed, uint64(from)<<16|uint64(to)))
	at, hit := draw.IntN(w.Within), false
	var old [][]byte
	for n := 0; ; n++ {
		frame, err := readFrame(in)
		if err != nil {
			break
		}
		if len(old) < 20 {
			old = append(old, frame)
		}
		// Once calls are over nobody need notice that a farewell, or what a budget gets back, was lost.
		isOfCall := frame[0] != byte(wire.Bye) && frame[0] != byte(wire.Return)
		if n >= at && !hit && isOfCall && (w.Fault != ShortFrame || len(frame) > wire.FrameHeader) {
			hit = true
			w.Hit.Add(1)
			switch w.Fault {
			case CutWire, ResetWire:
				_, _ = out.Write(frame[:draw.IntN(len(frame))])
				if w.Fault == ResetWire {
					_ = in.SetLinger(0)
					_ = out.SetLinger(0)
				}
				in.Close()
				out.Close()
				return
			case ShortFrame:
				less := draw.IntN(len(frame) - wire.FrameHeader)
				binary.BigEndian.PutUint32(frame[4:], uint32(less))
				frame = frame[:wire.FrameHeader+less]
			case RepeatFrame:
				frame = append(append([]byte(nil), frame...), old[draw.IntN(len(old))]...)
			}
		}
		if _, err := out.Write(frame); err != nil {
			break
		}
	}
	_ = out.CloseWrite()
	_, _ = io.Copy(io.Discard, in) // so that the sender isn't held up
}

func readFrame(in io.Reader) ([]byte, error) {
	head := make([]byte, wire.FrameHeader)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, err
	}
	frame := append(head, make([]byte, binary.BigEndian.Uint32(head[4:]))...)
	_, err := io.ReadFull(in, frame[wire.FrameHeader:])
	return frame, err
}
