package join

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/tierflow/tierflow/levels"
)

// MaxPayload is the longest payload of one control message, in bytes.
const MaxPayload = 64 << 10

// frameKind is the content of a frame on a control or rendezvous connection.
type frameKind uint8

const (
	frameMessage frameKind = iota + 1 // the caller's, with its own kind
	frameBlob                         // one rank's part of exchange number seq
	frameLost                         // from was lost, or can't go on; payload says how
	frameGoodbye                      // from leaves on purpose
	frameRecord                       // rendezvous: a rank's record
	frameWaiting                      // rendezvous: payload is a JoinError, of the missing ranks
	framePlace                        // rendezvous: a rank's place in the tree
	frameFailure                      // rendezvous: the join failed; payload is a JoinError
	frameTable                        // tree: all records, before anything else
	frameHealed                       // beside the tree: the edge stands, before anything else
	frameResume                       // a mended edge: so many frames have come, before anything else
	frameAck                          // an edge: so many frames have come
)

// everyone as a destination floods the tree.
const everyone levels.Rank = -1

const headerLen = 4 + 1 + 1 + 4 + 4 + 4

// frame is one message on an authenticated connection.
type frame struct {
	kind     frameKind
	user     uint8 // kind of a frameMessage
	from, to levels.Rank
	seq      uint32
	payload  []byte
}

func (f frame) encode() []byte {
	b := make([]byte, 0, headerLen+len(f.payload))
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.payload)))
	b = append(b, byte(f.kind), f.user)
	b = binary.BigEndian.AppendUint32(b, uint32(f.from))
	b = binary.BigEndian.AppendUint32(b, uint32(f.to))
	b = binary.BigEndian.AppendUint32(b, f.seq)
	return append(b, f.payload...)
}

// parseHeader returns the frame without its payload. length, of the payload, is at most limit.
func parseHeader(b []byte, size, limit int) (f frame, length int, err error) {
	if len(b) != headerLen {
		return f, 0, fmt.Errorf("frame header has %d bytes; allowed is %d", len(b), headerLen)
	}
	n := binary.BigEndian.Uint32(b)
	f.kind, f.user = frameKind(b[4]), b[5]
	f.from = levels.Rank(binary.BigEndian.Uint32(b[6:]))
	f.to = levels.Rank(binary.BigEndian.Uint32(b[10:]))
	f.seq = binary.BigEndian.Uint32(b[14:])
	switch {
	case uint64(n) > uint64(limit):
		err = fmt.Errorf("frame of %d bytes; allowed are %d", n, limit)
	case f.kind < frameMessage || f.kind > frameAck:
		err = fmt.Errorf("frame of kind %d; allowed are %d to %d", f.kind, frameMessage, frameAck)
	case f.from < 0 || int(f.from) >= size:
		err = fmt.Errorf("frame from rank %d; allowed are 0 to %d", f.from, size-1)
	case f.to < everyone || int(f.to) >= size:
		err = fmt.Errorf("frame to rank %d; allowed are %d to %d", f.to, everyone, size-1)
	}
	return f, int(n), err
}

// readFrame reads one frame from an authenticated connection.
func readFrame(r io.Reader, size, limit int) (frame, error) {
	var head [headerLen]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	f, n, err := parseHeader(head[:], size, limit)
	if err != nil || n == 0 {
		return f, err
	}
	f.payload = make([]byte, n)
	if _, err := io.ReadFull(r, f.payload); err != nil {
		return f, fmt.Errorf("frame cut short: %w", err)
	}
	return f, nil
}
