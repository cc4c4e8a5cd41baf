package flight

import "fmt"

// Kind is the meaning of an event. The zero value is invalid.
type Kind uint8

// The kinds of events.
const (
	_        Kind = iota
	RunBegin      // a call was started; Bytes is the size of its buffer
	RunEnd        // it ended well
	RunFail       // it ended with an error
	Waiting       // it has stood still for a while; Peer and Edge are of one of its open steps
	Sent          // a message was handed to the link
	Received      // a message came
	Broken        // the communicator broke; Peer is the rank to blame
	maxKind
)

var kindNames = [maxKind]string{
	RunBegin: "begin", RunEnd: "end", RunFail: "fail", Waiting: "wait", Sent: "sent", Received: "received", Broken: "broken",
}

// String is the kind's name.
func (k Kind) String() string {
	if k == 0 || k >= maxKind {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// Messages are the names of the executor's kinds of messages, by number.
var Messages = []string{
	1: "eager", 2: "data", 3: "credit", 4: "want", 5: "notify", 6: "return", 7: "probe",
	8: "bye", 9: "tagged", 10: "offer", 11: "accept", 12: "arrived",
}

// tagged is the message of waits for sends and receives.
const tagged = 9

func messageName(m uint8) string {
	if m == 0 || int(m) >= len(Messages) {
		return fmt.Sprintf("message(%d)", m)
	}
	return Messages[m]
}

// Event is one entry of a recording: a message, or a step in the life of a call. Ranks are those of the world.
type Event struct {
	Time    int64  // nanoseconds since the recording's start, see [Ring.Tick]
	Comm    uint64 // communicator's number
	Bytes   int64
	Seq     uint32 // of the call on it
	Pass    uint32 // of the call's program
	Peer    int32  // -1: none
	Edge    int32  // of the program; a point-to-point message's tag
	Kind    Kind
	Message uint8  // of Sent and Received, see [Messages]
	stamp   uint16 // the low bits of the event's number: a half overwritten slot has another
	_       uint32
}
