package launch

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/tierflow/tierflow/levels/join/launcher"
)

const (
	protocolVersion = 7
	maxFrame        = 8 << 20 // a start frame carries a whole environment, which systems bound near 2 MiB
)

// frame is one message between launcher and agent; exactly one field is set, but for Spare and Only. On the wire it is a big-endian uint32
// length and that many bytes of JSON.
//
//	launcher: Start                    Release            Signal … Input … Tell … Restart … Last   (closes stdin)
//	agent:            Ready | Refused           Started …          Fed … Output … Said … Exited … Kept … Done
type frame struct {
	Start   *start   `json:"start,omitempty"`
	Release *release `json:"release,omitempty"`
	Signal  string   `json:"signal,omitempty"` // stateSignal, or a name of signalNames
	Input   *input   `json:"input,omitempty"`
	Spare   *int     `json:"spare,omitempty"` // the rank that doesn't get the signal
	Only    *int     `json:"only,omitempty"`  // the rank that alone gets it

	Tell    *note         `json:"tell,omitempty"`
	Restart *restartOrder `json:"restart,omitempty"`
	Last    bool          `json:"last,omitempty"` // no rank is started again

	Ready   *ready      `json:"ready,omitempty"`
	Refused *refused    `json:"refused,omitempty"`
	Started *started    `json:"started,omitempty"`
	Fed     *inputRead  `json:"fed,omitempty"`
	Output  *output     `json:"output,omitempty"`
	Said    *note       `json:"said,omitempty"`
	Exited  *exited     `json:"exited,omitempty"`
	Kept    *tracePiece `json:"kept,omitempty"`
	Done    bool        `json:"done,omitempty"` // all ranks have exited and all output is sent
}

// start tells an agent its part of the job.
type start struct {
	Version int      `json:"version"`
	Secret  string   `json:"secret"`
	Node    string   `json:"node,omitempty"` // the ranks' TIERFLOW_NODE
	Ranks   []int    `json:"ranks"`
	Size    int      `json:"size"`
	Dir     string   `json:"dir"`
	Program []string `json:"program"`
	Env     []string `json:"env"`
	Bind    string   `json:"bind,omitempty"`    // empty: as the host says
	Readers []int    `json:"readers,omitempty"` // the ranks with input
	// TraceEvery: ranks keep the steps of one call of so many, and the agent sends them; 0: they
	// don't.
	TraceEvery int  `json:"trace_every,omitempty"`
	Late       bool `json:"late,omitempty"`     // the ranks are started by Restart only: the job runs
	Restarts   bool `json:"restarts,omitempty"` // ranks have a lobby, and are started again until Last
	Inherit    bool `json:"inherit"`            // Env comes on top of the agent's own environment
	Listen     bool `json:"listen"`             // rank 0 is here
	Loopback   bool `json:"loopback"`           // no rank is on another machine
}

// release lets an agent start its ranks: every agent is ready.
type release struct {
	Rendezvous string `json:"rendezvous"`
}

// note is a line to a rank, or from one, see package launcher's LobbyNote.
type note struct {
	Rank int             `json:"rank"` // everyRank: all
	Line json.RawMessage `json:"line"`
}

// restartOrder lets an agent start a rank again.
type restartOrder struct {
	Rank     int `json:"rank"`
	Restarts int `json:"restarts"` // of the job, with this one
	// First: no rank has joined yet, so it does as its first process did.
	First bool `json:"first,omitempty"`
}

// ready says that an agent can start its ranks. Rendezvous is set on rank 0's node.
type ready struct {
	Version    int    `json:"version"`
	Rendezvous string `json:"rendezvous,omitempty"`
}

// refused says why an agent can't start its ranks, and the exit status for that.
type refused struct {
	Reason string `json:"reason"`
	Status int    `json:"status"`
}

// input is a piece of the launcher's standard input, for the reading ranks of the agent. No rank
// has more than inputWindow unread pieces.
type input struct {
	Bytes []byte `json:"bytes,omitempty"`
	End   bool   `json:"end,omitempty"` // there is no more
}

// inputRead says that a rank has read a piece of input, or will read no more.
type inputRead struct {
	Rank   int  `json:"rank"`
	Closed bool `json:"closed,omitempty"`
}

type started struct {
	Rank int `json:"rank"`
	PID  int `json:"pid"`
}

// output is a piece of one stream of a rank. Without bytes it is the stream's end.
type output struct {
	Rank   int    `json:"rank"`
	Stream int    `json:"stream"` // streamOut or streamErr
	Bytes  []byte `json:"bytes,omitempty"`
}

const (
	streamOut = iota
	streamErr
	streams
)

// exited is the end of a rank: by a signal unless Signal is 0.
type exited struct {
	Rank   int    `json:"rank"`
	Status int    `json:"status"`
	Signal int    `json:"signal,omitempty"`
	Text   string `json:"text,omitempty"` // the signal in words of the agent's system
	// Blame is the rank's word about the failure it met first; nil: nothing.
	Blame *launcher.Blame `json:"blame,omitempty"`
}

// how is its end in words.
func (e *exited) how() string {
	if e.Signal != 0 {
		return fmt.Sprintf("ended by signal: %s (status %d)", e.Text, e.Status)
	}
	return fmt.Sprintf("exit status %d", e.Status)
}

// aborted reports whether a rank has ended the job on purpose, as this one knows.
func (e *exited) aborted() bool { return e.Blame != nil && e.Blame.Aborted }

// tracePiece is a piece of a rank's file of [Options.TraceDir].
type tracePiece struct {
	Rank  int    `json:"rank"`
	First bool   `json:"first,omitempty"`
	Bytes []byte `json:"bytes"`
}

// frameWriter writes frames of several goroutines one after the other.
type frameWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (fw *frameWriter) write(f frame) error {
	body, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("frame: %w", err)
	}
	if len(body) > maxFrame {
		return fmt.Errorf("frame of %d bytes, at most %d are allowed: a smaller environment or command line helps", len(body), maxFrame)
	}
	fw.mu.Lock()
	defer fw.mu.Unlock()
	_, err = fw.w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// readFrame returns the next frame, and io.EOF only at a frame's border. Memory grows
// with the bytes received, not with the length claimed.
func readFrame(r *bufio.Reader) (frame, error) {
	var f frame
	var header [4]byte
	if n, err := io.ReadFull(r, header[:]); err != nil {
		if n > 0 {
			err = fmt.Errorf("frame cut short: got %q, then %w", header[:n], err)
		}
		return f, err
	}
	length := binary.BigEndian.Uint32(header[:])
	if length > maxFrame {
		// Most likely a start-up file of the remote shell prints something: show it.
		rest, _ := r.Peek(min(r.Buffered(), 60))
		return f, fmt.Errorf("not a frame (a start-up file must not print here): %q", append(header[:], rest...))
	}
	var body bytes.Buffer
	if n, err := io.CopyN(&body, r, int64(length)); err != nil {
		return f, fmt.Errorf("frame of %d bytes cut short after %d: %w", length, n, errors.Join(io.ErrUnexpectedEOF, err))
	}
	if err := json.Unmarshal(body.Bytes(), &f); err != nil {
		return f, fmt.Errorf("frame of %d bytes: %w", length, err)
	}
	return f, nil
}
