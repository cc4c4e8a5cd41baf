package flight

import "unsafe"

// header is the beginning of the file. All but fixed fields change while the
// recording goes on.
type header struct {
	Magic   [8]byte
	Version uint32
	Rank    int32
	Ranks   int32 // of the job
	PID     int32
	Start   int64 // of the recording, ns since 1970
	Events  uint32
	Calls   uint32
	Count   uint64 // events so far, the next one's number
	Seen    int64  // the clock's last reading, ns since Start
	Closed  uint32 // 1: the rank left in good order
	FailLen uint32
	FailAt  int64 // ns since Start
	Fail    [440]byte
}

// call is the record of a run, or of a waiting send or receive.
type call struct {
	Comm    uint64
	Begun   int64 // ns since Start; 0: nothing is here
	Ended   int64 // 0: not yet
	Waits   int64 // since when it waits; 0: it doesn't
	Seq     uint32
	TextLen uint32
	WaitLen uint32
	Text    [88]byte
	Wait    [120]byte
	Apart   uint32 // 1: a send or receive, without a Seq
}

var magic = [8]byte{'t', 'f', 'l', 'i', 'g', 'h', 't', '\n'}

const (
	version     = 3
	headerBytes = 512
	callBytes   = 256
	runs        = 64 // places for runs
	transfers   = 8  // and for sends and receives
	calls       = runs + transfers
	eventBytes  = 48

	// DefaultEvents is how many events a ring keeps unless told.
	DefaultEvents = 1024
	// MaxEvents bounds the events of a ring.
	MaxEvents = 1 << 20
)

// MaxBytes bounds a recording.
const MaxBytes = headerBytes + calls*callBytes + MaxEvents*eventBytes

// fileBytes is the size of a recording of n events.
func fileBytes(n int) int { return headerBytes + calls*callBytes + n*eventBytes }

// Memory and file have the same layout.
const (
	_ = uint(headerBytes-unsafe.Sizeof(header{})) + uint(unsafe.Sizeof(header{})-headerBytes)
	_ = uint(callBytes-unsafe.Sizeof(call{})) + uint(unsafe.Sizeof(call{})-callBytes)
	_ = uint(eventBytes-unsafe.Sizeof(Event{})) + uint(unsafe.Sizeof(Event{})-eventBytes)
)
