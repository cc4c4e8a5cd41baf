package wire

import "github.com/tierflow/tierflow/levels"

// batch is messages with their payloads, kept for reuse.
type Batch struct {
	Items   []item
	Payload []byte // of all items, one behind the other
}

type item struct {
	Message
	From levels.Rank
	Size int // of its payload
}

func (b *Batch) Add(from levels.Rank, m *Message, payload []byte) {
	b.Items = append(b.Items, item{*m, from, len(payload)})
	b.Payload = append(b.Payload, payload...)
}

// reset empties it, and drops the addresses.
func (b *Batch) Reset() {
	clear(b.Items)
	b.Items, b.Payload = b.Items[:0], b.Payload[:0]
}
